/** The options about snapshots: of `svcd run`, which begins with one or writes them, and of the commands. */
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/identifier.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { integer, parsed, path, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import { CERTIFICATE_STEP } from '../store/kept-certificates.ts';
import { SnapshotError } from './snapshot-error.ts';

const SNAPSHOTS = 'Snapshots';

function readCutId(word: string): Bytes {
  try {
    return fromHex(word, ID_BYTES);
  } catch {
    throw new Error(`must be the identifier of a cut, ${2 * ID_BYTES} hex characters`);
  }
}

export const trustOption = parsed(
  { help: 'identifier of the cut that the snapshot must be of', group: SNAPSHOTS, placeholder: 'CUT_ID' },
  readCutId,
);

export const snapshotOptions = {
  snapshot: path({
    help: 'file that a new data directory begins with; needs --trust',
    group: SNAPSHOTS,
    placeholder: 'FILE',
  }),
  trust: trustOption,
  writeSnapshots: path({
    help: 'folder that snapshots are written to while the node runs; the last two are kept',
    group: SNAPSHOTS,
    placeholder: 'DIR',
  }),
  snapshotCuts: integer({
    help: 'cuts from one to the next, a multiple of 96',
    group: SNAPSHOTS,
    min: CERTIFICATE_STEP,
    max: 1_000_000_000 - (1_000_000_000 % CERTIFICATE_STEP),
    multipleOf: CERTIFICATE_STEP,
    default: INTERVAL_CUTS,
  }),
} as const;

export type SnapshotPlan = {
  readonly begin?: { readonly file: string; readonly trust: Bytes };
  readonly write?: { readonly directory: string; readonly everyCuts: number };
};

export function snapshotPlan(values: ValuesOf<typeof snapshotOptions>): SnapshotPlan {
  const { snapshot, trust, writeSnapshots, snapshotCuts } = values;
  if ((snapshot === undefined) !== (trust === undefined))
    throw new SnapshotError(
      'snapshot_config',
      '--snapshot and --trust go together: the cut that a snapshot is of has to be known from somewhere else than the file',
    );
  return {
    ...(snapshot !== undefined && trust !== undefined && { begin: { file: snapshot, trust } }),
    ...(writeSnapshots !== undefined && { write: { directory: writeSnapshots, everyCuts: snapshotCuts } }),
  };
}

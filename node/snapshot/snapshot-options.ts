/** The options about snapshots: of `svcd run`, which begins with one or writes them, and of the commands. */
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { integer, parsed, path, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import { CERTIFICATE_STEP } from '../store/kept-certificates.ts';
import { SnapshotError } from './snapshot-error.ts';

const SNAPSHOTS = 'Snapshots';

/** The cut that is trusted. Without a height only a snapshot of exactly this cut is accepted: peers cannot find a cut by its identifier. */
export type Trust = { readonly cutId: Bytes; readonly height?: number };

function readTrust(word: string): Trust {
  const [, height, cutId = word] = /^(\d{1,15}):(.*)$/.exec(word) ?? [];
  try {
    return { cutId: fromHex(cutId, ID_BYTES), ...(height !== undefined && { height: Number(height) }) };
  } catch {
    throw new Error(`must be the identifier of a cut, ${2 * ID_BYTES} hex characters, or HEIGHT:CUT_ID`);
  }
}

export const trustOption = parsed(
  {
    help: 'cut that the snapshot must be of; with a height, one that it can be proven from',
    group: SNAPSHOTS,
    placeholder: '[HEIGHT:]CUT_ID',
  },
  readTrust,
);

export const snapshotOptions = {
  snapshot: path({
    help: 'snapshot to start a new data directory from; without it, --trust downloads one from peers',
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
  /** Without a file the snapshot comes from peers. */
  readonly begin?: { readonly file?: string | undefined; readonly trust: Trust };
  readonly write?: { readonly directory: string; readonly everyCuts: number };
};

export function snapshotPlan(values: ValuesOf<typeof snapshotOptions>): SnapshotPlan {
  const { snapshot, trust, writeSnapshots, snapshotCuts } = values;
  if (snapshot !== undefined && trust === undefined)
    throw new SnapshotError(
      'snapshot_config',
      '--snapshot needs --trust: the cut that a snapshot is of has to be known from somewhere else than the file',
    );
  return {
    ...(trust !== undefined && { begin: { file: snapshot, trust } }),
    ...(writeSnapshots !== undefined && { write: { directory: writeSnapshots, everyCuts: snapshotCuts } }),
  };
}

/** Reads a snapshot from its file and proves each part before it is passed on: the head, the outlines of the sets, the blocks, then piece after piece. At most one part is in memory. */
import type { Bytes } from '../../protocol/bytes.ts';
import type { ProvenPiece } from './beside-entries.ts';
import { PartReader } from './snapshot-file.ts';
import type { ProvenHead } from './snapshot-head.ts';
import {
  blockRules,
  type CutWork,
  headRule,
  outlineRules,
  type PartRule,
  pieceRules,
  workOfCuts,
} from './snapshot-parts.ts';

export type SnapshotSink = {
  /** Throws to refuse the snapshot. */
  head(head: ProvenHead): Promise<void> | void;
  work(cuts: readonly CutWork[]): Promise<void> | void;
  /** In the order of the sets and of their keys. */
  piece(piece: ProvenPiece): Promise<void> | void;
};

export type SnapshotFigures = { readonly head: ProvenHead; readonly pieces: number };

export async function readSnapshot(
  path: string,
  trust: Bytes | undefined,
  sink: SnapshotSink,
): Promise<SnapshotFigures> {
  const parts = await PartReader.open(path);
  const next = async <T>({ maxBytes, read }: PartRule<T>): Promise<T> => read(await parts.part(maxBytes));
  const all = async <T>(rules: Iterable<PartRule<T>>): Promise<T[]> => {
    const found: T[] = [];
    for (const rule of rules) found.push(await next(rule));
    return found;
  };
  try {
    const head = await next(headRule(trust));
    await sink.head(head);
    const outlines = await all(outlineRules(head));
    await sink.work(workOfCuts(head, await all(blockRules(head))));
    let pieces = 0;
    for (const rule of pieceRules(outlines)) {
      await sink.piece(await next(rule));
      pieces++;
    }
    parts.end();
    return { head, pieces };
  } finally {
    await parts.close();
  }
}

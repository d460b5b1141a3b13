/** Reads a snapshot from its file and proves each part before it is passed on: the head, the outlines of the sets, the blocks, then piece after piece. At most one part is in memory. */

import { MAX_BODY_BYTES } from '../../protocol/body.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { HEADER_BYTES } from '../../protocol/header.ts';
import type { WorkRate } from '../ledger/retarget.ts';
import { ratesAfter } from './anchor-targets.ts';
import { maxPieceBytes, type ProvenPiece, readPiece } from './beside-entries.ts';
import { SET_NAMES, SETS } from './committed-sets.ts';
import { MAX_OUTLINE_BYTES, readOutline } from './set-outline.ts';
import { readSnapshotBlock, type SnapshotBlock } from './snapshot-blocks.ts';
import { believed, falsePart } from './snapshot-error.ts';
import { PartReader } from './snapshot-file.ts';
import { decodeSnapshotHead, type ProvenCut, type ProvenHead, proveHead } from './snapshot-head.ts';

/** Two committees, 96 windows, 97 cuts and the genesis document, which may fund many addresses. */
const MAX_HEAD_BYTES = 64 * 1024 * 1024;

/** A cut with the blocks that it registered and the work rate after it. */
export type CutWork = { readonly cut: ProvenCut; readonly blocks: readonly SnapshotBlock[]; readonly rate: WorkRate };

export type SnapshotSink = {
  /** Throws where the snapshot is not wanted. */
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
  try {
    const first = await parts.part(MAX_HEAD_BYTES);
    const head = proveHead(
      believed('the first part', () => decodeSnapshotHead(first)),
      trust,
    );
    await sink.head(head);
    const outlines = [];
    for (const set of SET_NAMES) {
      const bytes = await parts.part(MAX_OUTLINE_BYTES);
      const pieces = believed(`the outline of ${set}`, () =>
        readOutline(bytes, head.state[set], SETS[set].pieceEntries),
      );
      outlines.push({ set, pieces });
    }
    await sink.work(await readWork(parts, head));
    let pieces = 0;
    for (const { set, pieces: outlined } of outlines)
      for (const piece of outlined) {
        await sink.piece(readPiece(set, piece, await parts.part(maxPieceBytes(set, piece))));
        pieces++;
      }
    parts.end();
    return { head, pieces };
  } finally {
    await parts.close();
  }
}

async function readWork(parts: PartReader, { state, cuts, firstRate }: ProvenHead): Promise<CutWork[]> {
  const registered: SnapshotBlock[][] = [];
  for (const [i, { header, blockIds }] of cuts.entries()) {
    const blocks: SnapshotBlock[] = [];
    for (const id of blockIds) {
      const bytes = await parts.part(HEADER_BYTES + MAX_BODY_BYTES);
      blocks.push(readSnapshotBlock(bytes, { id, cutHeight: header.height, hasBody: i > 0 }, state));
    }
    registered.push(blocks);
  }
  const first = (cuts[0] as ProvenCut).header.height;
  const rates = ratesAfter(firstRate, first, registered, state.minimumWork);
  if (rates.at(-1) !== state.workRate) throw falsePart('the targets do not lead to that of the state');
  return cuts.map((cut, i) => ({ cut, blocks: registered[i] ?? [], rate: rates[i] as WorkRate }));
}

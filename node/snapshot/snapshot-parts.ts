/**
 * The parts of a snapshot in order, from a file or from peers, each with its maximum length and its check. The head
 * comes first, then the outlines of the five sets, the blocks of the cuts, and the pieces set by set.
 */

import type { Bytes } from '../../protocol/bytes.ts';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { HEADER_BYTES } from '../../protocol/ledger/header.ts';
import type { WorkRate } from '../ledger/retarget.ts';
import { ratesAfter } from './anchor-targets.ts';
import { maxPieceBytes, type ProvenPiece, readPiece } from './beside-entries.ts';
import { SET_NAMES, SETS, type SetName } from './committed-sets.ts';
import { MAX_OUTLINE_BYTES, type Piece, readOutline } from './set-outline.ts';
import { readSnapshotBlock, type SnapshotBlock } from './snapshot-blocks.ts';
import { checkPart, falsePart } from './snapshot-error.ts';
import { decodeSnapshotHead, type ProvenCut, type ProvenHead, proveHead } from './snapshot-head.ts';

/** Two committees, 96 windows, 97 cuts and the genesis document, which may fund many addresses. */
const MAX_HEAD_BYTES = 64 * 1024 * 1024;

export type PartRule<T> = {
  readonly maxBytes: number;
  /** Throws if the bytes are not this part. */
  read(bytes: Bytes): T;
};

/**
 * `trust` is the identifier of the cut; without it the snapshot is only compared with itself. `offered` is the height
 * that a peer named with it.
 */
export const headRule = (trust: Bytes | undefined, offered?: number): PartRule<ProvenHead> => ({
  maxBytes: MAX_HEAD_BYTES,
  read: (bytes) => {
    const head = proveHead(
      checkPart('the first part', () => decodeSnapshotHead(bytes)),
      trust,
    );
    const { height } = head.cut.header;
    if (offered !== undefined && height !== offered) throw falsePart(`it is of cut ${height}, not ${offered}`);
    return head;
  },
});

export type OutlinedSet = { readonly set: SetName; readonly pieces: readonly Piece[] };

export const outlineRules = ({ state }: ProvenHead): readonly PartRule<OutlinedSet>[] =>
  SET_NAMES.map((set) => ({
    maxBytes: MAX_OUTLINE_BYTES,
    read: (bytes) => ({
      set,
      pieces: checkPart(`the outline of ${set}`, () => readOutline(bytes, state[set], SETS[set].pieceEntries)),
    }),
  }));

export function* blockRules({ cuts, state }: ProvenHead): Generator<PartRule<SnapshotBlock>> {
  for (const [i, { header, blockIds }] of cuts.entries())
    for (const id of blockIds) {
      const expected = { id, cutHeight: header.height, hasBody: i > 0 };
      yield {
        maxBytes: HEADER_BYTES + (expected.hasBody ? MAX_BODY_BYTES : 0),
        read: (bytes) => readSnapshotBlock(bytes, expected, state),
      };
    }
}

export function* pieceRules(outlines: readonly OutlinedSet[]): Generator<PartRule<ProvenPiece>> {
  for (const { set, pieces } of outlines)
    for (const piece of pieces)
      yield { maxBytes: maxPieceBytes(set, piece), read: (bytes) => readPiece(set, piece, bytes) };
}

/** A cut with the blocks that it registered and the work rate after it. */
export type CutWork = { readonly cut: ProvenCut; readonly blocks: readonly SnapshotBlock[]; readonly rate: WorkRate };

/** `blocks` are those of all cuts, in order. */
export function workOfCuts({ state, cuts, firstRate }: ProvenHead, blocks: readonly SnapshotBlock[]): CutWork[] {
  let at = 0;
  const registered = cuts.map(({ blockIds }) => {
    const from = at;
    at += blockIds.length;
    return blocks.slice(from, at);
  });
  const first = (cuts[0] as ProvenCut).header.height;
  const rates = ratesAfter(firstRate, first, registered, state.minimumWork);
  if (rates.at(-1) !== state.workRate) throw falsePart('the targets do not lead to that of the state');
  return cuts.map((cut, i) => ({ cut, blocks: registered[i] ?? [], rate: rates[i] as WorkRate }));
}

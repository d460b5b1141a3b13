/**
 * The parts of a snapshot in order, from a file or from peers, each with its maximum length and its check. The head
 * comes first, then the outlines of the five sets, the blocks of the cuts, and the pieces set by set.
 */

import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { BlockRecord } from '../full-node.ts';
import { nextRate, type WorkRate } from '../ledger/retarget.ts';
import { type LedgerState, windowOf } from '../ledger/state.ts';
import { readTransaction } from '../ledger/work-block.ts';
import { readCandidate } from '../mining/candidate.ts';
import { maxPieceBytes, type ProvenPiece, readPiece } from './beside-entries.ts';
import { SET_NAMES, SETS, type SetName } from './committed-sets.ts';
import { MAX_OUTLINE_BYTES, type Piece, readOutline } from './set-outline.ts';
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

type RegisteredWork = { readonly anchorHeight: number; readonly work: bigint };

const workOf = (blocks: readonly RegisteredWork[]): bigint => blocks.reduce((sum, { work }) => sum + work, 0n);

/**
 * The work rates after the cuts of a snapshot. A block is checked against the target of its anchor, which is in the
 * anchor's state and in no header; the others follow from the rate before the first of these cuts and from the
 * registered blocks (ledger rule 39), so that none has to be trusted. `cuts` are the blocks of the cut of height `first` and of those after it; `rate` is that after
 * the first. One rate for each.
 */
function ratesAfter(
  rate: WorkRate,
  first: number,
  cuts: readonly (readonly RegisteredWork[])[],
  minimumWork: bigint,
): WorkRate[] {
  const rates = [rate];
  for (let i = 1; i < cuts.length; i++) {
    const height = first + i;
    const [before, now] = [cuts[i - 1] ?? [], cuts[i] ?? []];
    const newest = now.filter(({ anchorHeight }) => anchorHeight === height - 1);
    // A block on the cut before that can have been registered by that cut and by this one.
    const blocksBefore = [...before, ...now].filter(({ anchorHeight }) => anchorHeight === height - 2).length;
    const figures = { work: workOf(newest), blocks: newest.length, blocksBefore };
    rates.push(nextRate(rates[i - 1] as WorkRate, workOf(now), figures, minimumWork));
  }
  return rates;
}

/** The blocks that the cuts of a snapshot registered: each proves itself, by its identifier and by the roots in its header. Those whose anchors are not paid yet are needed when they are. */
type SnapshotBlock = RegisteredWork & {
  readonly transactionCount: number;
  /** Of a block whose anchor's window is open. */
  readonly record?: BlockRecord;
};

type ExpectedBlock = { readonly id: Bytes; readonly cutHeight: number; readonly hasBody: boolean };

/** `header 312 | body`; of the first cut's blocks only the header counts, and there is no body. */
function readSnapshotBlock(bytes: Bytes, expected: ExpectedBlock, state: LedgerState): SnapshotBlock {
  const headerBytes = Uint8Array.from(bytes.subarray(0, HEADER_BYTES));
  const bodyBytes = bytes.subarray(HEADER_BYTES);
  return checkPart(`a block of cut ${expected.cutHeight}`, () => {
    if (!equalBytes(blockId(headerBytes), expected.id))
      throw falsePart(`a block of cut ${expected.cutHeight} is another`);
    const header = decodeHeader(headerBytes);
    const { anchorHeight } = header;
    const work = workOfTarget(header.target);
    if (!expected.hasBody) {
      if (bodyBytes.length > 0) throw falsePart('a block has a body that is not needed');
      return { anchorHeight, work, transactionCount: 0 };
    }
    const block = readCandidate(headerBytes, header, bodyBytes, (wire, leaf) =>
      readTransaction(wire, state.chainId, leaf),
    );
    if ('code' in block) throw falsePart(`a block of cut ${expected.cutHeight}: ${block.message}`);
    const transactionCount = block.transactions.length;
    const open = windowOf(state, anchorHeight)?.blocks.find(({ id }) => equalBytes(id, expected.id));
    if (open === undefined) return { anchorHeight, work, transactionCount };
    const record: BlockRecord = {
      id: expected.id,
      header: headerBytes,
      anchorHeight,
      dueHeight: anchorHeight + REGISTRATION_WINDOW,
      acceptedMillis: block.header.timestampMillis,
      origin: 'relayed',
      payout: block.body.payout,
      extranonce: block.body.extranonce,
      parents: block.body.parents,
      transactionCount,
      registeredHeight: expected.cutHeight,
      reward: { state: 'pending', fees: open.feeShare },
    };
    return { anchorHeight, work, transactionCount, record };
  });
}

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

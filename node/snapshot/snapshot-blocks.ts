/** The blocks that the cuts of a snapshot registered: each proves itself, by its identifier and by the roots in its header. Those whose anchors are not paid yet are needed when they are. */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { blockId, decodeHeader, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { BlockRecord } from '../full-node.ts';
import type { LedgerState } from '../ledger/state.ts';
import { windowOf } from '../ledger/state.ts';
import { readTransaction } from '../ledger/work-block.ts';
import { readCandidate } from '../mining/candidate.ts';
import type { RegisteredWork } from './anchor-targets.ts';
import { checkPart, falsePart } from './snapshot-error.ts';

export type SnapshotBlock = RegisteredWork & {
  readonly transactionCount: number;
  /** Of a block whose anchor's window is open. */
  readonly record?: BlockRecord;
};

export type ExpectedBlock = { readonly id: Bytes; readonly cutHeight: number; readonly hasBody: boolean };

/** `header 312 | body`; of the first cut's blocks only the header counts, and there is no body. */
export function readSnapshotBlock(bytes: Bytes, expected: ExpectedBlock, state: LedgerState): SnapshotBlock {
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

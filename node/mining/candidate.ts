/**
 * Checks of work blocks (ledger rule 41): everything that can be checked without a hash first, in the order of its cost, the PoW last. A
 * block from a bridge, from a miner's own program or from another node passes the same checks.
 */
import { parentsRoot } from '../../protocol/body.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { attempt, ProtocolError } from '../../protocol/errors.ts';
import { blockId, decodeHeader, HEADER_BYTES, type Header } from '../../protocol/header.ts';
import { merkleRootOfHashes } from '../../protocol/merkle.ts';
import type { Network } from '../../protocol/network.ts';
import { rewardRoot } from '../../protocol/reward.ts';
import { meetsTarget, targetToBytes } from '../../protocol/target.ts';
import { timestampFault } from '../../protocol/timestamp.ts';
import type { CutRecord } from '../full-node.ts';
import { isWindowOpen } from '../ledger/registration.ts';
import { type ReadTransaction, readWorkBlock, type WorkBlock } from '../ledger/work-block.ts';
import { type NodeError, type NodeErrorCode, nodeError } from '../node-error.ts';

export type CandidateContext = {
  readonly network: Network;
  readonly headHeight: number;
  readonly nowMillis: number;
  cut(height: number): CutRecord | undefined;
  /** Waiting or registered. */
  isKnownBlock(id: Bytes): boolean;
  /** The same for a parent, where it differs: a block that a proven cut names may have one that was registered before this node's history begins. */
  isKnownParent?(id: Bytes): boolean;
  /** By another block that waits or by one in an open window. */
  isBodyUsed(bodyId: Bytes, by: Bytes): boolean;
  /** By a block in an open window. */
  isBodyRegistered(bodyId: Bytes): boolean;
  /** The transactions of a template with this root: a block made from it need not be read again. */
  templateTransactions(transactionsRoot: Bytes): readonly ReadTransaction[] | undefined;
  read(wire: Bytes): ReadTransaction;
};

export type CheckedCandidate =
  | { readonly block: WorkBlock }
  | { readonly known: Bytes }
  | { readonly error: NodeError };

const refuse = (
  code: NodeErrorCode,
  message: string,
  fields: NodeError['fields'] = {},
): { readonly error: NodeError } => ({ error: nodeError(code, message, fields) });

export function checkCandidate(headerBytes: Bytes, bodyBytes: Bytes, context: CandidateContext): CheckedCandidate {
  if (headerBytes.length !== HEADER_BYTES)
    return refuse('header_malformed', `a header has ${HEADER_BYTES} bytes, this one ${headerBytes.length}`);
  const id = blockId(headerBytes);
  return context.isKnownBlock(id) ? { known: id } : checkStored(headerBytes, bodyBytes, context);
}

/** All checks except whether the block is known: for one that is on record. */
export function checkStored(
  headerBytes: Bytes,
  bodyBytes: Bytes,
  context: CandidateContext,
): Exclude<CheckedCandidate, { readonly known: Bytes }> {
  let header: Header;
  try {
    header = decodeHeader(headerBytes);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return refuse('header_malformed', error.message, { reason: error.code });
  }
  const wrong = checkHeader(header, context);
  if (wrong !== undefined) return { error: wrong };
  const known = context.templateTransactions(header.transactionsRoot) ?? [];
  let block: WorkBlock;
  try {
    block = readWorkBlock(headerBytes, bodyBytes, (wire, index) => {
      const read = known[index];
      return read !== undefined && Buffer.compare(read.wire, wire) === 0 ? read : context.read(wire);
    });
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return refuse('body_malformed', error.message, { reason: error.code });
  }
  const inside = checkBody(block, known) ?? checkPlace(block, context);
  return inside === undefined ? { block } : { error: inside };
}

/** The checks that need only the header. */
export function checkHeaderBytes(bytes: Bytes, context: CandidateContext): Header | NodeError {
  if (bytes.length !== HEADER_BYTES) return nodeError('header_malformed', `a header has ${HEADER_BYTES} bytes`);
  const header = attempt(() => decodeHeader(bytes));
  if (!header.ok) return nodeError('header_malformed', header.error.message, { reason: header.error.code });
  return checkHeader(header.value, context) ?? header.value;
}

function checkHeader(header: Header, context: CandidateContext): NodeError | undefined {
  const { anchorHeight } = header;
  if (header.networkId !== context.network.id)
    return nodeError('network_mismatch', `the block is of network ${header.networkId}, this is ${context.network.id}`);
  const anchor = anchorHeight <= context.headHeight ? context.cut(anchorHeight) : undefined;
  if (anchor === undefined)
    return nodeError('anchor_unknown', `cut ${anchorHeight} does not exist here`, { head_height: context.headHeight });
  if (!equalBytes(anchor.cutId, header.anchorId))
    return nodeError('anchor_mismatch', `anchor_id is not the identifier of cut ${anchorHeight}`);
  if (!isWindowOpen(anchorHeight, context.headHeight + 1))
    return nodeError('block_too_late', `the window of anchor ${anchorHeight} is closed`, {
      head_height: context.headHeight,
    });
  if (!equalBytes(anchor.header.stateRoot, header.stateRoot))
    return nodeError('state_root_mismatch', 'state_root is not that of the anchor');
  if (anchor.target !== header.target) return nodeError('target_mismatch', 'target is not that of the anchor');
  const anchorMillis = anchor.header.timestampMillis;
  switch (timestampFault(header.timestampMillis, { anchorMillis, nowMillis: context.nowMillis })) {
    case 'too_early':
      return nodeError('timestamp_too_early', "timestamp_millis is not after the anchor's", {
        anchor_millis: anchorMillis,
      });
    case 'too_late':
      return nodeError(
        'timestamp_too_late',
        'timestamp_millis is more than 10 s ahead of the clock and of the anchor',
        {
          now_millis: context.nowMillis,
          anchor_millis: anchorMillis,
        },
      );
    default:
      return undefined;
  }
}

/** Checks that the body matches its header. */
export function checkBody(
  { header, body, transactions }: WorkBlock,
  known: readonly ReadTransaction[],
): NodeError | undefined {
  if (!equalBytes(parentsRoot(body), header.parentsRoot))
    return nodeError('parents_root_mismatch', 'parents_root does not follow from the body');
  if (!equalBytes(rewardRoot(body.payout, body.extranonce), header.rewardRoot))
    return nodeError('reward_root_mismatch', 'reward_root does not follow from the body');
  if (new Set(transactions.map(({ name }) => name)).size !== transactions.length)
    return nodeError('block_transaction_invalid', 'a transaction is in the block twice');
  // Exactly the transactions that a template of this root was made of: the root is known to follow from them.
  if (known.length > 0 && known.length === transactions.length && transactions.every((read, i) => read === known[i]))
    return undefined;
  if (!equalBytes(merkleRootOfHashes(transactions.map((transaction) => transaction.leaf)), header.transactionsRoot))
    return nodeError('transactions_root_mismatch', 'transactions_root does not follow from the body');
  return undefined;
}

function checkPlace({ id, body, bodyId }: WorkBlock, context: CandidateContext): NodeError | undefined {
  if (context.isBodyUsed(bodyId, id)) return nodeError('body_used', 'the body is that of another block');
  const unknown = body.parents.findIndex(
    (parent) => !context.isKnownBlock(parent) && context.isKnownParent?.(parent) !== true,
  );
  if (unknown >= 0) return nodeError('parent_unknown', `parent ${unknown} is not known`, { parent: unknown });
  return undefined;
}

/** The checks of a valid block whose result may change later: its window, its body, its place. */
export function recheckCandidate(block: WorkBlock, context: CandidateContext): CheckedCandidate {
  if (context.isKnownBlock(block.id)) return { known: block.id };
  const wrong = checkHeader(block.header, context) ?? checkPlace(block, context);
  return wrong === undefined ? { block } : { error: wrong };
}

export const meetsBlockTarget = (hash: Bytes, header: Header): boolean =>
  meetsTarget(hash, targetToBytes(header.target));

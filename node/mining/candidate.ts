/**
 * Checks of work blocks (ledger rule 41): everything that can be checked without a hash first, in the order of its cost, the PoW last. A
 * block from a bridge, from a miner's own program or from another node passes the same checks.
 *
 * The identifier of a block covers only its header, so anybody can send another body with it. Whether a body is the header's is
 * decided by the roots alone, before anything inside it is looked at: what is found afterwards is a fact about the block.
 */

import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { merkleLeaf, merkleRootOfHashes } from '../../protocol/crypto/merkle.ts';
import { attempt, ProtocolError } from '../../protocol/errors.ts';
import { type Body, decodeBody, parentsRoot } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, HEADER_BYTES, type Header } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import { timestampFault } from '../../protocol/ledger/timestamp.ts';
import type { Network } from '../../protocol/network.ts';
import type { Head } from '../full-node.ts';
import { isWindowOpen } from '../ledger/registration.ts';
import { type ReadTransaction, type WorkBlock, workBlockOf } from '../ledger/work-block.ts';
import { type NodeError, type NodeErrorCode, nodeError } from '../node-error.ts';

export type CandidateContext = {
  readonly network: Network;
  readonly headHeight: number;
  readonly nowMillis: number;
  /** The cut of this height, as far as blocks on it need it: a record of a cut is long to read. */
  anchor(height: number): Head | undefined;
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
  read(wire: Bytes, leaf: Bytes): ReadTransaction;
};

/** The bytes are not the header's body: this says nothing about the block, and its sender did not check it. */
export const WRONG_BODY: ReadonlySet<NodeErrorCode> = new Set([
  'body_malformed',
  'parents_root_mismatch',
  'reward_root_mismatch',
  'transactions_root_mismatch',
]);

/** What follows from the header, its body and its anchor alone: every node finds it, at every height. */
export const BLOCK_FACTS: ReadonlySet<NodeErrorCode> = new Set([
  'header_malformed',
  'network_mismatch',
  'anchor_mismatch',
  'state_root_mismatch',
  'target_mismatch',
  'timestamp_too_early',
  'block_transaction_invalid',
  'pow_above_target',
]);

/** No honest node sends a block that is refused for one of these. */
export const isSendersFault = (code: NodeErrorCode): boolean => WRONG_BODY.has(code) || BLOCK_FACTS.has(code);

export type CheckedCandidate =
  | { readonly block: WorkBlock }
  | { readonly known: Bytes }
  /** `misplaced`: the block, where nothing but its place is wrong. */
  | { readonly error: NodeError; readonly misplaced?: WorkBlock };

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
  const known = context.templateTransactions(header.transactionsRoot);
  const block = readCandidate(headerBytes, header, bodyBytes, context.read, known);
  if ('code' in block) return { error: block };
  const misplaced = checkPlace(block, context);
  return misplaced === undefined ? { block } : { error: misplaced, misplaced: block };
}

/** The checks that need only the header. */
export function checkHeaderBytes(bytes: Bytes, context: CandidateContext): Header | NodeError {
  if (bytes.length !== HEADER_BYTES) return nodeError('header_malformed', `a header has ${HEADER_BYTES} bytes`);
  const header = attempt(() => decodeHeader(bytes));
  if (!header.ok) return nodeError('header_malformed', header.error.message, { reason: header.error.code });
  return checkHeader(header.value, context) ?? header.value;
}

/** Both values of a comparison that failed: what the chain gives, and what the header has. */
const differing = (expected: string, found: string): NodeError['fields'] => ({ expected, found });

function checkHeader(header: Header, context: CandidateContext): NodeError | undefined {
  const { anchorHeight } = header;
  if (header.networkId !== context.network.id)
    return nodeError('network_mismatch', `the block is of network ${header.networkId}, this is ${context.network.id}`);
  const heads = { head_height: context.headHeight };
  const isHere = anchorHeight <= context.headHeight;
  // Before the anchor is looked at: anybody can name any cut.
  if (isHere && !isWindowOpen(anchorHeight, context.headHeight + 1))
    return nodeError('block_too_late', `the window of anchor ${anchorHeight} is closed`, heads);
  const anchor = isHere ? context.anchor(anchorHeight) : undefined;
  if (anchor === undefined) return nodeError('anchor_unknown', `cut ${anchorHeight} does not exist here`, heads);
  if (!equalBytes(anchor.cutId, header.anchorId))
    return nodeError(
      'anchor_mismatch',
      `anchor_id is not the identifier of cut ${anchorHeight}`,
      differing(toHex(anchor.cutId), toHex(header.anchorId)),
    );
  if (!equalBytes(anchor.stateRoot, header.stateRoot))
    return nodeError(
      'state_root_mismatch',
      'state_root is not that of the anchor',
      differing(toHex(anchor.stateRoot), toHex(header.stateRoot)),
    );
  if (anchor.target !== header.target)
    return nodeError(
      'target_mismatch',
      'target is not that of the anchor',
      differing(anchor.target.toString(16), header.target.toString(16)),
    );
  const anchorMillis = anchor.timestampMillis;
  switch (timestampFault(header.timestampMillis, { anchorMillis, nowMillis: context.nowMillis })) {
    case 'too_early':
      return nodeError('timestamp_too_early', "timestamp_millis is not after the anchor's", {
        anchor_millis: anchorMillis,
        found: header.timestampMillis,
      });
    case 'too_late':
      return nodeError(
        'timestamp_too_late',
        'timestamp_millis is more than 10 s ahead of the clock and of the anchor',
        {
          now_millis: context.nowMillis,
          anchor_millis: anchorMillis,
          found: header.timestampMillis,
        },
      );
    default:
      return undefined;
  }
}

/** The body, with the leaf of each transaction. Encodings and merkle trees are unambiguous: no two bodies have the same roots. */
function matchBody(
  header: Header,
  bytes: Bytes,
  known: readonly (ReadTransaction | undefined)[],
): { readonly body: Body; readonly leaves: readonly Bytes[] } | NodeError {
  const decoded = attempt(() => decodeBody(bytes));
  if (!decoded.ok) return nodeError('body_malformed', decoded.error.message, { reason: decoded.error.code });
  const body = decoded.value;
  if (!equalBytes(parentsRoot(body), header.parentsRoot))
    return nodeError('parents_root_mismatch', 'parents_root does not follow from the body');
  if (!equalBytes(rewardRoot(body.payout, body.extranonce), header.rewardRoot))
    return nodeError('reward_root_mismatch', 'reward_root does not follow from the body');
  const leaves = body.transactions.map((wire, i) => {
    const read = known[i];
    return read !== undefined && Buffer.compare(read.wire, wire) === 0 ? read.leaf : merkleLeaf(wire);
  });
  // Exactly the transactions that a template of this root was made of: the root is known to follow from them.
  const isTemplate =
    leaves.length > 0 && leaves.length === known.length && leaves.every((leaf, i) => leaf === known[i]?.leaf);
  if (!isTemplate && !equalBytes(merkleRootOfHashes(leaves), header.transactionsRoot))
    return nodeError('transactions_root_mismatch', 'transactions_root does not follow from the body');
  return { body, leaves };
}

/** The block of a header and its body. `known`: transactions of a template with the same root. */
export function readCandidate(
  headerBytes: Bytes,
  header: Header,
  bodyBytes: Bytes,
  read: CandidateContext['read'],
  known: readonly ReadTransaction[] = [],
): WorkBlock | NodeError {
  const matched = matchBody(header, bodyBytes, known);
  if ('code' in matched) return matched;
  const { body, leaves } = matched;
  const transactions = attempt(() =>
    body.transactions.map((wire, i) => {
      const leaf = leaves[i] as Bytes;
      return known[i]?.leaf === leaf ? (known[i] as ReadTransaction) : read(wire, leaf);
    }),
  );
  if (!transactions.ok)
    return nodeError('block_transaction_invalid', transactions.error.message, { reason: transactions.error.code });
  if (new Set(transactions.value.map(({ name }) => name)).size !== transactions.value.length)
    return nodeError('block_transaction_invalid', 'a transaction is in the block twice');
  return workBlockOf(headerBytes, header, bodyBytes, body, transactions.value);
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

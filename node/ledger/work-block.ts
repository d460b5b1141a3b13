/**
 * A work block, decoded and hashed once on arrival and never again. Its transactions are decoded too, so a block with
 * invalid transactions is refused early.
 */

import type { Bytes } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { merkleLeaf } from '../../protocol/crypto/merkle.ts';
import { type Body, bodyId, decodeBody } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, type Header } from '../../protocol/ledger/header.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { decodeOperation, type StakingOperation } from '../../protocol/staking/operation.ts';
import { transactionMass } from '../../protocol/transactions/fee.ts';
import { bodyOfWire, decodeTransaction, type Transaction } from '../../protocol/transactions/transaction.ts';
import { signatureCount } from '../../protocol/transactions/witness-check.ts';
import { nameOf } from './registration.ts';

export type ReadTransaction = Transaction & {
  readonly id: Bytes;
  /** The identifier as a key of maps. */
  readonly name: string;
  readonly wire: Bytes;
  /** What is signed over. */
  readonly bodyBytes: Bytes;
  /** Merkle leaf of the wire form: identifies these bytes, witnesses included. */
  readonly leaf: Bytes;
  readonly leafName: string;
  readonly mass: number;
  /** How many it carries. */
  readonly signatures: number;
  readonly operation?: StakingOperation;
};

/** Throws a ProtocolError if the bytes are not a transaction of this chain. `leaf`: theirs, where it is known. */
export function readTransaction(wire: Bytes, chainId: Bytes, leaf: Bytes = merkleLeaf(wire)): ReadTransaction {
  const transaction = decodeTransaction(wire, chainId);
  const bodyBytes = bodyOfWire(wire);
  const transactionId = id(LABELS.transaction, bodyBytes);
  const operation = transaction.body.operation && decodeOperation(transaction.body.operation);
  return {
    ...transaction,
    id: transactionId,
    name: nameOf(transactionId),
    wire,
    bodyBytes,
    leaf,
    leafName: nameOf(leaf),
    mass: transactionMass(wire.length, transaction.body.outputs.length),
    signatures: signatureCount(transaction.witnesses, operation),
    ...(operation && { operation }),
  };
}

export type WorkBlock = {
  readonly id: Bytes;
  readonly header: Header;
  readonly headerBytes: Bytes;
  readonly body: Body;
  readonly bodyBytes: Bytes;
  readonly bodyId: Bytes;
  readonly work: bigint;
  readonly transactions: readonly ReadTransaction[];
  /** Those of its transactions together (ledger rule 43). */
  readonly signatures: number;
};

export const workBlockOf = (
  headerBytes: Bytes,
  header: Header,
  bodyBytes: Bytes,
  body: Body,
  transactions: readonly ReadTransaction[],
): WorkBlock => ({
  id: blockId(headerBytes),
  header,
  headerBytes,
  body,
  bodyBytes,
  bodyId: bodyId(bodyBytes),
  work: workOfTarget(header.target),
  transactions,
  signatures: transactions.reduce((sum, { signatures }) => sum + signatures, 0),
});

/** A block whose body is known to be its header's. Throws a ProtocolError. */
export function readWorkBlock(headerBytes: Bytes, bodyBytes: Bytes, read: (wire: Bytes) => ReadTransaction): WorkBlock {
  const body = decodeBody(bodyBytes);
  return workBlockOf(headerBytes, decodeHeader(headerBytes), bodyBytes, body, body.transactions.map(read));
}

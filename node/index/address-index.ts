/**
 * The index behind the public API: balances, unspent outputs, history, changes, transactions and blocks by cut, registered keys.
 * It is written in the batch of the cut it describes, so `indexed_height` is the height of the finalized cut, always.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { CreatedOutput, CutEffects, SpentOutput, TransactionEffect } from '../ledger/effects.ts';
import type { BatchOp, CutIndexer, StoreReader } from '../store/cut-indexer.ts';
import {
  asBuffer,
  encodeEvent,
  HEAD_KEY,
  INDEX_FORMAT,
  INDEX_NAME,
  type IndexedEvent,
  key,
  outpointKey,
  placeBytes,
  SPACES,
} from './index-keys.ts';

/** What a cut made of a transaction, as the `n` space keeps it. */
export const OUTCOMES = ['finalized', 'conflict', 'invalid', 'expired', 'dropped', 'no_effect'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export type Balance = { readonly atoms: bigint; readonly utxos: number };
export const NO_BALANCE: Balance = { atoms: 0n, utxos: 0 };

export function encodeBalance(balance: Balance): Buffer {
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeBigUInt64LE(balance.atoms, 0);
  bytes.writeBigUInt64LE(BigInt(balance.utxos), 8);
  return bytes;
}

export function decodeBalance(value: Bytes | undefined): Balance {
  if (value === undefined) return NO_BALANCE;
  const bytes = asBuffer(value);
  return { atoms: bytes.readBigUInt64LE(0), utxos: Number(bytes.readBigUInt64LE(8)) };
}

export function encodeHead(height: number): Buffer {
  const bytes = Buffer.allocUnsafe(12);
  bytes.writeUInt32LE(INDEX_FORMAT, 0);
  bytes.writeBigUInt64LE(BigInt(height), 4);
  return bytes;
}

/** The height the index stands at, or undefined where it was never built or has another form. */
export function decodeHead(value: Bytes | undefined): number | undefined {
  if (value === undefined) return undefined;
  const bytes = asBuffer(value);
  return bytes.readUInt32LE(0) === INDEX_FORMAT ? Number(bytes.readBigUInt64LE(4)) : undefined;
}

function encodeUnspent(output: CreatedOutput, height: number, source: number): Buffer {
  const bytes = Buffer.allocUnsafe(17);
  bytes.writeBigUInt64LE(output.amount, 0);
  bytes[8] = source;
  bytes.writeBigUInt64LE(BigInt(height), 9);
  return bytes;
}

const outcomeOf = (effect: TransactionEffect): Outcome | undefined =>
  effect.outcome === 'executed' ? 'finalized' : effect.outcome === 'failed' ? effect.reason : undefined;

function encodeTransaction(effect: TransactionEffect, outcome: Outcome): Buffer {
  const bytes = Buffer.allocUnsafe(117);
  bytes.set(effect.id, 0);
  bytes.set(effect.blockId, 48);
  bytes[96] = OUTCOMES.indexOf(outcome);
  bytes.writeBigUInt64LE(effect.outcome === 'executed' ? effect.fee : 0n, 97);
  bytes.writeUInt32LE(effect.outcome === 'executed' ? effect.mass : 0, 105);
  let sum = 0n;
  for (const output of effect.body.outputs) sum += output.amount;
  bytes.writeBigUInt64LE(sum, 109);
  return bytes;
}

/** Balances of the addresses a cut touches, read once each and written once each. */
class TouchedBalances {
  readonly #reader: StoreReader;
  readonly #balances = new Map<string, { key: Buffer; atoms: bigint; utxos: number }>();

  constructor(reader: StoreReader) {
    this.#reader = reader;
  }

  add(address: Bytes, atoms: bigint, utxos: number): void {
    const name = asBuffer(address).toString('latin1');
    let balance = this.#balances.get(name);
    if (balance === undefined) {
      const at = key(SPACES.balance, address);
      balance = { key: at, ...decodeBalance(this.#reader.get(at)) };
      this.#balances.set(name, balance);
    }
    balance.atoms += atoms;
    balance.utxos += utxos;
  }

  operations(): BatchOp[] {
    return [...this.#balances.values()].map((balance) => ({
      type: 'put',
      key: balance.key,
      value: encodeBalance(balance),
    }));
  }
}

const received = (output: CreatedOutput): IndexedEvent => ({
  kind: 'received',
  source: output.source,
  amount: output.amount,
  outpoint: output.outpoint,
  transactionId: output.outpoint.transactionId,
});
const spent = (output: SpentOutput): IndexedEvent => ({
  kind: 'spent',
  source: output.source,
  amount: output.amount,
  outpoint: output.outpoint,
  transactionId: output.spentBy,
});

export function indexOperations(effects: CutEffects, reader: StoreReader): BatchOp[] {
  const { height } = effects.header;
  // An index that missed a cut stays where it is until it is rebuilt: it may be old, but never wrong.
  if (height > 0 && decodeHead(reader.get(HEAD_KEY)) !== height - 1) return [];
  const ops: BatchOp[] = [{ type: 'put', key: HEAD_KEY, value: encodeHead(height) }];
  const balances = new TouchedBalances(reader);
  let place = 0;
  const put = (at: Bytes, value: Bytes): void => void ops.push({ type: 'put', key: at, value });
  const record = (event: IndexedEvent, address: Bytes): void => {
    const where = placeBytes(height, place++);
    put(key(SPACES.event, address, where), encodeEvent(event));
    put(key(SPACES.change, where), encodeEvent(event, address));
  };
  // Made before spent: an output that lives within one cut is put and then deleted in the same batch.
  for (const output of effects.created) {
    balances.add(output.address, output.amount, 1);
    const event = received(output);
    put(
      key(SPACES.unspent, output.address, outpointKey(output.outpoint)),
      encodeUnspent(output, height, encodeEvent(event)[1] as number),
    );
    record(event, output.address);
  }
  for (const output of effects.spent) {
    balances.add(output.address, -output.amount, -1);
    ops.push({ type: 'del', key: key(SPACES.unspent, output.address, outpointKey(output.outpoint)) });
    record(spent(output), output.address);
  }
  let carried = 0;
  for (const effect of effects.transactions) {
    const outcome = outcomeOf(effect);
    // A repeated transaction is listed where it was executed.
    if (outcome !== undefined)
      put(key(SPACES.transaction, placeBytes(height, carried++)), encodeTransaction(effect, outcome));
  }
  effects.registered.forEach((block, at) => {
    put(key(SPACES.block, placeBytes(height, at)), block.id);
  });
  for (const { address } of effects.keys) put(key(SPACES.key, address), encodeHead(height));
  return [...ops, ...balances.operations()];
}

export const addressIndex: CutIndexer = { name: INDEX_NAME, operations: indexOperations };

/**
 * The index behind the public API: balances, unspent outputs, history, changes, transactions and blocks by cut, registered keys.
 * It is written in the batch of the cut it describes, so `indexed_height` is the height of the finalized cut, always.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import {
  type CreatedOutput,
  type CutEffects,
  OUTPUT_SOURCES,
  type SpentOutput,
  type TransactionEffect,
} from '../ledger/effects.ts';
import type { BatchOp, CutIndexer, StoreReader } from '../store/cut-indexer.ts';
import {
  asBuffer,
  EVENT_BYTES,
  encodeEvent,
  eventOrder,
  HEAD_KEY,
  INDEX_FORMAT,
  INDEX_NAME,
  type IndexedEvent,
  key,
  outpointKey,
  PAGE_EVENTS,
  placeBytes,
  SPACES,
  splitEvents,
} from './index-keys.ts';

/** The result of a transaction in a cut, as stored in the `n` space. */
export const OUTCOMES = ['finalized', 'conflict', 'invalid', 'expired', 'dropped', 'no_effect'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** `changed` is the height of the last cut that touched the address. */
export type Balance = { readonly atoms: bigint; readonly utxos: number; readonly changed: number };
export const NO_BALANCE: Balance = { atoms: 0n, utxos: 0, changed: 0 };

const FIGURES_BYTES = 24;

export function encodeBalance(balance: Balance, events: readonly Bytes[]): Buffer {
  const bytes = Buffer.allocUnsafe(FIGURES_BYTES + events.length * EVENT_BYTES);
  bytes.writeBigUInt64LE(balance.atoms, 0);
  bytes.writeBigUInt64LE(BigInt(balance.utxos), 8);
  bytes.writeBigUInt64LE(BigInt(balance.changed), 16);
  events.forEach((event, i) => {
    bytes.set(event, FIGURES_BYTES + i * EVENT_BYTES);
  });
  return bytes;
}

/** The newest events of an address that do not fill a page yet, oldest first. */
export const openEvents = (value: Bytes | undefined): Uint8Array[] =>
  value === undefined ? [] : splitEvents(value, FIGURES_BYTES);

export function decodeBalance(value: Bytes | undefined): Balance {
  if (value === undefined) return NO_BALANCE;
  const bytes = asBuffer(value);
  return {
    atoms: bytes.readBigUInt64LE(0),
    utxos: Number(bytes.readBigUInt64LE(8)),
    changed: Number(bytes.readBigUInt64LE(16)),
  };
}

export function encodeHead(height: number): Buffer {
  const bytes = Buffer.allocUnsafe(12);
  bytes.writeUInt32LE(INDEX_FORMAT, 0);
  bytes.writeBigUInt64LE(BigInt(height), 4);
  return bytes;
}

/** The indexed height; undefined if the index was never built or has another format. */
export function decodeHead(value: Bytes | undefined): number | undefined {
  if (value === undefined) return undefined;
  const bytes = asBuffer(value);
  return bytes.readUInt32LE(0) === INDEX_FORMAT ? Number(bytes.readBigUInt64LE(4)) : undefined;
}

export function encodeUnspent(output: CreatedOutput, height: number): Buffer {
  const bytes = Buffer.allocUnsafe(17);
  bytes.writeBigUInt64LE(output.amount, 0);
  bytes[8] = OUTPUT_SOURCES.indexOf(output.source);
  bytes.writeBigUInt64LE(BigInt(height), 9);
  return bytes;
}

const outcomeOf = (effect: TransactionEffect): Outcome | undefined =>
  effect.outcome === 'executed' ? 'finalized' : effect.outcome === 'failed' ? effect.reason : undefined;

/** `spentAt` is where the changes of its inputs begin: a page of transactions reads these and no others of the cut. */
function encodeTransaction(effect: TransactionEffect, outcome: Outcome, spentAt: number): Buffer {
  const bytes = Buffer.allocUnsafe(125);
  bytes.set(effect.id, 0);
  bytes.set(effect.blockId, 48);
  bytes[96] = OUTCOMES.indexOf(outcome);
  bytes.writeBigUInt64LE(effect.outcome === 'executed' ? effect.fee : 0n, 97);
  bytes.writeUInt32LE(effect.outcome === 'executed' ? effect.mass : 0, 105);
  let sum = 0n;
  for (const output of effect.body.outputs) sum += output.amount;
  bytes.writeBigUInt64LE(sum, 109);
  bytes.writeUInt32LE(effect.index, 117);
  bytes.writeUInt32LE(spentAt, 121);
  return bytes;
}

type Touched = { readonly address: Bytes; atoms: bigint; utxos: number; readonly events: Bytes[] };

/** Balances and open pages of the addresses a cut touches, read once each and written once each. */
class TouchedAddresses {
  readonly #reader: StoreReader;
  readonly #touched = new Map<string, Touched>();

  constructor(reader: StoreReader) {
    this.#reader = reader;
  }

  add(address: Bytes, atoms: bigint, utxos: number, event: Bytes): void {
    const name = asBuffer(address).toString('latin1');
    let touched = this.#touched.get(name);
    if (touched === undefined) {
      const record = this.#reader.get(key(SPACES.balance, address));
      const balance = decodeBalance(record);
      touched = { address, atoms: balance.atoms, utxos: balance.utxos, events: openEvents(record) };
      this.#touched.set(name, touched);
    }
    touched.atoms += atoms;
    touched.utxos += utxos;
    touched.events.push(event);
  }

  operations(height: number): BatchOp[] {
    const ops: BatchOp[] = [];
    for (const { address, atoms, utxos, events } of this.#touched.values()) {
      let from = 0;
      for (; events.length - from >= PAGE_EVENTS; from += PAGE_EVENTS) {
        const page = events.slice(from, from + PAGE_EVENTS);
        const at = key(SPACES.event, address, eventOrder(page[0] as Bytes));
        ops.push({ type: 'put', key: at, value: Buffer.concat(page) });
      }
      const value = encodeBalance({ atoms, utxos, changed: height }, events.slice(from));
      ops.push({ type: 'put', key: key(SPACES.balance, address), value });
    }
    return ops;
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
  // An index that missed a cut is not updated until it is rebuilt: it may be old, but never wrong.
  if (height > 0 && decodeHead(reader.get(HEAD_KEY)) !== height - 1) return [];
  const ops: BatchOp[] = [{ type: 'put', key: HEAD_KEY, value: encodeHead(height) }];
  const addresses = new TouchedAddresses(reader);
  let place = 0;
  const put = (at: Bytes, value: Bytes): void => void ops.push({ type: 'put', key: at, value });
  const record = (event: IndexedEvent, address: Bytes): void => {
    const where = placeBytes(height, place++);
    const value = encodeEvent(event, where, address);
    put(key(SPACES.change, where), value);
    const sign = event.kind === 'received' ? 1 : -1;
    addresses.add(address, BigInt(sign) * event.amount, sign, value.subarray(0, EVENT_BYTES));
  };
  // Made before spent: an output that lives within one cut is put and then deleted in the same batch.
  for (const output of effects.created) {
    put(key(SPACES.unspent, output.address, outpointKey(output.outpoint)), encodeUnspent(output, height));
    record(received(output), output.address);
  }
  let spentAt = place;
  for (const output of effects.spent) {
    ops.push({ type: 'del', key: key(SPACES.unspent, output.address, outpointKey(output.outpoint)) });
    record(spent(output), output.address);
  }
  let carried = 0;
  for (const effect of effects.transactions) {
    const outcome = outcomeOf(effect);
    // A repeated transaction is listed where it was executed.
    if (outcome !== undefined)
      put(key(SPACES.transaction, placeBytes(height, carried++)), encodeTransaction(effect, outcome, spentAt));
    // What a cut spends is in the order of its executed transactions and of their inputs.
    if (outcome === 'finalized') spentAt += effect.body.inputs.length;
  }
  effects.registered.forEach((block, at) => {
    put(key(SPACES.block, placeBytes(height, at)), block.id);
  });
  for (const { address } of effects.keys) put(key(SPACES.key, address), encodeHead(height));
  return [...ops, ...addresses.operations(height)];
}

export const addressIndex: CutIndexer = { name: INDEX_NAME, operations: indexOperations };

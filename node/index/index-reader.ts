/**
 * Reads of the address index. A page says which height it belongs to; because cuts are written by another thread, every read
 * compares the index's head before and after it took its view of the store, and is repeated when they differ.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { OUTPUT_SOURCES, type OutputSource } from '../ledger/effects.ts';
import type { StoreReader } from '../store/cut-indexer.ts';
import { type Balance, decodeBalance, decodeHead, OUTCOMES, type Outcome, openEvents } from './address-index.ts';
import {
  afterPrefix,
  asBuffer,
  decodeEvent,
  decodeOutpoint,
  EVENT_BYTES,
  eventOrder,
  eventPlace,
  HEAD_KEY,
  type IndexedEvent,
  key,
  OUTPOINT_BYTES,
  PAGE_EVENTS,
  type Place,
  placeBytes,
  placeOf,
  SPACES,
  splitEvents,
} from './index-keys.ts';

export type Indexed<T> = { readonly height: number; readonly value: T };
export type Entry = [key: Uint8Array, value: Uint8Array];
export type IndexedOutput = {
  readonly outpoint: Outpoint;
  readonly amount: bigint;
  readonly source: OutputSource;
  readonly height: number;
};
export type PlacedEvent = Place & IndexedEvent;
export type IndexedTransaction = Place & {
  readonly id: Bytes;
  readonly blockId: Bytes;
  readonly outcome: Outcome;
  readonly fee: bigint;
  readonly mass: number;
  readonly amount: bigint;
  /** Place in the block that carried it. */
  readonly index: number;
  /** Place of the change that its first input made, if it was executed. */
  readonly spentAt: number;
};

/** There is no index, or it is behind the chain: it must not be used for answers. */
export class IndexUnavailable extends Error {
  constructor() {
    super('the address index is not built');
    this.name = 'IndexUnavailable';
  }
}

/** Behind everything in a cut. */
const lastPlace = (height: number): Buffer => placeBytes(height, 0xffffffff);
const END = lastPlace(Number.MAX_SAFE_INTEGER);

function unspentOf([at, value]: Entry): IndexedOutput {
  const bytes = asBuffer(value);
  return {
    outpoint: decodeOutpoint(at.subarray(at.length - OUTPOINT_BYTES)),
    amount: bytes.readBigUInt64LE(0),
    source: OUTPUT_SOURCES[bytes[8] as number] as OutputSource,
    height: Number(bytes.readBigUInt64LE(9)),
  };
}

function transactionOf([at, value]: Entry): IndexedTransaction {
  const bytes = asBuffer(value);
  return {
    ...placeOf(at),
    id: bytes.subarray(0, ID_BYTES),
    blockId: bytes.subarray(ID_BYTES, 2 * ID_BYTES),
    outcome: OUTCOMES[bytes[96] as number] as Outcome,
    fee: bytes.readBigUInt64LE(97),
    mass: bytes.readUInt32LE(105),
    amount: bytes.readBigUInt64LE(109),
    index: bytes.readUInt32LE(117),
    spentAt: bytes.readUInt32LE(121),
  };
}

export class IndexReader {
  readonly #reader: StoreReader;
  readonly #finalized: () => number;
  #seen: number | undefined;

  /** `finalized` is the node's height: an index below it is not used for answers. */
  constructor(reader: StoreReader, finalized: () => number) {
    this.#reader = reader;
    this.#finalized = finalized;
  }

  /** The node's height, if the index has it: looked up once per cut. */
  height(): number {
    const finalized = this.#finalized();
    if (this.#seen !== finalized) {
      this.#stored();
      this.#seen = finalized;
    }
    return finalized;
  }

  /** The height in the store, which is one more between the write of a cut and its announcement. */
  #stored(): number {
    const height = decodeHead(this.#reader.get(HEAD_KEY));
    if (height === undefined || height < this.#finalized()) throw new IndexUnavailable();
    return height;
  }

  /** `take` must take its view of the store (a get, or the start of a range) before it first waits. */
  async #at<T>(take: () => T | Promise<T>): Promise<Indexed<T>> {
    for (;;) {
      const height = this.#stored();
      const value = take();
      if (this.#stored() === height) return { height, value: await value };
      await value;
    }
  }

  balance(address: Bytes): Indexed<Balance> {
    const height = this.height();
    const value = decodeBalance(this.#reader.get(key(SPACES.balance, address)));
    // A balance contains the height of its last change. Unless that is the cut being written now, it is the balance at
    // `height`.
    return { height: Math.max(height, value.changed), value };
  }

  balances(addresses: readonly Bytes[]): Indexed<Balance[]> {
    for (;;) {
      const height = this.#stored();
      const value = addresses.map((address) => decodeBalance(this.#reader.get(key(SPACES.balance, address))));
      if (this.#stored() === height) return { height, value };
    }
  }

  /** Unspent outputs in the order of their outpoints, above `after`. */
  unspent(address: Bytes, after: Bytes | undefined, limit: number): Promise<Indexed<IndexedOutput[]>> {
    return this.#at(() => this.#unspentRange(address, after, limit));
  }

  async #unspentRange(address: Bytes, after: Bytes | undefined, limit: number): Promise<IndexedOutput[]> {
    const prefix = key(SPACES.unspent, address);
    const from = after === undefined ? prefix : Buffer.concat([prefix, after, Buffer.of(0)]);
    return (await this.#reader.range(from, afterPrefix(prefix), { limit })).map(unspentOf);
  }

  /**
   * Unspent outputs of several addresses: of the first from `after` on, then of the others from their start, as many addresses as
   * `limit` may take. All ranges start at one moment.
   */
  unspentOfMany(
    addresses: readonly Bytes[],
    after: Bytes | undefined,
    limit: number,
  ): Promise<Indexed<{ address: Bytes; output: IndexedOutput }[]>> {
    return this.#at(async () => {
      const ranges: Promise<{ address: Bytes; output: IndexedOutput }[]>[] = [];
      let left = limit;
      addresses.forEach((address, i) => {
        if (left <= 0) return;
        const { utxos } = decodeBalance(this.#reader.get(key(SPACES.balance, address)));
        // How many of the first address lie behind the cursor is not known: it may give none.
        if (i > 0 || after === undefined) left -= utxos;
        if (utxos > 0)
          ranges.push(
            this.#unspentRange(address, i === 0 ? after : undefined, limit).then((outputs) =>
              outputs.map((output) => ({ address, output })),
            ),
          );
      });
      return (await Promise.all(ranges)).flat().slice(0, limit);
    });
  }

  /** Newest first, below `before`. Events stay bytes: the API formats them directly. */
  history(address: Bytes, before: Bytes | undefined, limit: number): Promise<Indexed<Uint8Array[]>> {
    const earlier = (event: Uint8Array): boolean =>
      before === undefined || Buffer.compare(eventOrder(event), before) < 0;
    return this.#at(() => {
      const newest = openEvents(this.#reader.get(key(SPACES.balance, address)))
        .filter(earlier)
        .reverse();
      if (newest.length >= limit) return newest.slice(0, limit);
      const prefix = key(SPACES.event, address);
      const to = before === undefined ? afterPrefix(prefix) : Buffer.concat([prefix, before]);
      // The first page may lie partly behind the cursor.
      const pages = Math.ceil((limit - newest.length) / PAGE_EVENTS) + 1;
      return this.#reader.values(prefix, to, { limit: pages, reverse: true }).then((found) => {
        const events = newest;
        for (const page of found)
          for (const event of splitEvents(page).reverse()) if (earlier(event)) events.push(event);
        return events.length > limit ? events.slice(0, limit) : events;
      });
    });
  }

  /** Oldest first, above `after`, of cuts up to `through`. */
  async eventsAfter(address: Bytes, after: Bytes, through: number, limit: number): Promise<PlacedEvent[]> {
    const prefix = key(SPACES.event, address);
    const start = Buffer.concat([prefix, after, Buffer.of(0)]);
    const { value } = await this.#at(async () => {
      const record = this.#reader.get(key(SPACES.balance, address));
      // A wallet queries all its addresses after every cut, and hardly any has changed: an unchanged one costs one
      // lookup and no range.
      if (record === undefined || Buffer.compare(after, lastPlace(decodeBalance(record).changed)) >= 0) return [];
      const open = openEvents(record);
      const [oldest] = open;
      if (oldest !== undefined && Buffer.compare(eventOrder(oldest), after) <= 0) return open;
      const pages = Math.ceil(limit / PAGE_EVENTS) + 1;
      const [containing, following] = await Promise.all([
        this.#reader.values(prefix, start, { limit: 1, reverse: true }),
        this.#reader.values(start, afterPrefix(prefix), { limit: pages }),
      ]);
      const paged = [...containing, ...following].flatMap((page) => splitEvents(page));
      // If pages are left, enough were read, and the open events come after the unread ones.
      return following.length === pages ? paged : [...paged, ...open];
    });
    const placed: PlacedEvent[] = [];
    for (const event of value) {
      if (Buffer.compare(eventOrder(event), after) <= 0) continue;
      const place = eventPlace(event);
      if (place.height > through || placed.length === limit) break;
      placed.push({ ...place, ...decodeEvent(event) });
    }
    return placed;
  }

  async changes(height: number, from: number, limit: number): Promise<(PlacedEvent & { address: Bytes })[]> {
    const entries = await this.#reader.values(
      key(SPACES.change, placeBytes(height, from)),
      key(SPACES.change, placeBytes(height + 1, 0)),
      { limit },
    );
    return entries.map((value) => ({
      ...eventPlace(value),
      ...decodeEvent(value),
      address: value.subarray(EVENT_BYTES, EVENT_BYTES + ADDRESS_PAYLOAD_BYTES),
    }));
  }

  async transactions(height: number, from: number, limit: number): Promise<IndexedTransaction[]> {
    const entries = await this.#reader.range(
      key(SPACES.transaction, placeBytes(height, from)),
      key(SPACES.transaction, placeBytes(height + 1, 0)),
      { limit },
    );
    return entries.map(transactionOf);
  }

  recentTransactions(limit: number): Promise<Indexed<IndexedTransaction[]>> {
    return this.#at(async () => {
      const space = Buffer.of(SPACES.transaction);
      const entries = await this.#reader.range(space, key(SPACES.transaction, END), { limit, reverse: true });
      return entries.map(transactionOf);
    });
  }

  recentBlocks(limit: number): Promise<Indexed<Bytes[]>> {
    return this.#at(async () => {
      const space = Buffer.of(SPACES.block);
      return await this.#reader.values(space, key(SPACES.block, END), { limit, reverse: true });
    });
  }

  /** The finalized cut that put the address's key into the registry. */
  keyHeight(address: Bytes): number | undefined {
    return decodeHead(this.#reader.get(key(SPACES.key, address)));
  }
}

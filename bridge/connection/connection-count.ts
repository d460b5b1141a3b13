/**
 * Connections per address, and connections of it that have had a share accepted, counted by all listener threads in
 * shared memory. Each address in use has a word of its own: 48 bits of a keyed hash of it, and its count. The hash also
 * chooses the bucket of 64 words that it is in; nobody without the key, which is random with every start, can choose
 * addresses that share a word or fill a bucket. A word is free again when its count is 0, so the table is bounded by
 * the connections that there may be. Each thread also keeps its own counts: a thread that dies closes its connections
 * without counting them down, and its own counts are subtracted then.
 */
import { hash, randomBytes } from 'node:crypto';

const KEY_BYTES = 16;
/** The total, and the key of the hash. */
const HEAD_WORDS = 1 + KEY_BYTES / 8;
const BUCKET = 64;
/**
 * Words for each connection: two addresses in use at most (one of them as working), in a table that is half full. One
 * bucket in ten million is then full; an address that finds none is not counted.
 */
const WORDS_A_CONNECTION = 4;
const COUNT_BITS = 16n;
const MOST = (1n << COUNT_BITS) - 1n;

export function connectionCountMemory(connections: number): SharedArrayBuffer {
  const buckets = 2 ** Math.ceil(Math.log2(Math.max(1, (WORDS_A_CONNECTION * connections) / BUCKET)));
  const memory = new SharedArrayBuffer(8 * (HEAD_WORDS + buckets * BUCKET));
  new Uint8Array(memory, 8, KEY_BYTES).set(randomBytes(KEY_BYTES));
  return memory;
}

/** The address with a count of 0, and where its bucket begins. */
type Place = { readonly word: bigint; readonly bucket: number };

export class ConnectionCount {
  readonly #all: Int32Array;
  readonly #cells: BigInt64Array;
  /** The upper halves of the words, which are quick to compare. */
  readonly #halves: Int32Array;
  readonly #buckets: number;
  readonly #key: string;
  readonly #own: ConnectionCount | undefined;

  /** `own` holds the counts of one thread. */
  constructor(memory: SharedArrayBuffer, own?: SharedArrayBuffer) {
    this.#all = new Int32Array(memory, 0, 1);
    this.#cells = new BigInt64Array(memory, 8 * HEAD_WORDS);
    this.#halves = new Int32Array(memory, 8 * HEAD_WORDS);
    this.#buckets = this.#cells.length / BUCKET;
    this.#key = Buffer.from(new Uint8Array(memory, 8, KEY_BYTES)).toString('hex');
    this.#own = own === undefined ? undefined : new ConnectionCount(own);
  }

  get all(): number {
    return Atomics.load(this.#all, 0);
  }

  of(key: string): number {
    return this.#at(this.#placeOf(key));
  }

  add(key: string, amount: 1 | -1): void {
    Atomics.add(this.#all, 0, amount);
    if (this.#own !== undefined) Atomics.add(this.#own.#all, 0, amount);
    this.#count(this.#placeOf(key), amount);
  }

  /** Whether a connection of the address has had a share accepted. */
  works(key: string): boolean {
    return this.of(`works ${key}`) > 0;
  }

  addWorking(key: string, amount: 1 | -1): void {
    this.#count(this.#placeOf(`works ${key}`), amount);
  }

  /** The thread has died, and all its connections with it. */
  giveBackAll(): void {
    const own = this.#own as ConnectionCount;
    Atomics.sub(this.#all, 0, Atomics.exchange(own.#all, 0, 0));
    for (let i = 0; i < own.#cells.length; i++) {
      const word = Atomics.exchange(own.#cells, i, 0n);
      const place = { word: word & ~MOST, bucket: i - (i % BUCKET) };
      for (let left = word & MOST; left > 0n; left--) this.#move(place, -1);
    }
  }

  #count(place: Place, amount: 1 | -1): void {
    this.#move(place, amount);
    if (this.#own !== undefined) this.#own.#move(place, amount);
  }

  #placeOf(key: string): Place {
    const digest = hash('sha256', this.#key + key, 'buffer');
    // No word is 0, which is a free one.
    const word = BigInt.asIntN(64, (digest.readBigUInt64LE(0) | 1n) << COUNT_BITS);
    return { word, bucket: (digest.readUInt32LE(8) % this.#buckets) * BUCKET };
  }

  /** Two threads may have begun a word of the same address at once: the count is their sum. */
  #at({ word, bucket }: Place): number {
    const half = Number(word >> 32n);
    let sum = 0;
    for (let i = bucket; i < bucket + BUCKET; i++) {
      if (Atomics.load(this.#halves, 2 * i + 1) !== half) continue;
      const found = Atomics.load(this.#cells, i);
      if ((found & ~MOST) === word) sum += Number(found & MOST);
    }
    return sum;
  }

  #move(place: Place, amount: 1 | -1): void {
    while (amount === 1 ? !(this.#change(place, 1n) ?? this.#begin(place)) : !(this.#change(place, -1n) ?? true));
  }

  /** False if another thread was quicker; undefined if the address has no word. */
  #change({ word, bucket }: Place, amount: 1n | -1n): boolean | undefined {
    const half = Number(word >> 32n);
    for (let i = bucket; i < bucket + BUCKET; i++) {
      if (Atomics.load(this.#halves, 2 * i + 1) !== half) continue;
      const found = Atomics.load(this.#cells, i);
      if ((found & ~MOST) !== word || (amount === 1n && (found & MOST) === MOST)) continue;
      const next = found + amount;
      return Atomics.compareExchange(this.#cells, i, found, (next & MOST) === 0n ? 0n : next) === found;
    }
    return undefined;
  }

  /** False if another thread took the word. A full bucket counts nothing. */
  #begin({ word, bucket }: Place): boolean {
    for (let i = bucket; i < bucket + BUCKET; i++)
      if (Atomics.load(this.#cells, i) === 0n) return Atomics.compareExchange(this.#cells, i, 0n, word + 1n) === 0n;
    return true;
  }
}

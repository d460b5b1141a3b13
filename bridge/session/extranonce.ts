/**
 * Extranonces by counter (ledger rule 8): `boot id 8 | u8 thread | u32 connection | u32 generation`, after the tag. The
 * boot id is random per process start, the rest only counts up, so no two connections of any instance ever hash the same
 * header. A service's mark is in the byte of the thread (protocol/books/block-service.ts). All but the generation name the connection; after a block, and for another share work, a connection moves to
 * a later generation.
 *
 * What a header's hashes count for is decided by the miner's login, or follows its shares. So nobody may know a header before that: who did
 * could hash first, and then ask for the share work of its best hash. The upper half of a connection's number is known only
 * from its first job, and how far generations count up is drawn.
 */
import { hash, randomBytes } from 'node:crypto';
import { UNIQUE_BYTES } from '../../protocol/books/block-service.ts';
import { ByteReader, type Bytes, ByteWriter, equalBytes } from '../../protocol/bytes.ts';
import { decodeExtranonce, encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { MOST_PARTS } from '../nodes/origin-job.ts';

export const BOOT_ID_BYTES = 8;
export const OWNER_BYTES = BOOT_ID_BYTES + 1 + 4;
export const MAX_GENERATION = 0xffffffff;
const MAX_CONNECTION = 0xffffffff;
/** Where the counters of 256 threads end. For all threads follow one for each session at another server, and a bit for each prefix that a connection has. */
const GENERATIONS = 256;
const NEXT_PREFIX = GENERATIONS + MOST_PARTS;
const TAKEN_PREFIXES = NEXT_PREFIX + 1;
const PREFIXES = 0x1_0000;
const WORD_BITS = 32;
/** Then the place of the newest cut (nodes/told-cuts.ts), and the key of the connections' names. */
const TOLD_CUTS = TAKEN_PREFIXES + PREFIXES / WORD_BITS;
const NAME_KEY = TOLD_CUTS + 1;
const NAME_KEY_BYTES = 16;
const NAME_ROUNDS = 4;
/** A generation is at most this far above the one before it. */
const MOST_STEPS = 0x1000;

export type ConnectionName = { readonly bootId: Bytes; readonly thread: number; readonly connection: number };

/** The bytes that name a connection in an extranonce: the key under which its account is on record. */
export const ownerBytes = (name: ConnectionName): Uint8Array<ArrayBuffer> =>
  new ByteWriter(OWNER_BYTES).raw(name.bootId).u8(name.thread).u32(name.connection).done();

/** The number in them. Read byte by byte: a view would move these few bytes out of the heap. */
export function connectionNumber(owner: Bytes): number {
  const at = owner.length - 4;
  const low = (owner[at] as number) | ((owner[at + 1] as number) << 8) | ((owner[at + 2] as number) << 16);
  return (low | ((owner[at + 3] as number) << 24)) >>> 0;
}

/** Decides which of the draws of a cut the connection mines on. */
export const drawOf = (owner: Bytes): number => connectionNumber(owner) & 0xffff;

/** Whether a start of a server gave this name. */
export const isNamedBy = (bootId: Bytes, owner: Bytes): boolean => equalBytes(owner.subarray(0, BOOT_ID_BYTES), bootId);

/** The parts of the connection's name. */
export function numbersOf(owner: Bytes): { readonly owner: Bytes; readonly prefix: number; readonly handle: number } {
  const handle = connectionNumber(owner);
  return { owner, prefix: handle & 0xffff, handle };
}

export const extranonceOf = (tag: string, owner: Bytes, generation: number): Uint8Array<ArrayBuffer> =>
  encodeExtranonce(tag, new ByteWriter(UNIQUE_BYTES).raw(owner).u32(generation).done());

/** Owner and generation of an extranonce that this program made; undefined for anybody else's. */
export function readExtranonce(extranonce: Bytes): { owner: Bytes; generation: number; tag: string } | undefined {
  const { tag, unique } = decodeExtranonce(extranonce);
  if (unique.length !== UNIQUE_BYTES) return undefined;
  const reader = new ByteReader(unique);
  return { owner: reader.take(OWNER_BYTES), generation: reader.u32(), tag };
}

/**
 * The counters of the listener threads, in memory that outlives them: a thread that replaces a dead one continues its
 * counter. From 0 again it would give two connections the same name, and so the same headers.
 */
export function connectionNumberMemory(key: Bytes = randomBytes(NAME_KEY_BYTES)): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(4 * NAME_KEY + NAME_KEY_BYTES);
  new Uint8Array(memory, 4 * NAME_KEY).set(key);
  return memory;
}

/** Generations begin anew, for a farm of its own. */
export const beginGenerations = (memory: SharedArrayBuffer, part: number): void =>
  void Atomics.store(new Uint32Array(memory), GENERATIONS + part, 0);

/** A node has told of a cut with this place: listener threads send templates on it sooner or later, one of them perhaps before another. */
export const notePlace = (memory: SharedArrayBuffer, place: number): void =>
  void Atomics.store(new Uint32Array(memory), TOLD_CUTS, place);

/** Hands out connection numbers of one thread. Numbers are never used again in the life of a boot id. */
export class ConnectionCounter {
  readonly #bootId: Bytes;
  readonly #thread: number;
  readonly #next: Uint32Array;
  /** As text. */
  readonly #key: string;

  constructor(bootId: Bytes, thread: number, memory: SharedArrayBuffer) {
    this.#bootId = bootId;
    this.#thread = thread;
    this.#next = new Uint32Array(memory);
    this.#key = Buffer.from(new Uint8Array(memory, 4 * NAME_KEY)).toString('hex');
  }

  /** `mark` is the service's, told by the extranonce. */
  next(mark = 0): Uint8Array<ArrayBuffer> {
    const count = Atomics.load(this.#next, this.#thread);
    if (count >= MAX_CONNECTION) throw new RangeError('connection numbers are used up: restart for a new boot id');
    Atomics.store(this.#next, this.#thread, count + 1);
    return ownerBytes({ bootId: this.#bootId, thread: this.#thread | mark, connection: this.#numberOf(count) });
  }

  /** The lower half is the prefix, which a miner learns before it says what it wants. The upper half is a keyed permutation of the count's. */
  #numberOf(count: number): number {
    const prefix = count & 0xffff;
    let [left, right] = [count >>> 24, (count >>> 16) & 0xff];
    for (let round = 0; round < NAME_ROUNDS; round++) {
      const mixed = hash('sha256', `${this.#key} ${this.#thread} ${prefix} ${round} ${right}`, 'buffer')[0] as number;
      [left, right] = [right, left ^ mixed];
    }
    return ((left << 24) | (right << 16) | prefix) >>> 0;
  }

  /** A generation of its own for a connection whose extranonces have nothing else of their own; undefined after the last. */
  generation(first: number, part: number): number | undefined {
    const at = GENERATIONS + part;
    for (;;) {
      const next = Atomics.load(this.#next, at);
      const taken = Math.max(next, first);
      if (taken >= MAX_GENERATION) return undefined;
      if (Atomics.compareExchange(this.#next, at, next, taken + 1) === next) return taken;
    }
  }

  /** The place of the newest cut that any node has told of. */
  get toldCuts(): number {
    return Atomics.load(this.#next, TOLD_CUTS);
  }

  /** A prefix for a connection whose header others have too: one that none of them has, while there is one. */
  takePrefix(): number {
    for (let tried = 1; ; tried++) {
      const prefix = Atomics.add(this.#next, NEXT_PREFIX, 1) % PREFIXES;
      const bit = 1 << (prefix % WORD_BITS);
      const before = Atomics.or(this.#next, TAKEN_PREFIXES + Math.floor(prefix / WORD_BITS), bit);
      if ((before & bit) === 0 || tried === PREFIXES) return prefix;
    }
  }

  /** Its connection has ended. */
  freePrefix(prefix: number): void {
    Atomics.and(this.#next, TAKEN_PREFIXES + Math.floor(prefix / WORD_BITS), ~(1 << (prefix % WORD_BITS)));
  }
}

/** Undefined after the last: such a connection needs a new number. `steps`: how many are left out. */
export const nextGeneration = (generation: number, steps = 0): number | undefined =>
  generation + steps < MAX_GENERATION ? generation + 1 + steps : undefined;

/** Drawn: `random` are two bytes. */
export const stepsOf = ([low = 0, high = 0]: Bytes): number => ((high << 8) | low) % MOST_STEPS;

/**
 * Connections per address, counted by all listener threads in shared memory: two rows of counters, indexed by two
 * hashes of the address. The smaller of the two counters is never too small. The first cell is the total. Each thread
 * also keeps its own counts: a thread that dies closes its connections without counting them down, and its own counts
 * are subtracted then.
 */
const CELLS = 1 << 16;

function hash(text: string, basis: number): number {
  let value = basis;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) & (CELLS - 1);
}

export const connectionCountMemory = (): SharedArrayBuffer => new SharedArrayBuffer(4 * (1 + 2 * CELLS));

export class ConnectionCount {
  readonly #cells: Int32Array;
  readonly #own: Int32Array;

  /** `own` holds the counts of one thread. */
  constructor(memory: SharedArrayBuffer, own: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory);
    this.#own = new Int32Array(own);
  }

  get all(): number {
    return Atomics.load(this.#cells, 0);
  }

  of(key: string): number {
    const [first, second] = places(key);
    return Math.min(Atomics.load(this.#cells, first), Atomics.load(this.#cells, second));
  }

  add(key: string, amount: 1 | -1): void {
    const [first, second] = places(key);
    addAt(this.#cells, first, second, amount);
    addAt(this.#own, first, second, amount);
  }

  /** The thread has died, and all its connections with it. */
  giveBackAll(): void {
    for (let i = 0; i < this.#own.length; i++) {
      const count = Atomics.exchange(this.#own, i, 0);
      if (count !== 0) Atomics.sub(this.#cells, i, count);
    }
  }
}

function addAt(cells: Int32Array, first: number, second: number, amount: 1 | -1): void {
  Atomics.add(cells, 0, amount);
  Atomics.add(cells, first, amount);
  Atomics.add(cells, second, amount);
}

const places = (key: string): readonly [number, number] => [
  1 + hash(key, 0x811c9dc5),
  1 + CELLS + hash(key, 0x9e3779b9),
];

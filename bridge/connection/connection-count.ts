/**
 * Connections per address, counted by all listener threads in shared memory: two rows of counters under two hashes of the
 * address, of which the smaller is never too small. The first cell is the sum of all.
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

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory);
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
    Atomics.add(this.#cells, 0, amount);
    Atomics.add(this.#cells, first, amount);
    Atomics.add(this.#cells, second, amount);
  }
}

const places = (key: string): readonly [number, number] => [
  1 + hash(key, 0x811c9dc5),
  1 + CELLS + hash(key, 0x9e3779b9),
];

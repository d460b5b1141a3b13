/**
 * Tells request ids that were never used from those that may have been, without asking the disk: a Bloom filter over
 * every id of the request table. A miss is certain, because the filter has every id on disk and of every step; a hit is
 * looked up. The store's reads block the calling thread while the store is busy, which was the longest wait of a
 * payment.
 */

/** With 16 bits an id and 7 places each, fewer than one new id in a thousand is looked up in vain. */
const BITS_PER_ID = 16;
const PLACES = 7;
/** Room for the ids of this process: beyond it more of them are looked up, and nothing else changes. */
const LEAST_IDS = 1 << 18;
const MOST_BITS = 2 ** 31;

export class RequestFilter {
  readonly #words: Uint32Array;
  readonly #mask: number;

  /** `known` is how many ids there are at the start. */
  constructor(known: number) {
    const wanted = BITS_PER_ID * Math.max(LEAST_IDS, 2 * known);
    const bits = Math.min(MOST_BITS, 2 ** Math.ceil(Math.log2(wanted)));
    this.#words = new Uint32Array(bits / 32);
    this.#mask = bits - 1;
  }

  add(requestId: string): void {
    for (const place of places(requestId)) {
      const bit = (place & this.#mask) >>> 0;
      this.#words[bit >>> 5] = (this.#words[bit >>> 5] as number) | (1 << (bit & 31));
    }
  }

  /** False: this id is in no step and not on disk. */
  mayHave(requestId: string): boolean {
    for (const place of places(requestId)) {
      const bit = (place & this.#mask) >>> 0;
      if (((this.#words[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }
}

/** Two FNV-1a hashes from different starts, the rest made of them (Kirsch and Mitzenmacher). */
function places(text: string): Uint32Array {
  let [first, second] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    first = Math.imul(first ^ unit, 0x01000193);
    second = Math.imul(second ^ unit, 0x85ebca6b);
    second ^= second >>> 13;
  }
  first ^= first >>> 16;
  second |= 1;
  const found = new Uint32Array(PLACES);
  for (let i = 0; i < PLACES; i++) found[i] = first + Math.imul(i, second);
  return found;
}

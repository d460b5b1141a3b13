/**
 * A set of share identities in one piece of memory: 24 bytes a slot, at most two thirds of them used. Ten minutes of a pool
 * with thousands of shares a second are millions of values; as objects they would dominate garbage
 * collection. The hash has a random seed per process: miners choose nonces, and must not be able to cause collisions.
 */
import { randomBytes } from 'node:crypto';
import { SHARE_IDENTITY_BYTES } from '../../protocol/books/share-identity.ts';
import type { Bytes } from '../../protocol/bytes.ts';

const WORDS = SHARE_IDENTITY_BYTES / 4;
const FIRST_SLOTS = 256;
const SEED = randomBytes(4).readUInt32LE(0);

/** The six words of an identity; one shared buffer, since nothing here is asynchronous. */
const words = new Uint32Array(WORDS);
const wordBytes = new Uint8Array(words.buffer);

function hash(): number {
  let value = SEED;
  for (let i = 0; i < WORDS; i++) {
    value = Math.imul(value ^ (words[i] as number), 0x9e3779b1);
    value ^= value >>> 15;
  }
  value = Math.imul(value, 0x85ebca6b);
  return (value ^ (value >>> 13)) >>> 0;
}

export class IdentitySet {
  #slots = new Uint32Array(WORDS * FIRST_SLOTS);
  #mask = FIRST_SLOTS - 1;
  /** A slot of zeros is empty. */
  #hasZero = false;
  size = 0;

  /** False when it was there already. */
  add(identity: Bytes): boolean {
    wordBytes.set(identity);
    const isNew = isZero(words, 0) ? !this.#hasZero : this.#place();
    if (!isNew) return false;
    if (isZero(words, 0)) this.#hasZero = true;
    this.size++;
    if (this.size * 3 > (this.#mask + 1) * 2) this.#grow();
    return true;
  }

  /** Linear probing: puts `words` into the first empty slot, unless it is found before. */
  #place(): boolean {
    const slots = this.#slots;
    for (let slot = hash() & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = slot * WORDS;
      let i = 0;
      while (i < WORDS && slots[at + i] === words[i]) i++;
      if (i === WORDS) return false;
      if (!isZero(slots, at)) continue;
      for (i = 0; i < WORDS; i++) slots[at + i] = words[i] as number;
      return true;
    }
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    this.#mask = this.#mask * 2 + 1;
    for (let at = 0; at < old.length; at += WORDS) {
      if (isZero(old, at)) continue;
      for (let i = 0; i < WORDS; i++) words[i] = old[at + i] as number;
      this.#place();
    }
  }
}

function isZero(slots: Uint32Array, at: number): boolean {
  for (let i = 0; i < WORDS; i++) if (slots[at + i] !== 0) return false;
  return true;
}

/**
 * Detects templates that equal an earlier one, byte for byte: a node whose clock does not advance, or one that serves
 * again after another, may give the same twice. Under a new serial it would still have the same headers, so every
 * session takes a fresh body on such a template (bodies.ts).
 */

import { headerDigest } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';

const NOTHING = new Uint8Array(0);

export class RepeatedTemplates {
  readonly #memoryMillis: number;
  readonly #seen = new Map<string, number>();

  /** `memoryMillis`: longer than any session knows a job. */
  constructor(memoryMillis: number) {
    this.#memoryMillis = memoryMillis;
  }

  /** `head`: of the extranonces on it, where another server names it. */
  isRepeat(header: Bytes, nowMillis: number, head: Bytes = NOTHING): boolean {
    for (const [digest, atMillis] of this.#seen) {
      if (nowMillis - atMillis <= this.#memoryMillis) break;
      this.#seen.delete(digest);
    }
    // The reward root is each session's own.
    const common = Uint8Array.from(header).fill(0, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + ID_BYTES);
    const digest = toHex(headerDigest(common)) + toHex(head);
    const isKnown = this.#seen.delete(digest);
    this.#seen.set(digest, nowMillis);
    return isKnown;
  }
}

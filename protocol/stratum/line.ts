/**
 * Splits a byte stream into lines (docs/protocol/stratum.md, S10). It holds at most one unfinished line of 16 KiB, and
 * nothing between lines; a longer line is refused as soon as it is seen to be one.
 */
import type { Bytes } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

/** With its LF. */
export const MAX_LINE_BYTES = 16_384;
const LF = 10;
const FIRST_CAPACITY = 256;

export class LineSplitter {
  #held: Uint8Array | null = null;
  #length = 0;

  /** Bytes of an unfinished line. */
  get held(): number {
    return this.#length;
  }

  /**
   * Passes each complete line, without its LF, to `take`; the bytes are valid only during the call. `take` returns
   * false to stop: the rest of the chunk is dropped. Throws too_long; the connection must then be closed.
   */
  push(chunk: Bytes, take: (line: Bytes) => boolean): void {
    let from = 0;
    while (from < chunk.length) {
      const end = chunk.indexOf(LF, from);
      const stop = end < 0 ? chunk.length : end;
      const length = this.#length + stop - from;
      if (length >= MAX_LINE_BYTES) {
        this.clear();
        throw new ProtocolError('too_long', `a line has at most ${MAX_LINE_BYTES} bytes`);
      }
      if (end < 0) {
        this.#hold(chunk.subarray(from));
        return;
      }
      let line = chunk.subarray(from, end);
      if (this.#length > 0) {
        this.#hold(line);
        line = (this.#held as Uint8Array).subarray(0, this.#length);
        this.clear();
      }
      from = end + 1;
      if (!take(line)) return;
    }
  }

  clear(): void {
    this.#held = null;
    this.#length = 0;
  }

  #hold(part: Bytes): void {
    const need = this.#length + part.length;
    if (this.#held === null || need > this.#held.length) {
      // Doubling keeps a line that comes byte by byte linear.
      const grown = new Uint8Array(Math.min(MAX_LINE_BYTES, Math.max(need, FIRST_CAPACITY, 2 * this.#length)));
      if (this.#held !== null) grown.set(this.#held.subarray(0, this.#length));
      this.#held = grown;
    }
    this.#held.set(part, this.#length);
    this.#length = need;
  }
}

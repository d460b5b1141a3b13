/**
 * JSON written straight into bytes, for the answers that are long and asked for thousands of times a second: joined texts would be put
 * together twice, once as text and once for the socket, and identifiers would each become a text of their own first.
 */
const LETTERS = Buffer.from('0123456789abcdef', 'latin1');
const HIGH = Uint8Array.from({ length: 256 }, (_, byte) => LETTERS[byte >> 4] as number);
const LOW = Uint8Array.from({ length: 256 }, (_, byte) => LETTERS[byte & 15] as number);

/** Fixed pieces of a document. */
export const piece = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'));

/** Holds one document at a time, from `begin` to `take`; nothing may wait in between. ASCII only. */
export class JsonBytes {
  #bytes = new Uint8Array(64 * 1024);
  #length = 0;

  /** What a document that was never taken left is forgotten. */
  begin(): this {
    this.#length = 0;
    return this;
  }

  piece(bytes: Uint8Array): this {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  text(text: string): this {
    this.#reserve(text.length);
    for (let i = 0; i < text.length; i++) this.#bytes[this.#length++] = text.charCodeAt(i);
    return this;
  }

  /** `bytes[from..to)` as hex. */
  hex(bytes: Uint8Array, from: number, to: number): this {
    this.#reserve(2 * (to - from));
    let at = this.#length;
    for (let i = from; i < to; i++) {
      const byte = bytes[i] as number;
      this.#bytes[at++] = HIGH[byte] as number;
      this.#bytes[at++] = LOW[byte] as number;
    }
    this.#length = at;
    return this;
  }

  take(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = new Uint8Array(2 * (this.#length + more));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/**
 * Memory for long answers, reused: allocating two mebibytes for each template would cause a full GC every few
 * requests, which stalls the main thread.
 */
const MAX_SPARE = 4;
/** Sizes are a multiple of this, so that buffers fit other answers of about the same length. */
const STEP = 64 * 1024;

export class AnswerRooms {
  /** The smallest first. */
  readonly #spare: ArrayBuffer[] = [];

  take(bytes: number): Buffer {
    const index = this.#spare.findIndex((spare) => spare.byteLength >= bytes);
    const [spare] = index < 0 ? [] : this.#spare.splice(index, 1);
    return Buffer.from(spare ?? new ArrayBuffer(Math.ceil(bytes / STEP) * STEP));
  }

  /** Call only when it is no longer read. */
  giveBack(room: Buffer): void {
    this.#spare.push(room.buffer as ArrayBuffer);
    this.#spare.sort((a, b) => a.byteLength - b.byteLength);
    if (this.#spare.length > MAX_SPARE) this.#spare.shift();
  }
}

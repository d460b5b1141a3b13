/**
 * Memory for long answers, used again and again: two mebibytes for each template, taken anew, would have the whole heap searched for garbage every few
 * requests, and that holds up everything else.
 */
const MAX_SPARE = 4;
/** Rooms are a multiple of this, so that answers of about the same length fit each other's. */
const STEP = 64 * 1024;

export class AnswerRooms {
  /** The smallest first. */
  readonly #spare: ArrayBuffer[] = [];

  take(bytes: number): Buffer {
    const place = this.#spare.findIndex((spare) => spare.byteLength >= bytes);
    const [spare] = place < 0 ? [] : this.#spare.splice(place, 1);
    return Buffer.from(spare ?? new ArrayBuffer(Math.ceil(bytes / STEP) * STEP));
  }

  /** Only when nobody reads it any more. */
  giveBack(room: Buffer): void {
    this.#spare.push(room.buffer as ArrayBuffer);
    this.#spare.sort((a, b) => a.byteLength - b.byteLength);
    if (this.#spare.length > MAX_SPARE) this.#spare.shift();
  }
}

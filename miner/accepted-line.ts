/** Accepted shares in the log: the first at once, then one line a minute with their number and work. Pure; the time is passed in. */
import { LINE_LIMIT, type Write } from './line-limit.ts';

export class AcceptedLine {
  readonly #write: Write;
  readonly #now: () => number;
  #writtenAt: number | undefined;
  #count = 0;
  #work = 0n;

  constructor(write: Write, now: () => number) {
    this.#write = write;
    this.#now = now;
  }

  add(device: number, work: bigint): void {
    const isQuiet = this.#writtenAt === undefined;
    if (isQuiet) {
      this.#writtenAt = this.#now();
      this.#write('info', 'share accepted', { device, work });
      return;
    }
    this.#count++;
    this.#work += work;
    this.tick();
  }

  /** Call about once a second. */
  tick(): void {
    const now = this.#now();
    if (this.#writtenAt === undefined || Math.abs(now - this.#writtenAt) < LINE_LIMIT.everyMillis) return;
    if (this.#count === 0) {
      this.#writtenAt = undefined;
      return;
    }
    this.#writtenAt = now;
    this.#write('info', 'shares accepted', { count: this.#count, work: this.#work });
    this.#count = 0;
    this.#work = 0n;
  }
}

/**
 * When the dispatches of a device ended, how fast they were, and how long the device had nothing to do between them. One queue
 * works them off in the order of their submission, whichever kernel they run. Pure.
 */
import type { DeviceUsage } from '../backend.ts';

/** When the last dispatch ended, as far as the host can tell; shared by all who submit to one device. */
export class Timeline {
  #lastDone = 0;
  #missed = 0;

  /** When a dispatch began that was submitted at that time. */
  start(submitted: number): number {
    return Math.max(submitted, this.#lastDone);
  }

  /** Several ends in a row were not seen: what is expected may be wrong, so the next end is to be waited for without a sleep. */
  get isLost(): boolean {
    return this.#missed >= MOST_MISSED;
  }

  /**
   * A dispatch was asked for at `asked` and its results were there at `got`. When they had to be waited for, that is its end.
   * Else it ended before, unseen: a host that woke late takes what was expected, or every lateness would add to the next
   * one's. Returns its end.
   */
  ended(asked: number, got: number, expected: number): number {
    const wasSeen = got - asked > AT_ONCE_MILLIS;
    this.#missed = wasSeen || got < expected ? 0 : this.#missed + 1;
    this.#lastDone = wasSeen ? got : Math.max(this.#lastDone, Math.min(got, expected));
    return this.#lastDone;
  }
}

/** Results that are there within this time were there before. */
const AT_ONCE_MILLIS = 0.5;
const MOST_MISSED = 2;

/** Older dispatches count for less and less: about the last five are looked at. */
const DECAY = 0.8;

/**
 * Milliseconds a nonce, smoothed: a host that wakes late makes one dispatch look long and the next one short by the same
 * amount, so only several of them together tell the truth.
 */
export class Speed {
  #millis = 0;
  #nonces = 0;

  add(nonces: number, millis: number): void {
    this.#millis = DECAY * this.#millis + Math.max(0, millis);
    this.#nonces = DECAY * this.#nonces + nonces;
  }

  get millisPerNonce(): number {
    return this.#nonces === 0 ? 0 : this.#millis / this.#nonces;
  }
}

/** Milliseconds of the device's own clock. */
export type Pass = { readonly began: number; readonly ended: number };

/** Adds up passes that follow each other while there is work, and the gaps between them. */
export class UsageMeter {
  #busy = 0;
  #idle = 0;
  #ended: number | undefined;

  /** There was nothing to do before the next pass: the gap is nobody's fault. */
  rest(): void {
    this.#ended = undefined;
  }

  add({ began, ended }: Pass): void {
    // Devices may give times of a pass that was interrupted by a reset of their clock: such a pass says nothing.
    if (!(ended > began)) {
      this.rest();
      return;
    }
    this.#busy += ended - began;
    if (this.#ended !== undefined && began > this.#ended) this.#idle += began - this.#ended;
    this.#ended = ended;
  }

  get usage(): DeviceUsage {
    return { busyMillis: this.#busy, idleMillis: this.#idle };
  }
}

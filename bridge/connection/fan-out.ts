/**
 * Sends a new job to every connection, in slices of about a millisecond, so that submits are read and answered between
 * them. Only the newest job is sent. A connection with unsent output gets none until that output is gone, and then the
 * newest. So a slow reader does not delay others, and is never sent two jobs where one is enough.
 */
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Conversation } from './conversation.ts';

const SLICE_MILLIS = 1;
/** Reading the clock for each connection would cost more than some of the writes. */
const CHECK_EVERY = 8;

export type FanOutDependencies = {
  readonly soon: (run: () => void) => void;
  readonly now: MonotonicClock;
  /** An unexpected error on one connection: it ends, the others get their job. */
  readonly onDefect: (conversation: Conversation, error: unknown) => void;
};

export class FanOut {
  readonly #conversations: Set<Conversation>;
  readonly #dependencies: FanOutDependencies;
  readonly #delayed = new Set<Conversation>();
  #cursor: Iterator<Conversation> | null = null;
  #running = false;
  #clean = false;
  #startedAt = 0;
  sent = 0;
  skipped = 0;
  lastMillis = 0;

  constructor(conversations: Set<Conversation>, dependencies: FanOutDependencies) {
    this.#conversations = conversations;
    this.#dependencies = dependencies;
  }

  start(clean: boolean): void {
    this.#clean = clean;
    this.#cursor = this.#conversations.values();
    this.#startedAt = this.#dependencies.now();
    if (this.#running) return;
    this.#running = true;
    this.#slice();
  }

  readonly #slice = (): void => {
    const { now, soon } = this.#dependencies;
    const until = now() + SLICE_MILLIS;
    for (let i = 1; this.#cursor !== null; i++) {
      const next = this.#cursor.next();
      if (next.done === true) {
        this.#cursor = null;
        break;
      }
      this.#offer(next.value);
      if (i % CHECK_EVERY === 0 && now() >= until) {
        soon(this.#slice);
        return;
      }
    }
    this.#running = false;
    this.lastMillis = now() - this.#startedAt;
  };

  #offer(conversation: Conversation): void {
    const { peer } = conversation;
    const { mining } = conversation.session;
    if (mining === null || mining.isDraining || conversation.isEnding || mining.isCurrent) return;
    if (peer.queued > 0) {
      this.skipped++;
      this.#delayed.add(conversation);
      return;
    }
    this.sent++;
    try {
      mining.offer(this.#clean);
    } catch (error) {
      this.#dependencies.onDefect(conversation, error);
    }
  }

  /** At every tick: connections that have caught up get the newest job. */
  sendDelayed(): void {
    for (const conversation of this.#delayed)
      if (conversation.peer.queued === 0) {
        this.#delayed.delete(conversation);
        this.#offer(conversation);
      }
  }

  forget(conversation: Conversation): void {
    this.#delayed.delete(conversation);
  }
}

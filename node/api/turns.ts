/**
 * Fair scheduling of reads. Each client has a few reads in flight; clients take turns; after a few milliseconds the
 * scheduler yields to the event loop. A client that spends its whole allowance at once delays itself and hardly any
 * other. Allowances are in rate-limit.ts.
 */
import { type MonotonicClock, monotonicMillis } from '../../runtime/clock/clock.ts';

export type TurnLimits = {
  /** Units of cost (protocol/api/routes.ts) that one client has in flight; a single read may cost more. */
  readonly units: number;
  /** How long reads are started before other work gets a turn: cuts, blocks, other connections. */
  readonly sliceMillis: number;
};

/** A unit is at most half a millisecond of the main thread. */
export const TURN_LIMITS: TurnLimits = { units: 64, sliceMillis: 10 };

type Waiting = { readonly cost: number; readonly start: () => void };
type Lane = { readonly name: string; units: number; isQueued: boolean; readonly waiting: Waiting[] };

export class Turns {
  readonly #limits: TurnLimits;
  readonly #now: MonotonicClock;
  /** Clients with a read in flight or waiting. */
  readonly #clients = new Map<string, Lane>();
  /** Those of them whose next read can start. */
  readonly #queue: Lane[] = [];
  #spentMillis = 0;
  #isNextSet = false;

  constructor(limits: TurnLimits = TURN_LIMITS, now: MonotonicClock = monotonicMillis) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Number of clients with a read in flight or waiting. */
  get clients(): number {
    return this.#clients.size;
  }

  /** Calls `work` when it is this client's turn: at once, if nothing else is waiting. */
  run<T>(name: string, cost: number, work: () => T | Promise<T>): Promise<T> {
    let client = this.#clients.get(name);
    if (client === undefined) {
      client = { name, units: 0, isQueued: false, waiting: [] };
      this.#clients.set(name, client);
    }
    const its = client;
    return new Promise((resolve, reject) => {
      const start = (): void => {
        its.units += cost;
        void this.#timed(work)
          .then(resolve, reject)
          .then(() => this.#done(its, cost));
      };
      const isFree = this.#queue.length === 0 && this.#spentMillis < this.#limits.sliceMillis;
      if (isFree && its.waiting.length === 0 && this.#hasRoom(its, cost)) start();
      else {
        its.waiting.push({ cost, start });
        this.#enqueue(its);
      }
    });
  }

  /** Its synchronous part counts as time of this slice. */
  async #timed<T>(work: () => T | Promise<T>): Promise<T> {
    const began = this.#now();
    let result: T | Promise<T>;
    try {
      result = work();
    } finally {
      this.#spentMillis += this.#now() - began;
      this.#setNext();
    }
    return await result;
  }

  #hasRoom({ units }: Lane, cost: number): boolean {
    return units === 0 || units + cost <= this.#limits.units;
  }

  #enqueue(client: Lane): void {
    const [next] = client.waiting;
    if (client.isQueued || next === undefined || !this.#hasRoom(client, next.cost)) return;
    client.isQueued = true;
    this.#queue.push(client);
    this.#setNext();
  }

  #done(client: Lane, cost: number): void {
    client.units -= cost;
    if (client.units === 0 && client.waiting.length === 0) this.#clients.delete(client.name);
    else this.#enqueue(client);
  }

  #setNext(): void {
    if (this.#isNextSet) return;
    this.#isNextSet = true;
    // A turn of the event loop: timers and sockets come before it.
    setImmediate(() => this.#slice());
  }

  #slice(): void {
    this.#isNextSet = false;
    this.#spentMillis = 0;
    while (this.#spentMillis < this.#limits.sliceMillis) {
      const client = this.#queue.shift();
      if (client === undefined) return;
      client.isQueued = false;
      client.waiting.shift()?.start();
      // Moved behind all others, so that each gets a turn before its next one.
      this.#enqueue(client);
    }
    if (this.#queue.length > 0) this.#setNext();
  }
}

/** Whether the server still answers, and how fast: one ping at a time. Pure; the time is passed in. */

export type HeartbeatTimes = { readonly pingMillis: number; readonly pongMillis: number };

export class Heartbeat {
  readonly #times: HeartbeatTimes;
  #token = 0;
  #sentAt: number | undefined;
  #nextAt = 0;
  #latency: number | undefined;

  constructor(times: HeartbeatTimes) {
    this.#times = times;
  }

  get latencyMillis(): number | undefined {
    return this.#latency;
  }

  /** The number of the ping to send. */
  ping(now: number): number {
    this.#sentAt = now;
    return ++this.#token;
  }

  /** When the ping that waits for its answer was sent. */
  get sentAt(): number | undefined {
    return this.#sentAt;
  }

  /** When the ping was sent that it answers. */
  pong(token: number, now: number): number | undefined {
    const sentAt = this.#sentAt;
    if (sentAt === undefined || token !== this.#token) return undefined;
    this.#latency = Math.max(0, now - sentAt);
    this.#sentAt = undefined;
    this.#nextAt = now + this.#times.pingMillis;
    return sentAt;
  }

  isDue(now: number): boolean {
    return this.#sentAt === undefined && now >= this.#nextAt;
  }

  isOverdue(now: number): boolean {
    return this.#sentAt !== undefined && now - this.#sentAt >= this.#times.pongMillis;
  }
}

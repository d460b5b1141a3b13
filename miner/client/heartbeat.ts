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

  pong(token: number, now: number): void {
    if (this.#sentAt === undefined || token !== this.#token) return;
    this.#latency = Math.max(0, now - this.#sentAt);
    this.#sentAt = undefined;
    this.#nextAt = now + this.#times.pingMillis;
  }

  isDue(now: number): boolean {
    return this.#sentAt === undefined && now >= this.#nextAt;
  }

  isOverdue(now: number): boolean {
    return this.#sentAt !== undefined && now - this.#sentAt >= this.#times.pongMillis;
  }
}

/**
 * Request allowances (specification: Errors, 429): a token bucket per client, and a block for clients that keep sending
 * into an empty one. Pure over a clock that is passed in; the number of clients kept is bounded.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { type Bucket, fullBucket, refill, take } from '../../runtime/clients/token-bucket.ts';

export type RateLimits = {
  /** Units of cost that a client regains per second, and the maximum it can save. 0 means no limit. */
  readonly perSecond: number;
  readonly burst: number;
  /** Refusals within a minute that lead to a block, and its duration. */
  readonly strikes: number;
  readonly blockMillis: number;
  readonly maxClients: number;
};

export const NO_RATE_LIMIT: RateLimits = {
  perSecond: 0,
  burst: 0,
  strikes: 0,
  blockMillis: 0,
  maxClients: 0,
};

/** A wallet or explorer page makes a few dozen requests at once, and then few. */
export const PUBLIC_RATE_LIMIT: RateLimits = {
  perSecond: 50,
  burst: 500,
  strikes: 100,
  blockMillis: 60_000,
  maxClients: 100_000,
};

/** Notifications: three topics of 256 connections make 300 a second. Nobody is blocked for what others send. */
export const PUBLIC_NOTICE_LIMIT: RateLimits = {
  perSecond: 400,
  burst: 2_000,
  strikes: Number.POSITIVE_INFINITY,
  blockMillis: 0,
  maxClients: 100_000,
};

export type RateVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: 'too_many_requests' | 'client_blocked'; readonly retryAfterMillis: number };

type Client = { bucket: Bucket; strikes: number; strikesSince: number; blockedUntil: number };
const STRIKE_WINDOW = 60_000;
/** Bursts that a client can owe: a proof in a pool of 100,000 accounts costs 13,000 units. */
const MAX_DEBT = 30;
const ALLOWED: RateVerdict = { ok: true };

export class RateLimiter {
  readonly #limits: RateLimits;
  readonly #clients: BoundedMap<string, Client>;

  constructor(limits: RateLimits) {
    this.#limits = limits;
    this.#clients = new BoundedMap(limits.maxClients);
  }

  get clients(): number {
    return this.#clients.size;
  }

  #client(name: string, now: number): Client {
    const known = this.#clients.use(name);
    if (known !== undefined) return known;
    const client = { bucket: fullBucket(this.#limits, now), strikes: 0, strikesSince: now, blockedUntil: 0 };
    this.#clients.set(name, client);
    return client;
  }

  /** Takes `cost` from the client's allowance, or returns how long to wait. A clock that went back adds nothing. */
  take(name: string, cost: number, now: number): RateVerdict {
    const { perSecond, strikes, blockMillis } = this.#limits;
    if (perSecond === 0) return ALLOWED;
    const client = this.#client(name, now);
    if (client.blockedUntil > now)
      return { ok: false, code: 'client_blocked', retryAfterMillis: client.blockedUntil - now };
    const left = take(client.bucket, this.#limits, now, cost);
    client.bucket = left ?? refill(client.bucket, this.#limits, now);
    if (left !== undefined) return ALLOWED;
    if (now - client.strikesSince > STRIKE_WINDOW) {
      client.strikes = 0;
      client.strikesSince = now;
    }
    if (++client.strikes >= strikes) {
      client.blockedUntil = now + blockMillis;
      client.strikes = 0;
      return { ok: false, code: 'client_blocked', retryAfterMillis: blockMillis };
    }
    const retryAfterMillis = Math.ceil(((cost - client.bucket.tokens) * 1000) / perSecond);
    return { ok: false, code: 'too_many_requests', retryAfterMillis };
  }

  /**
   * Charges the actual cost of a request beyond the amount taken in advance. The client owes all of it: its next
   * request waits until that is regained. Otherwise expensive requests would be cheap. The debt is capped at more than
   * any single request costs.
   */
  charge(name: string, cost: number, now: number): void {
    const { perSecond, burst } = this.#limits;
    if (perSecond === 0 || cost <= 0) return;
    const client = this.#client(name, now);
    client.bucket = { ...client.bucket, tokens: Math.max(-MAX_DEBT * burst, client.bucket.tokens - cost) };
  }
}

/**
 * Scores and bans (docs/bridge.md). Misbehaviour adds to a score that halves every few minutes; at the limit its owner
 * is banned for a while. The owner is the session and, until it mines, also its address (IPv6 by /64), as long as no
 * other session of that address works: many rigs share an address, and a user name proves nothing. Loopback and the
 * operator's allow-list are never banned.
 */
import { addressList, clientKey, isLoopback } from '../../runtime/clients/client-address.ts';
import { KeptBans } from './kept-bans.ts';
import { coverOf } from './operator-ban.ts';

export type BanOptions = {
  readonly limit: number;
  readonly halfLifeMillis: number;
  readonly banMillis: number;
  /** Owners remembered at once; the least recently touched are forgotten first. */
  readonly capacity: number;
};

export const BAN_DEFAULTS: BanOptions = {
  limit: 100,
  halfLifeMillis: 120_000,
  banMillis: 600_000,
  capacity: 65_536,
};

/** What a fault costs. A ban takes many honest mistakes or a few seconds of abuse. */
export const FAULT_POINTS = {
  malformed: 5,
  duplicate: 2,
  above_target: 5,
  bad_nonce: 2,
  unauthorized: 2,
  excess: 1,
  protocol_violation: 20,
  login_timeout: 5,
} as const;
export type Fault = keyof typeof FAULT_POINTS;

export type Score = { readonly points: number; readonly atMillis: number };
export const NO_POINTS: Score = { points: 0, atMillis: 0 };

export function addPoints(score: Score, points: number, nowMillis: number, options: BanOptions): Score {
  const age = Math.max(0, nowMillis - score.atMillis);
  return { points: score.points * 2 ** (-age / options.halfLifeMillis) + points, atMillis: nowMillis };
}

/** Who is never banned, by whatever rule: this machine, and the operator's list. */
export function exemption(allowList: readonly string[]): (address: string) => boolean {
  const allowed = addressList(allowList);
  return (address) => isLoopback(address) || allowed(address);
}

/** Scores and bans by address. Memory is bounded; a restart of the server clears all scores and bans. */
export class BanList {
  readonly #options: BanOptions;
  readonly #isExempt: (address: string) => boolean;
  readonly #scores = new Map<string, Score>();
  readonly #bans: KeptBans;

  constructor(options: BanOptions, allowList: readonly string[] = []) {
    this.#options = options;
    this.#isExempt = exemption(allowList);
    this.#bans = new KeptBans(options.capacity);
  }

  /** Adds a fault of an address. Returns the end of its ban, if it is banned now. */
  score(address: string, fault: Fault, nowMillis: number): number | undefined {
    if (this.#isExempt(address)) return undefined;
    const key = clientKey(address);
    const score = addPoints(this.#scores.get(key) ?? NO_POINTS, FAULT_POINTS[fault], nowMillis, this.#options);
    this.#scores.delete(key);
    if (score.points < this.#options.limit) {
      this.#scores.set(key, score);
      this.#trim();
      return this.bannedUntil(address, nowMillis);
    }
    this.ban(address, nowMillis + this.#options.banMillis);
    return nowMillis + this.#options.banMillis;
  }

  /** An address, or the key of a ban of the operator, which exempts nobody. */
  ban(address: string, untilMillis: number): void {
    const isOperators = coverOf(address) !== undefined;
    if (!isOperators && this.#isExempt(address)) return;
    this.#bans.set(isOperators ? address : clientKey(address), untilMillis);
  }

  unban(key: string): boolean {
    this.#scores.delete(key);
    return this.#bans.delete(key);
  }

  bannedUntil(address: string, nowMillis: number): number | undefined {
    return this.#bans.until(clientKey(address), nowMillis);
  }

  bans(nowMillis: number): { key: string; untilMillis: number }[] {
    return this.#bans.list(nowMillis);
  }

  #trim(): void {
    for (const key of this.#scores.keys()) {
      if (this.#scores.size <= this.#options.capacity) return;
      this.#scores.delete(key);
    }
  }
}

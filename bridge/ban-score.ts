/**
 * Scores and bans (docs/bridge.md). Misbehaviour adds to a score that halves every few minutes; at the limit its owner
 * is banned for a while. Before authorization the owner is an address (IPv6 by /64), after it the session alone: many
 * rigs share an address, and a user name proves nothing. Loopback and the operator's allow-list are never banned.
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

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

type Score = { readonly points: number; readonly atMillis: number };

export function addPoints(score: Score | undefined, points: number, nowMillis: number, options: BanOptions): Score {
  if (score === undefined) return { points, atMillis: nowMillis };
  const age = Math.max(0, nowMillis - score.atMillis);
  return { points: score.points * 2 ** (-age / options.halfLifeMillis) + points, atMillis: nowMillis };
}

/** The key an address is scored under: IPv4 as it is (mapped ones too), IPv6 by its /64. */
export function addressKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const bare = address.split('%')[0] as string;
  const [head, tail] = bare.split('::') as [string, string | undefined];
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups =
    tail === undefined ? left : [...left, ...Array(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** A list of addresses and networks such as `10.0.0.0/8` or `::1`; throws a RangeError that names a wrong entry. */
export function addressList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const [network = '', bits] = entry.split('/');
    const family = isIPv4(network) ? 'ipv4' : 'ipv6';
    const width = family === 'ipv4' ? 32 : 128;
    const prefix = bits === undefined ? width : Number(bits);
    if (isIP(network) === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > width)
      throw new RangeError(`'${entry}' is no address or network; write 10.0.0.0/8 or ::1`);
    list.addSubnet(network, prefix, family);
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}

const isLoopback = addressList(['127.0.0.0/8', '::1', '::ffff:127.0.0.0/104']);

/** Scores and bans by owner. Memory is bounded; a restart of the server forgets everything, so it bans nobody. */
export class BanList {
  readonly #options: BanOptions;
  readonly #allowed: (address: string) => boolean;
  readonly #scores = new Map<string, Score>();
  readonly #bans = new Map<string, number>();

  constructor(options: BanOptions, allowList: readonly string[] = []) {
    this.#options = options;
    this.#allowed = addressList(allowList);
  }

  exempt(address: string): boolean {
    return isLoopback(address) || this.#allowed(address);
  }

  /** Adds a fault of an address. Returns until when it is now banned, if it is. */
  score(address: string, fault: Fault, nowMillis: number): number | undefined {
    if (this.exempt(address)) return undefined;
    const key = addressKey(address);
    const score = addPoints(this.#scores.get(key), FAULT_POINTS[fault], nowMillis, this.#options);
    this.#scores.delete(key);
    if (score.points < this.#options.limit) {
      this.#scores.set(key, score);
      this.#trim(this.#scores);
      return this.bannedUntil(address, nowMillis);
    }
    this.ban(address, nowMillis + this.#options.banMillis);
    return nowMillis + this.#options.banMillis;
  }

  ban(address: string, untilMillis: number): void {
    if (this.exempt(address)) return;
    const key = addressKey(address);
    this.#bans.delete(key);
    this.#bans.set(key, untilMillis);
    this.#trim(this.#bans);
  }

  unban(key: string): boolean {
    this.#scores.delete(key);
    return this.#bans.delete(key);
  }

  bannedUntil(address: string, nowMillis: number): number | undefined {
    const key = addressKey(address);
    const until = this.#bans.get(key);
    if (until === undefined) return undefined;
    if (until > nowMillis) return until;
    this.#bans.delete(key);
    return undefined;
  }

  bans(nowMillis: number): { key: string; untilMillis: number }[] {
    return [...this.#bans].filter(([, until]) => until > nowMillis).map(([key, untilMillis]) => ({ key, untilMillis }));
  }

  #trim(map: Map<string, unknown>): void {
    for (const key of map.keys()) {
      if (map.size <= this.#options.capacity) return;
      map.delete(key);
    }
  }
}

/**
 * Share work per connection: a pure function of the accepted shares and the clock.
 *
 * The hash rate is estimated from work over time with two exponential windows. The long one is calm; the short one
 * notices a real change. Shares arrive as a Poisson process, so an estimate from n shares is only good to about
 * 1/sqrt(n): a change must stand out from that noise before the work moves (the dead band), or the work would
 * follow the noise. A newcomer's first estimates come after few shares or a short silence, so that any rig from 1 kH/s
 * to 1 GH/s has suitable work within a minute.
 */

import type { Wishes } from '../../protocol/stratum/username.ts';

export type VardiffOptions = {
  /** Seconds between two shares of one connection. */
  readonly secondsPerShare: number;
  readonly startWork: bigint;
  readonly minWork: bigint;
  readonly maxWork: bigint;
  readonly longSeconds: number;
  readonly shortSeconds: number;
  /** Silence that is shorter means nothing. */
  readonly silentSeconds?: number;
};

export const VARDIFF_DEFAULTS: VardiffOptions = {
  secondsPerShare: 10,
  startWork: 65_536n,
  minWork: 256n,
  maxWork: 1n << 96n,
  longSeconds: 300,
  shortSeconds: 60,
};

/** Decayed sums of one window: work, shares, and the time they cover. */
type WindowSums = { readonly work: number; readonly shares: number; readonly seconds: number };

export type Vardiff = {
  readonly work: bigint;
  readonly atMillis: number;
  readonly long: WindowSums;
  readonly short: WindowSums;
  /** A newcomer's rate is unknown, then roughly known from its first shares, then tracked. */
  readonly phase: 'new' | 'placed' | 'settled';
};

const EMPTY: WindowSums = { work: 0, shares: 0, seconds: 0 };
/** A newcomer is judged after this many shares. */
const SETTLING_SHARES = 12;
/** Silence of this many intervals means a rate far below the work. Once placed by its shares, 1 in 50 is silent for 4. */
const SILENT_INTERVALS = { new: 1.5, placed: 4 };
const SETTLED_SECONDS = 40;
const SETTLED_SIGMAS = 1.5;
/** How far, in standard deviations, an estimate must differ from the present rate. */
const LONG_SIGMAS = 2.5;
const SHORT_SIGMAS = 4;
/** Below this factor a change is not worth a new job, however sure it is. */
const LEAST_CHANGE = 1.35;

const clamp = (work: bigint, options: VardiffOptions): bigint =>
  work < options.minWork ? options.minWork : work > options.maxWork ? options.maxWork : work;

/** `wishes` are what the miner asked for. One that names its rate is placed by it, as if by its first shares. */
export function newVardiff(
  options: VardiffOptions,
  nowMillis: number,
  wishes: Pick<Wishes, 'minWork' | 'rate'> | null = null,
): Vardiff {
  const { minWork, rate } = wishes ?? { minWork: null, rate: null };
  const empty = { atMillis: nowMillis, long: EMPTY, short: EMPTY };
  if (rate !== null) return { ...empty, work: workFor(Number(rate), options), phase: 'placed' };
  return { ...empty, work: clamp(minWork ?? options.startWork, options), phase: 'new' };
}

function decay(sums: WindowSums, seconds: number, window: number): WindowSums {
  const kept = Math.exp(-seconds / window);
  return {
    work: sums.work * kept,
    shares: sums.shares * kept,
    seconds: sums.seconds * kept + window * (1 - kept),
  };
}

/** A clock that goes back adds no time; one that jumps ahead counts as at most one long window. */
function advance(state: Vardiff, nowMillis: number, options: VardiffOptions): Vardiff {
  const seconds = Math.min(Math.max(0, (nowMillis - state.atMillis) / 1000), options.longSeconds);
  return {
    ...state,
    atMillis: nowMillis,
    long: decay(state.long, seconds, options.longSeconds),
    short: decay(state.short, seconds, options.shortSeconds),
  };
}

const add = (sums: WindowSums, work: number): WindowSums => ({
  work: sums.work + work,
  shares: sums.shares + 1,
  seconds: sums.seconds,
});

/** An accepted share, worth the work of its own job. */
export function onShare(state: Vardiff, shareWork: bigint, nowMillis: number, options: VardiffOptions): Vardiff {
  const work = Number(shareWork);
  const next = advance(state, nowMillis, options);
  return { ...next, long: add(next.long, work), short: add(next.short, work) };
}

/** Hashes per second estimated from the shares, 0 when nothing is known. */
export const hashRate = (state: Vardiff): number =>
  state.long.seconds < 1e-3 ? 0 : state.long.work / state.long.seconds;

const workFor = (rate: number, options: VardiffOptions): bigint =>
  clamp(BigInt(Math.max(1, Math.round(Math.min(rate * options.secondsPerShare, 2 ** 96)))), options);

function standsOut(ratio: number, shares: number, sigmas: number): boolean {
  const change = Math.abs(Math.log(ratio));
  return change > Math.log(LEAST_CHANGE) && change > sigmas / Math.sqrt(Math.max(shares, 0.25));
}

/** Half a share is added to each estimate, so that silence means a low rate and not zero. */
function estimate(sums: WindowSums, work: number): { rate: number; shares: number } {
  return { rate: (sums.work + work / 2) / Math.max(sums.seconds, 0.05), shares: sums.shares + 0.5 };
}

/**
 * The state at `nowMillis`, with new work where it is due. Called after shares and about once a second; when `work`
 * differs from before, the connection gets a job with the new target.
 */
export function retarget(state: Vardiff, nowMillis: number, options: VardiffOptions): Vardiff {
  const now = advance(state, nowMillis, options);
  const work = Number(now.work);
  const present = work / options.secondsPerShare;
  if (now.phase !== 'settled') return settle(now, now.phase, work, present, options);

  const short = estimate(now.short, work);
  const expected = (present * now.short.seconds) / work;
  if (standsOut(short.rate / present, Math.min(short.shares, expected), SHORT_SIGMAS))
    return { ...now, work: workFor(short.rate, options), long: now.short };
  const long = estimate(now.long, work);
  if (standsOut(long.rate / present, Math.min(long.shares, (present * now.long.seconds) / work), LONG_SIGMAS))
    return { ...now, work: workFor(long.rate, options) };
  return now;
}

function settle(
  now: Vardiff,
  phase: 'new' | 'placed',
  work: number,
  present: number,
  options: VardiffOptions,
): Vardiff {
  const { rate, shares } = estimate(now.long, work);
  if (shares >= SETTLING_SHARES && rate > present * LEAST_CHANGE)
    return { ...now, work: workFor(rate, options), long: EMPTY, short: EMPTY, phase: 'placed' };
  if (
    now.long.shares < 1e-3 &&
    now.long.seconds > Math.max(options.secondsPerShare * SILENT_INTERVALS[phase], options.silentSeconds ?? 0)
  )
    return { ...now, work: clamp(now.work / 4n, options), long: EMPTY, short: EMPTY };
  if (now.long.seconds < SETTLED_SECONDS) return now;
  const expected = (present * now.long.seconds) / work;
  const off = standsOut(rate / present, expected, SETTLED_SIGMAS);
  return { ...now, phase: 'settled', work: off ? workFor(rate, options) : now.work };
}

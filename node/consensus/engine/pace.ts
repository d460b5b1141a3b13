/**
 * Times of consensus (rules 3 and 4), all in proportion to the pace of cuts: how soon a cut may follow, when a member enters a height, how long it waits in a step.
 */
import type { TimerKind } from './effects.ts';

/** The pace for which the times below are given. */
export const CUT_MILLIS = 2_500;
const STEP_MILLIS: Readonly<Record<TimerKind, number>> = { propose: 1_500, prevote: 750, precommit: 750 };
/** Rounds with the shortest time-outs. From then on each round waits half as long again as the first did. */
const QUICK_ROUNDS = 3;
const AHEAD_MILLIS = 1_000;
/** The rebroadcast timer. */
const TICK_MILLIS = 500;

export function timeoutMillis(kind: TimerKind, round: number, cutMillis = CUT_MILLIS): number {
  const longer = Math.max(0, round - QUICK_ROUNDS + 1);
  return Math.ceil((STEP_MILLIS[kind] * (2 + longer) * cutMillis) / (2 * CUT_MILLIS));
}

/** At any pace. */
export const TICKS_OF_A_CUT = CUT_MILLIS / TICK_MILLIS;

export const tickMillis = (cutMillis = CUT_MILLIS): number => Math.ceil((TICK_MILLIS * cutMillis) / CUT_MILLIS);

/** `epochStart` is the timestamp of the epoch's first cut, `number` counts the epoch's cuts from 0. */
export const earliestMillis = (before: number, epochStart: number, number: number, cutMillis = CUT_MILLIS): number =>
  Math.max(before + Math.ceil(cutMillis / 2), number === 0 ? 0 : epochStart + cutMillis * number);

/** Whether a fresh proposal's timestamp is not too far ahead of the checking clock. */
export const isTimely = (timestamp: number, now: number, cutMillis = CUT_MILLIS): boolean =>
  timestamp <= now + Math.ceil((AHEAD_MILLIS * cutMillis) / CUT_MILLIS);

/** How long a member waits after deciding before it enters the next height, whatever its clock says. */
export const beginMillis = (earliest: number, now: number, cutMillis = CUT_MILLIS): number =>
  Math.min(cutMillis, Math.max(0, earliest - now));

/** Time until then. */
export const timelyIn = (timestamp: number, now: number, cutMillis = CUT_MILLIS): number =>
  Math.max(0, timestamp - now - Math.ceil((AHEAD_MILLIS * cutMillis) / CUT_MILLIS));

/**
 * How long a dispatch should be (docs: pow.md, "Facts about the platforms"): long enough that the drain between two costs
 * nothing, short enough that a new job reaches the device soon and no driver takes it for hung. Pure.
 */
import { noncesPerHit } from '../backend.ts';

export type Band = { readonly low: number; readonly aim: number; readonly high: number };

/**
 * Milliseconds. With two dispatches in flight the host has one of them to come back: it wakes up to 50 ms late on some
 * machines. Work on the job before is still paid, so a new job is no reason for shorter ones (docs/lab/gpu.md).
 */
export const SEARCH_BAND: Band = { low: 38, aim: 45, high: 55 };
export const BUILD_BAND: Band = { low: 20, aim: 50, high: 100 };

/** At most this factor up or down from one dispatch to the next: one odd timing must not make a dispatch of seconds. */
const MOST_GROWTH = 4;
const MOST_SHRINK = 8;

export type Measured = { readonly work: number; readonly millis: number };

/** The work of the next dispatch after one of `last.work` took `last.millis`; whole `quantum`s between one and `most`. */
export function steer(last: Measured, band: Band, quantum: number, most: number): number {
  const inBand = last.millis >= band.low && last.millis <= band.high;
  const wanted = inBand ? last.work : (last.work * band.aim) / Math.max(last.millis, 0.001);
  const bounded = Math.min(Math.max(wanted, last.work / MOST_SHRINK), last.work * MOST_GROWTH, most);
  return Math.max(Math.floor(bounded / quantum), 1) * quantum;
}

/** The most nonces a dispatch may try so that its hits fit `slots` with room to spare: four times what is expected. */
export const nonceBound = (target: Uint8Array, slots: number): number =>
  Math.max(Math.floor((slots * noncesPerHit(target)) / 4), 1);

/** A shorter dispatch costs more than it brings. */
const SHORTEST_MILLIS = 3;

/** The work of a dispatch where blocks are easy for the device (noncesPerBlock). `full` is a dispatch of the usual length. */
export function shortForBlocks(full: Measured, noncesPerBlock: number, quantum: number): number {
  const shortest = full.millis > SHORTEST_MILLIS ? (full.work * SHORTEST_MILLIS) / full.millis : full.work;
  const wanted = Math.max(Math.floor(Math.max(noncesPerBlock, shortest) / quantum), 1) * quantum;
  return Math.min(full.work, wanted);
}

export type Grid = { readonly x: number; readonly y: number };

/** Workgroups in two dimensions, because one holds at most 65,535: never fewer than asked, and fewer than y more. */
export function grid(workgroups: number, most: number): Grid {
  const y = Math.ceil(workgroups / most);
  return { x: Math.ceil(workgroups / y), y };
}

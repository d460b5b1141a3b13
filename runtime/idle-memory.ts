/**
 * Returns memory to the system after a burst of work.
 *
 * V8 keeps the pages of dead objects for later: those of the space for new objects, which grows to 128 MiB under thousands of
 * connections, and a pool of empty ones. Its own task for idle programs unmaps them only after a full collection found the rest of the
 * heap grown, which need not happen, and since V8 13.1 not before 100 s (a program that allocates no objects of C++ counts as busy). So
 * a thread that has little to do, in a process that has grown, collects once by itself.
 */
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOK_MILLIS = 5_000;
/** The part of the time in which a thread may be busy and still counts as idle. A collection blocks it for 20 to 300 ms, which is acceptable when idle. */
const IDLE = 0.1;
/** Growth that is worth a collection; a tenth of the process, where that is more. */
const WORTH_BYTES = 12 << 20;
/** A thread collects for at most this part of its time, however often the process grows. */
const MAX_SHARE = 0.01;

export type IdleMemoryState = {
  /** The least that the process was resident with since the last collection. */
  readonly least: number;
  readonly notBeforeMillis: number;
};
export type IdleMemoryLook = { readonly nowMillis: number; readonly utilization: number; readonly resident: number };

export const shouldCollect = ({ least, notBeforeMillis }: IdleMemoryState, look: IdleMemoryLook): boolean =>
  look.nowMillis >= notBeforeMillis &&
  look.utilization <= IDLE &&
  look.resident > least + Math.max(WORTH_BYTES, least / 10);

/** Collects until nothing more is found, and unmaps what is empty. */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  return () => collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Undefined where it cannot be read, which takes a file descriptor. */
function residentBytes(): number | undefined {
  try {
    return process.memoryUsage.rss();
  } catch {
    return undefined;
  }
}

/** Once in every thread that serves clients. */
export function giveBackIdleMemory(): void {
  let collect: (() => void) | undefined;
  let state: IdleMemoryState = { least: Number.POSITIVE_INFINITY, notBeforeMillis: 0 };
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const resident = residentBytes();
    if (resident === undefined) return;
    const began = performance.now();
    state = { ...state, least: Math.min(state.least, resident) };
    if (!shouldCollect(state, { nowMillis: began, utilization, resident })) return;
    collect ??= collector();
    collect();
    const ended = performance.now();
    state = { least: residentBytes() ?? resident, notBeforeMillis: ended + (ended - began) / MAX_SHARE };
  }, LOOK_MILLIS).unref();
}

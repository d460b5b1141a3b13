/** How long a test may take, in quiet time (quiet-time.ts). */
import { level } from '../level.ts';
import type { Limits } from './watch.ts';

declare module 'vitest' {
  interface TaskMeta {
    limitSeconds?: number;
  }
}

const SECOND = 1_000;
const SHORT: Limits = { millis: 30 * SECOND, stillMillis: 30 * SECOND };
/** Tests of real programs wait for their starts, for cuts, and for time limits of the programs. */
const SLOW: Limits = { millis: 120 * SECOND, stillMillis: 60 * SECOND };

export function limitsOf(file: string, named?: number): Limits {
  const limits = file.endsWith('.slow.test.ts') ? SLOW : SHORT;
  // At the deep level counts decide, and only a standstill ends a test.
  const millis = level === 'deep' ? Number.POSITIVE_INFINITY : (named ?? 0) * SECOND || limits.millis;
  return { ...limits, millis };
}

/** Options of a test that takes longer than others of its kind, and why it does. */
export const lasts = (seconds: number, _why: string) => ({ meta: { limitSeconds: seconds } });

/**
 * Attendance (ledger rule 64): an epoch has 12 windows, and a member is present in one when one of its cuts names it in
 * `signers`. The first cut of an epoch lists signers of the previous committee, and does not count.
 */
import { ATTENDANCE_WINDOWS } from '../../../protocol/staking/limits.ts';

/** Who signed in the running window, and windows attended so far, by member. */
export type Attendance = { readonly signed: bigint; readonly windows: readonly number[] };

export const nobodyYet = (members: number): Attendance => ({
  signed: 0n,
  windows: Array.from({ length: members }, () => 0),
});

/** After cut k of the epoch. */
export function attend({ signed, windows }: Attendance, k: number, signers: bigint, intervalCuts: number): Attendance {
  const now = k === 0 ? signed : signed | signers;
  if ((k + 1) % (intervalCuts / ATTENDANCE_WINDOWS) !== 0) return { signed: now, windows };
  return { signed: 0n, windows: windows.map((attended, i) => attended + Number((now >> BigInt(i)) & 1n)) };
}

/** Parts of a session that need no connection: its totals, and whose generations are whose. */
import { expect, test } from 'vitest';
import { endOfGenerations } from '../../bridge/session/job-log.ts';
import { Tally } from '../../bridge/session/tally.ts';
import { CODE } from '../../protocol/stratum/errors.ts';

test('a share of a job that is over counts as stale, every other refusal under its reason, and all of them for the credit', () => {
  const tally = new Tally();
  tally.accept(5n);
  tally.accept(7n);
  tally.reject(CODE.unknown_job);
  expect(tally.state()).toEqual({ accepted: 2, stale: 1, rejected: {}, work: 12n });
  tally.reject(CODE.above_target);
  expect(tally.isCredible).toBe(true);
  tally.reject(CODE.unknown_job);
  expect(tally.isCredible).toBe(false);
  const state = tally.state();
  expect(state).toEqual({ accepted: 2, stale: 2, rejected: { above_target: 1 }, work: 12n });
  const resumed = new Tally();
  resumed.restore(state);
  expect([resumed.state(), resumed.isCredible]).toEqual([state, false]);
});

test('terms end where the next ones of their own owner begin', () => {
  const [a, b] = [Uint8Array.of(1, 2), Uint8Array.of(3, 4)];
  const terms = (generation: number, owner: Uint8Array<ArrayBuffer> | null) => ({ generation, owner });
  const all = [
    terms(1, null),
    terms(2, a),
    terms(4, b),
    terms(6, Uint8Array.of(1, 2)),
    terms(9, null),
    terms(12, null),
  ];
  const ends = all.map((one) => endOfGenerations(one, all));
  const never = Number.POSITIVE_INFINITY;
  expect(ends).toEqual([9, 6, never, never, 12, never]);
});

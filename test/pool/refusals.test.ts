/** Refused shares by worker: one for a job that is over is stale, everything else is rejected. */
import { expect, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { Refusals } from '../../pool/stats/refusals.ts';
import { CODE } from '../../protocol/stratum/errors.ts';

test('a share for a job that is over counts as stale', async () => {
  const refusals = new Refusals();
  const share = { service: 'pplns', account: new Uint8Array(32), worker: 'rig', work: 1n, isOfWorker: true };
  const codes = [CODE.unknown_job, CODE.unknown_job, CODE.above_target, CODE.duplicate];
  refusals.add(codes.map((code) => ({ ...share, code })) as never);
  const written: unknown[][] = [];
  const query = (_: TemplateStringsArray, ...values: unknown[]) => Promise.resolve(written.push(values));
  const sql = Object.assign(query, { begin: (run: (inside: typeof query) => Promise<unknown>) => run(query) });
  await refusals.flush(sql as unknown as Sql);
  const counts = written.find((values) => values.some((value) => Array.isArray(value) && value[0] === 'rig'));
  expect(counts?.filter(Array.isArray).map((column) => column[0])).toEqual(expect.arrayContaining(['rig', 2]));
  expect(counts?.filter(Array.isArray).slice(-2)).toEqual([[2], [2]]);
});

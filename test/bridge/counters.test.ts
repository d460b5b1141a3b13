/** The counters of workers: their number is bounded, whoever is connected. */
import { expect, test } from 'vitest';
import { Counters, MAX_WORKERS } from '../../bridge/shares/counters.ts';
import type { AcceptedShare } from '../../bridge/shares/sink.ts';
import { accountOf } from './stratum-client.ts';

const account = accountOf(1);
const about = (worker: string) => ({
  service: 'bridge',
  account,
  worker,
  agent: 'a/1',
  connection: worker,
  atMillis: 0,
});

test('no more workers are remembered than the bound, though all are connected; who has no connection is forgotten first', () => {
  const counters = new Counters();
  for (let i = 0; i < MAX_WORKERS; i++) counters.worker({ ...about(`rig-${i}`), kind: 'joined' });
  counters.worker({ ...about('rig-7'), kind: 'left' });
  counters.worker({ ...about('new'), kind: 'joined' });
  const names = () => new Set(counters.list(MAX_WORKERS).map(({ worker }) => worker));
  expect([names().has('rig-7'), names().has('rig-0'), names().has('new')]).toEqual([false, true, true]);
  for (let i = 0; i < 50; i++) counters.worker({ ...about(`more-${i}`), kind: 'joined' });
  expect(counters.workerCount).toBe(MAX_WORKERS);
  expect([names().has('rig-0'), names().has('more-49')]).toEqual([false, true]);
  // One that was forgotten counts anew.
  counters.refused([{ service: 'bridge', account, worker: 'rig-0', code: 21, isOfWorker: true, atMillis: 0 }]);
  expect(counters.list(MAX_WORKERS).find(({ worker }) => worker === 'rig-0')?.stale).toBe(1);
});

test('workers are listed with the most work first', async () => {
  const counters = new Counters();
  const works = [5n, 90n, 90n, 1n, 17n];
  for (const [i, work] of works.entries())
    await counters.shares([{ service: 'bridge', account, worker: `rig-${i}`, work, atMillis: 0 } as AcceptedShare]);
  const shown = (limit: number) => counters.list(limit).map(({ work }) => work);
  expect(shown(9)).toEqual([90n, 90n, 17n, 5n, 1n]);
  expect(shown(2)).toEqual([90n, 90n]);
});

/** A pool without farms: one session, and rigs that are told apart by longer nonce prefixes. */
import { expect, test } from 'vitest';
import { toHex } from '../../protocol/bytes.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { BRIDGE, startBed } from '../bridge/bed.ts';
import { accountOf, addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { until } from '../until.ts';
import { FARM_ADDRESS, startProxy } from './proxy-bed.ts';

const POOL = { ...BRIDGE, name: 'pplns', pool: { payout: accountOf(9), address: addressOf(9), name: 'Example' } };

test('rigs of both wires share one session of the pool, and their shares arrive once', async () => {
  const pool = await startBed({ services: [POOL] });
  const proxy = await startProxy([`stratum2+tcp://127.0.0.1:${pool.port}`], pool.verifier);
  const first = await V1Client.open(proxy.port());
  await first.login('rig-1');
  const second = await V2Client.open(proxy.port());
  await second.login(`${FARM_ADDRESS}.rig-2`);
  const job = first.jobs[0]!;
  expect(first.prefix.length).toBe(4);
  expect(toHex(first.prefix)).not.toBe(toHex(second.prefix));
  expect(toHex(second.jobs[0]!.header)).toBe(toHex(job.header));
  expect(workOfTarget(job.shareTarget)).toBeLessThanOrEqual(proxy.jobs.current!.work);
  const one = mine(job, first.prefix);
  expect(await first.submitCode(job.jobId, one.nonce)).toBe(0);
  expect(await first.submitCode(job.jobId, one.nonce)).toBe(22);
  const other = second.jobs[0]!;
  expect(await second.submitCode(other.jobId, mine(other, second.prefix).nonce)).toBe(0);
  expect(await second.submitCode(other.jobId, mine(other, first.prefix).nonce)).toBe(26);
  await until(() => pool.sink.accepted.length === 2);
  expect(new Set(pool.sink.accepted.map(({ nonce }) => toHex(nonce))).size).toBe(2);
  expect(pool.sink.rejected).toEqual([]);
  await until(() => proxy.relay.figures.accepted === 2);
  first.close();
  second.close();
});

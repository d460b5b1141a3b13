/** svc-miner as it is, except that it keeps every block back: its shares that are blocks are never sent. It prints how many they were. */
import { PoolClient } from '../../miner/client/pool-client.ts';
import type { PoolJob } from '../../miner/client/session-events.ts';
import { Crew } from '../../miner/work/crew.ts';
import { NONCE_OFFSET, TARGET_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget } from '../../protocol/ledger/target.ts';
import { powHash } from '../pow-hash.ts';

const KEPT_JOBS = 64;
const jobs = new Map<string, PoolJob>();

const { setJob } = Crew.prototype;
Crew.prototype.setJob = function (pool) {
  if (pool !== undefined) jobs.set(`${pool.session} ${pool.job.jobId}`, pool);
  for (const oldest of jobs.keys()) if (jobs.size > KEPT_JOBS) jobs.delete(oldest);
  setJob.call(this, pool);
};

let withheld = 0;
const { submit } = PoolClient.prototype;
PoolClient.prototype.submit = function (share) {
  const job = jobs.get(`${share.session} ${share.jobId}`)?.job;
  if (job === undefined) return;
  const header = Uint8Array.from(job.header);
  header.set(share.nonce, NONCE_OFFSET);
  const isBlock = meetsTarget(powHash(job.epoch, header), header.subarray(TARGET_OFFSET, TARGET_OFFSET + 32));
  if (isBlock) process.stderr.write(`withheld ${++withheld}\n`);
  else submit.call(this, share);
};

await import('../../miner/main.ts');

/** Bodies and spare jobs (docs/protocol/stratum.md, S53 and S57): a body is good for one block, and a large miner has a second one. */
import { expect, test } from 'vitest';
import { Bodies, type Body, type BodyOwner } from '../../bridge/session/bodies.ts';
import { readExtranonce } from '../../bridge/session/extranonce.ts';
import { JobLog } from '../../bridge/session/job-log.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { blockId, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { EASY } from './bed.ts';
import { deskBed } from './desk-bed.ts';
import { DeskMiner } from './desk-miner.ts';
import { accountOf } from './stratum-client.ts';

const owner: BodyOwner = { tag: '', owner: new Uint8Array(13).fill(1), payout: accountOf(1) };

const at = (serial: number, isFresh = false) => ({ serial, isFresh });

function bed(generation = 0) {
  const log = new JobLog();
  const bodies = new Bodies(owner, log, log.begin(generation, 8n), null);
  const send = (serial: number, { terms }: Body) => log.send(serial, serial - 1, terms);
  return { log, bodies, send };
}

test('jobs stay on one body; a block, another share work, a job more or a repeated template take the next', () => {
  const { log, bodies, send } = bed();
  const next = (serial: number, work = 8n, isFresh = false): number => {
    const body = bodies.forJob(owner, work, at(serial, isFresh));
    send(serial, body);
    return body.terms.generation;
  };
  expect([next(1), next(2), next(3)]).toEqual([0, 0, 0]);
  bodies.current.terms.isSpent = true;
  expect([next(3), next(4)]).toEqual([1, 1]);
  expect([next(5, 16n), next(6, 16n), next(7, 8n)]).toEqual([2, 2, 3]);
  expect([next(7), next(8), next(9, 8n, true), next(10)]).toEqual([4, 4, 5, 5]);
  expect(log.state().terms.map(({ shareWork }) => shareWork)).toEqual([8n, 8n, 16n, 8n, 8n, 8n]);
  for (const generation of [0, 3, 5]) {
    const { extranonce, rewardRoot } = bodies.find(owner, log.termsOf(generation)!);
    expect(readExtranonce(extranonce)?.generation).toBe(generation);
    expect(rewardRoot.length).toBe(48);
  }
});

test('the spare is a body of its own; it is kept until it has its block or its share work is another', () => {
  const { bodies, send } = bed();
  const both = (serial: number, work = 8n): number[] => {
    const jobs = [bodies.keepSpare(owner, work, at(serial)), bodies.forJob(owner, work, at(serial))];
    for (const body of jobs) send(serial, body);
    return jobs.map(({ terms }) => terms.generation);
  };
  send(1, bodies.forJob(owner, 8n, at(1)));
  expect([both(2), both(3)]).toEqual([
    [0, 1],
    [0, 1],
  ]);
  bodies.current.terms.isSpent = true;
  expect(both(4)).toEqual([0, 2]);
  bodies.spare!.terms.isSpent = true;
  expect(both(5)).toEqual([2, 3]);
  expect(both(6, 16n)).toEqual([4, 5]);
});

test('after the last generation there is none, and it is said so', () => {
  const { bodies, send } = bed(0xffffffff);
  send(1, bodies.forJob(owner, 8n, at(1)));
  expect(bodies.isOver).toBe(false);
  bodies.current.terms.isSpent = true;
  bodies.forJob(owner, 8n, at(2));
  expect(bodies.isOver).toBe(true);
});

/** A nonce that begins with 1 is a block, every other one a share. */
const hash = (header: Bytes): Bytes =>
  new Uint8Array(32).fill(header[NONCE_OFFSET] === 1 ? 0 : 0x05, 0, 1).fill(0xff, 1);

const generationOf = ({ extranonce }: Job): number => readExtranonce(extranonce)?.generation ?? -1;

test('a large miner holds a spare job: a block on each, never two on one body; a resumed session keeps it', async () => {
  const bed = await deskBed({ limits: EASY, hash });
  const small = new DeskMiner(bed);
  const large = new DeskMiner(bed);
  await small.login();
  const session = await large.login();
  // 64 hashes find a block: at 32 a second one comes every 2 s.
  for (let second = 0; second < 120; second++) {
    bed.clock += 1_000;
    await large.hit(large.jobs.at(-1)!);
    bed.desk.tick();
  }
  await bed.publish(1_001);
  await bed.settle();
  expect(small.jobs.length).toBeGreaterThan(1);
  expect(new Set(small.jobs.map(generationOf))).toEqual(new Set([0]));
  const [spare, current] = large.jobs.slice(-2) as [Job, Job];
  expect(generationOf(spare)).toBe(0);
  expect(generationOf(current)).toBeGreaterThan(0);
  expect([spare.clean, current.clean]).toEqual([false, false]);
  expect(spare.jobId).toBeLessThan(current.jobId);
  for (const job of [spare, current]) expect(headerPays(job.header, accountOf(1), job.extranonce)).toBe(true);
  expect(spare.header.slice(0, 176)).toEqual(current.header.slice(0, 176));

  const before = large.jobs.length;
  expect(await large.hit(current, 1)).not.toBeNull();
  expect(large.jobs.length).toBe(before + 1);
  const third = large.jobs.at(-1)!;
  expect(generationOf(third)).toBeGreaterThan(generationOf(current));
  expect(await large.hit(current, 1)).toBeNull();
  // The miner moved to the spare before the third job came, and found one there too.
  expect(await large.hit(spare, 1)).not.toBeNull();
  expect(await large.hit(spare, 1)).toBeNull();
  expect(generationOf(large.jobs.at(-1)!)).toBeGreaterThan(generationOf(third));
  expect(bed.blocks.length).toBe(2);

  large.end();
  const again = new DeskMiner(bed);
  expect(await again.login({ session })).toBe(session);
  expect(await again.hit(third, 1)).not.toBeNull();
  expect(await again.hit(spare, 1)).toBeNull();
  expect(bed.blocks.length).toBe(3);
  expect(new Set(bed.blocks.map(({ extranonce }) => readExtranonce(extranonce)?.generation))).toEqual(
    new Set([spare, current, third].map(generationOf)),
  );
  for (const block of bed.blocks) expect(block.blockId).toEqual(blockId(block.header));

  // Where all work of before is worth nothing, the first of the two says so, and leaves the second one good.
  await bed.publish(1_002, true);
  await bed.settle();
  expect(again.jobs.slice(-2).map(({ clean }) => clean)).toEqual([true, false]);
  expect(small.jobs.at(-1)?.clean).toBe(true);
});

test('a slow reader that has caught up by itself is sent the newest template once', async () => {
  const bed = await deskBed({ limits: EASY, hash });
  const miner = new DeskMiner(bed);
  await miner.login();
  const jobsAfter = async (queued: number, act: () => Promise<void> | void): Promise<number> => {
    miner.peer.queued = queued;
    await act();
    await bed.settle();
    return miner.jobs.length;
  };
  expect(await jobsAfter(1, () => bed.publish(1_001))).toBe(1);
  expect(await jobsAfter(0, () => bed.publish(1_002))).toBe(2);
  expect(await jobsAfter(0, () => bed.desk.tick())).toBe(2);
  expect(await jobsAfter(1, () => bed.publish(1_003))).toBe(2);
  expect(await jobsAfter(0, () => bed.desk.tick())).toBe(3);
});

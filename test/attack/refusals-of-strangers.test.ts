/** Anybody can log in under every name of every address. What a stranger sends there without work makes no figure of the miner. */
import { expect, test } from 'vitest';
import type { RefusedShare } from '../../bridge/shares/sink.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { EASY } from '../bridge/bed.ts';
import { deskBed } from '../bridge/desk-bed.ts';
import { DeskFarm } from '../bridge/desk-farm.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';

test('refused shares count for a worker as far as accepted ones came with them, and all of them for the pool', async () => {
  const refused: RefusedShare[] = [];
  const bed = await deskBed({
    limits: EASY,
    // Nonces that begin with 2 are shares, others are nothing.
    hash: (header) => new Uint8Array(32).fill(header[NONCE_OFFSET] === 2 ? 0x05 : 0xff, 0, 1).fill(0xff, 1),
    hub: { refused: (shares) => void refused.push(...shares) },
  });
  const told = () => {
    bed.desk.tick();
    return [refused.length, refused.filter(({ isOfWorker }) => isOfWorker).length];
  };
  const stranger = new DeskMiner(bed);
  await stranger.login();
  for (let i = 0; i < 10; i++) expect(await stranger.hit({ jobId: 12_345 })).toBe(21);
  expect(told()).toEqual([10, 0]);
  const miner = new DeskMiner(bed);
  await miner.login();
  for (let i = 0; i < 3; i++) expect(await miner.hit(miner.jobs.at(-1) as Job)).toBe(null);
  for (let i = 0; i < 10; i++) expect(await miner.hit({ jobId: 12_345 })).toBe(21);
  expect(told()).toEqual([20, 3]);
  // Nor under the name of a rig that had no share, in a farm whose other rigs had some.
  const farm = new DeskFarm(bed);
  await farm.begin(['a', 'w']);
  const { firstGeneration } = farm.job;
  for (let i = 0; i < 3; i++) expect(await farm.submit(firstGeneration, { nonce: farm.nonce(2) })).toBe(0);
  const unknown = { job: { ...farm.job, jobId: 12_345 } };
  expect(await farm.submit(firstGeneration, { ...unknown, rig: 1 })).toBe(21);
  expect(told()).toEqual([21, 3]);
  expect(await farm.submit(firstGeneration, { ...unknown, rig: 0 })).toBe(21);
  expect(told()).toEqual([22, 4]);
  expect(refused.slice(-2).map(({ worker }) => worker)).toEqual(['w', 'a']);
});

/**
 * Credit belongs to the header that was hashed (docs/protocol/stratum.md, S51, S52, S58): job ids that were never sent are
 * unknown, a nonce counts once per header, and a header has one share target for ever.
 */
import { expect, test } from 'vitest';
import {
  ConnectionCounter,
  connectionNumberMemory,
  numbersOf,
  readExtranonce,
} from '../../bridge/session/extranonce.ts';
import { jobIdOf, MAX_REVISION, serialOf } from '../../bridge/session/job-book.ts';
import { toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { EASY, startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { powHash } from '../pow-hash.ts';

const PATIENT = { ...EASY, bans: { ...EASY.bans, limit: 1e9 } };

test.each([0, 2])('one nonce under every id of its template is credited once, %i threads', async (threads) => {
  const { port, source, sink } = await startBed({ threads, limits: PATIENT });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const [first] = client.jobs as [Job];
  source.cut();
  await client.until(() => client.jobs[1]);
  const { nonce } = mine(first, client.prefix);
  const ids = Array.from({ length: MAX_REVISION + 1 }, (_, revision) => jobIdOf(serialOf(first.jobId), revision));
  const codes = await Promise.all(ids.map((jobId) => client.submitCode(jobId, nonce)));
  expect(codes.filter((code) => code === 0).length).toBe(1);
  expect(codes.filter((code) => code === 21).length).toBe(MAX_REVISION);
  expect(sink.accepted.length).toBe(1);
  client.close();
});

test('an id that was skipped, or sent to another session only, is unknown', async () => {
  const { port, source, sink } = await startBed({ limits: PATIENT, blockWork: 8n });
  const [a, b] = [await V1Client.open(port), await V2Client.open(port)];
  await a.login(`${addressOf(1)}.a`, 'd=4');
  // A block gives a second job on the same template, to this session alone.
  const first = a.jobs[0] as Job;
  const block = targetToBytes(targetOfWork(8n));
  expect(await a.submitCode(first.jobId, mine(first, a.prefix, 0n, block).nonce)).toBe(0);
  const second = await a.until(() => a.jobs[1]);
  const own = await b.login(`${addressOf(1)}.b`, 'd=4');
  expect(serialOf(own.jobId)).toBe(serialOf(second.jobId));
  expect(await b.submitCode(second.jobId, mine(own, b.prefix).nonce)).toBe(21);
  source.cut();
  await a.until(() => a.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(first.jobId)));
  expect(await b.submitCode(second.jobId, mine(own, b.prefix).nonce)).toBe(21);
  expect(sink.accepted.length).toBe(1);
  a.close();
  b.close();
});

const headerOf = (job: Job): string => toHex(job.header.subarray(0, NONCE_OFFSET));

test('a new share work, and a resume with another password, take a fresh header; hits on the old one keep their worth', async () => {
  const { port, sink } = await startBed({ limits: PATIENT });
  let session: string | null = null;
  const jobs: Job[] = [];
  let client: V1Client | undefined;
  for (const password of ['d=4', 'd=16', '', 'd=4', 'd=4', 'min=32']) {
    const next = await V1Client.open(port);
    await next.login(`${addressOf(1)}.a`, password, session);
    session = next.session;
    jobs.push(...next.jobs);
    client = next;
  }
  const targets = new Map<string, Set<bigint>>();
  for (const job of jobs) targets.set(headerOf(job), (targets.get(headerOf(job)) ?? new Set()).add(job.shareTarget));
  expect([...targets.values()].map((set) => set.size)).toEqual(jobs.map(() => 1));
  // Every job of before is still good, at the target that it came with, and once.
  const last = client as V1Client;
  for (const [i, job] of jobs.entries()) {
    const { nonce } = mine(job, last.prefix, BigInt(i) << 20n);
    const answers = [];
    for (const { jobId } of jobs) answers.push(await last.submitCode(jobId, nonce));
    const hits = jobs.filter((other) => meetsTarget(hashOf(other, nonce), targetToBytes(other.shareTarget)));
    expect(answers.filter((code) => code === 0).length).toBe(hits.length);
  }
  const counted = sink.accepted.map(({ nonce, extranonce }) => `${toHex(extranonce)} ${toHex(nonce)}`);
  expect(new Set(counted).size).toBe(counted.length);
  last.close();
});

function hashOf(job: Job, nonce: Uint8Array): Uint8Array {
  const header = Uint8Array.from(job.header);
  header.set(nonce, NONCE_OFFSET);
  return powHash(job.epoch, header);
}

test('a body that was left for another share work is not spent: a hit on it is still a block', async () => {
  const { port, source } = await startBed({ limits: PATIENT, blockWork: 12n });
  const first = await V1Client.open(port);
  await first.login(`${addressOf(1)}.a`, 'd=4');
  const old = first.jobs[0] as Job;
  const again = await V1Client.open(port);
  await again.login(`${addressOf(1)}.a`, 'd=8', first.session);
  const fresh = again.jobs[0] as Job;
  expect(readExtranonce(fresh.extranonce)?.owner).toEqual(readExtranonce(old.extranonce)?.owner);
  const block = targetToBytes(targetOfWork(12n));
  const hit = mine(old, again.prefix, 0n, block);
  expect(await again.submit(old.jobId, hit.nonce)).toMatchObject({ result: { blockId: expect.any(Uint8Array) } });
  expect(await again.submit(old.jobId, mine(old, again.prefix, hit.next, block).nonce)).toMatchObject({
    result: { blockId: null },
  });
  expect(await again.submit(fresh.jobId, mine(fresh, again.prefix, 0n, block).nonce)).toMatchObject({
    result: { blockId: expect.any(Uint8Array) },
  });
  expect(source.submitted.length).toBe(2);
  again.close();
});

test('a template that a node gives twice, byte for byte, gives no header twice', async () => {
  const { port, source, sink } = await startBed({ limits: PATIENT });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  source.transactions = [[Uint8Array.of(1)]];
  const standing = await source.template(0);
  for (let times = 1; times <= 3; times++) {
    // Only what it says of the fees changes, so that the template is published again.
    source.spoil = () => ({ ...standing, fees: 1_000n ** BigInt(times) });
    const seen = client.jobs.length;
    source.back();
    await client.until(() => (client.jobs.length > seen ? true : undefined));
  }
  const headers = client.jobs.map(headerOf);
  expect(new Set(headers).size).toBe(headers.length);
  const { nonce } = mine(client.jobs[1] as Job, client.prefix);
  for (const { jobId } of client.jobs) await client.submitCode(jobId, nonce);
  const counted = sink.accepted.map(({ headerDigest }) => toHex(headerDigest));
  expect(new Set(counted).size).toBe(counted.length);
  client.close();
});

test('a listener thread that takes the place of one that died gives no connection a name of before', () => {
  const [bootId, memory] = [new Uint8Array(8), connectionNumberMemory()];
  const names = [new ConnectionCounter(bootId, 1, memory), new ConnectionCounter(bootId, 2, memory)].flatMap(
    (counter) => Array.from({ length: 3 }, () => toHex(counter.next())),
  );
  const successor = new ConnectionCounter(bootId, 1, memory);
  for (let i = 0; i < 3; i++) names.push(toHex(successor.next()));
  expect(new Set(names).size).toBe(9);
});

test('no two connections have one name, although their numbers are not in order', () => {
  const memory = connectionNumberMemory();
  const counter = new ConnectionCounter(new Uint8Array(8), 1, memory);
  const names = new Set<string>();
  let inOrder = 0;
  // All that have the prefixes 0 and 1.
  for (let upper = 0; upper < 0x1_0000; upper += 16) {
    new Uint32Array(memory)[1] = upper * 0x1_0000;
    const [one, two] = [counter.next(), counter.next()].map(numbersOf);
    expect([one?.prefix, two?.prefix]).toEqual([0, 1]);
    names.add(toHex(one!.owner)).add(toHex(two!.owner));
    if (two!.handle === one!.handle + 1) inOrder++;
  }
  expect(names.size).toBe(2 * 0x1000);
  expect(inOrder).toBeLessThan(16);
});

/** Farm sessions (docs/protocol/stratum.md, S70 to S76): many rigs behind one connection, and what a lying client gets. */
import { expect, test } from 'vitest';
import { RIGS_OF_ADDRESS } from '../../bridge/farms/farm-places.ts';
import { LIMIT_DEFAULTS, type StratumLimits } from '../../bridge/options.ts';
import type { Member } from '../../bridge/threads/hub.ts';
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { jobOfFarm, LAST_FIRST_GENERATION } from '../../protocol/stratum/farm.ts';
import { encodeClientFrame } from '../../protocol/stratum/v2.ts';
import { EASY } from './bed.ts';
import { type DeskBed, deskBed } from './desk-bed.ts';
import { DeskFarm } from './desk-farm.ts';
import { accountOf } from './stratum-client.ts';
import { TemplateSource } from './template-source.ts';

/** A hash is the first byte of its nonce: 5 is a share at work 32, 2 a block, 200 nothing. */
const hash = (header: Bytes): Bytes => new Uint8Array(32).fill(header[NONCE_OFFSET] as number);
const SHARE = 5;
const BLOCK = 2;
const NOTHING = 200;

const bedOf = (settings: Parameters<typeof deskBed>[0] = {}): Promise<DeskBed> => deskBed({ hash, ...settings });

async function farmOf(names: readonly string[] = ['a', 'b'], limits: StratumLimits = EASY) {
  const bed = await bedOf({ limits });
  const farm = new DeskFarm(bed);
  await farm.begin(names);
  return { bed, farm };
}

test('a session that asks becomes a farm: an offer, and a farm job at once in place of jobs', async () => {
  const { bed, farm } = await farmOf();
  expect(farm.offer).toEqual({ rigs: 8, submitsPerSecond: expect.any(Number) });
  expect([farm.plainJobs.length, farm.jobs.length]).toEqual([1, 1]);
  await bed.publish(1_001);
  await farm.send();
  expect([farm.plainJobs.length, farm.jobs.length]).toEqual([1, 2]);
  const [first, second] = farm.jobs;
  expect(second?.firstGeneration).toBe(first?.firstGeneration);
  expect(second?.jobId).not.toBe(first?.jobId);
});

test('a share of before that is judged when the session is a farm is the session’s own, not that of a rig', async () => {
  let judged = Promise.resolve();
  const bed = await bedOf({ verifying: () => judged });
  const farm = new DeskFarm(bed);
  await farm.login();
  const { promise, resolve } = Promise.withResolvers<void>();
  judged = promise;
  const nonce = farm.nonce();
  nonce.set(farm.prefix, 6);
  await farm.send({ type: 'submit', sequence: 1, submit: { jobId: farm.plainJobs[0] as number, nonce } });
  await farm.send({ type: 'farm', rigs: 8 });
  resolve();
  await farm.send();
  expect(bed.shares.map(({ member }) => member.worker)).toEqual(['hall']);
});

test('a farm that finds blocks all the time gets one job a template: it has no use for a spare', async () => {
  const { bed, farm } = await farmOf();
  const { firstGeneration } = farm.job;
  for (let second = 0; second < 120; second++) {
    bed.clock += 1_000;
    await farm.submit(firstGeneration + second, { nonce: farm.nonce(BLOCK) });
  }
  const before = farm.jobs.length;
  await bed.publish(1_001);
  await farm.send();
  expect(farm.jobs.length).toBe(before + 1);
});

test('shares of a rig are credited to the address under the name of the rig, on headers that the server makes itself', async () => {
  const { bed, farm } = await farmOf();
  const { firstGeneration } = farm.job;
  expect(await farm.submit(firstGeneration, { rig: 0 })).toBe(0);
  expect(await farm.submit(firstGeneration + 7, { rig: 1 })).toBe(0);
  expect(farm.work).toBe(64n);
  expect(bed.shares.map(({ member }) => member.worker)).toEqual(['a', 'b']);
  for (const { member } of bed.shares) expect(equalBytes(member.account, accountOf(1))).toBe(true);
  expect(new Set(bed.shares.map(({ member }) => member.handle)).size).toBe(2);
  expect(new Set(bed.shares.map(({ headerDigest }) => toHex(headerDigest))).size).toBe(2);
  expect(await farm.submit(firstGeneration, { rig: 0, nonce: farm.nonce(NOTHING) })).toBe(23);
});

test('figures say how many sessions are farms, and how many rigs these have named now', async () => {
  const { bed, farm } = await farmOf(['a', 'b', 'c']);
  await new DeskFarm(bed).begin([]);
  expect(bed.desk.figures()).toMatchObject({ mining: 2, farms: 2, farmRigs: 3 });
  await farm.send({ type: 'rig', rig: { index: 1, worker: '' } });
  expect(bed.desk.figures()).toMatchObject({ farms: 2, farmRigs: 2 });
  bed.desk.gone(farm.conversation, 'closed');
  expect(bed.desk.figures()).toMatchObject({ mining: 1, farms: 1, farmRigs: 0 });
});

test('a share counts once, whichever rig is named; the whole nonce is told apart', async () => {
  const { farm } = await farmOf();
  const { firstGeneration } = farm.job;
  const nonce = Uint8Array.of(SHARE, 0, 0, 0, 0, 0, 1, 2);
  const other = Uint8Array.of(SHARE, 0, 0, 0, 0, 0, 2, 2);
  expect(await farm.submit(firstGeneration, { nonce })).toBe(0);
  expect(await farm.submit(firstGeneration, { nonce, rig: 1 })).toBe(22);
  expect(await farm.submit(firstGeneration, { nonce: other })).toBe(0);
  expect(await farm.submit(firstGeneration + 1, { nonce })).toBe(0);
});

test('a generation is good for one block: a second one on it is a share, and no job is sent in between', async () => {
  const { bed, farm } = await farmOf();
  const { firstGeneration } = farm.job;
  const block = () => ({ nonce: farm.nonce(BLOCK) });
  expect([await farm.submit(firstGeneration, block()), await farm.submit(firstGeneration, block())]).toEqual([0, 0]);
  expect(farm.blocks).toEqual([1]);
  expect(await farm.submit(firstGeneration + 1, block())).toBe(0);
  expect(farm.blocks).toEqual([1, 3]);
  await bed.publish(1_001);
  await farm.send();
  expect(farm.jobs.length).toBe(2);
  // On the next template too: a body carries no anchor.
  expect(await farm.submit(firstGeneration, block())).toBe(0);
  expect(farm.blocks).toEqual([1, 3]);
  expect(bed.shares.length).toBe(4);
  expect(bed.blocks.map(({ share }) => share.member.worker)).toEqual(['a', 'a']);
  for (const [i, { header, payout, extranonce }] of bed.blocks.entries()) {
    expect(headerPays(header, payout, extranonce)).toBe(true);
    const made = jobOfFarm(farm.jobs[0] as (typeof farm.jobs)[0], firstGeneration + i);
    expect(toHex(header.subarray(0, NONCE_OFFSET))).toBe(toHex(made.header.subarray(0, NONCE_OFFSET)));
  }
});

test('a generation has one block also where a share of it is still being verified when the chain changes and its template is forgotten', async () => {
  let judged = Promise.resolve();
  const bed = await bedOf({ verifying: () => judged });
  const farm = new DeskFarm(bed);
  await farm.begin(['a']);
  const { jobId, firstGeneration: generation } = farm.job;
  const { promise, resolve } = Promise.withResolvers<void>();
  judged = promise;
  const block = () => ({ generation, rig: 0, nonce: farm.nonce(BLOCK) });
  await farm.send({ type: 'farmSubmit', sequence: 1, submit: { ...block(), jobId } });
  const source = new TemplateSource();
  source.blockWork = 64n;
  const { header } = await source.template(0);
  const template = { serial: 9, header, epoch: 0, draw: 0, draws: 1, isFresh: false, cutHeight: 0, told: 0 };
  bed.desk.publish({ templates: [template], headHeight: 1_000, clean: true });
  await farm.send();
  farm.conversation.session.mining?.forget(bed.desk.shelf.oldest);
  expect(farm.job.firstGeneration).toBe(generation);
  await farm.send({ type: 'farmSubmit', sequence: 2, submit: { ...block(), jobId: farm.job.jobId } });
  resolve();
  await farm.send();
  expect(farm.work).toBe(64n);
  expect(farm.blocks).toEqual([1]);
  farm.conversation.session.mining?.forget(10);
  expect(farm.conversation.session.mining?.record(true).jobs?.log.terms.at(-1)?.farm?.spent).toEqual(
    Float64Array.of(generation),
  );
});

test('what is not of its job is refused: generations below the first, plain jobs, farm jobs as plain ones, unknown ids', async () => {
  const { farm } = await farmOf();
  const { firstGeneration, jobId } = farm.job;
  expect(firstGeneration).toBeGreaterThan(0);
  expect(await farm.submit(firstGeneration - 1)).toBe(20);
  expect(await farm.submit(0)).toBe(20);
  expect(await farm.submit(firstGeneration, { job: { ...farm.job, jobId: farm.plainJobs[0] as number } })).toBe(21);
  expect(await farm.submit(firstGeneration, { job: { ...farm.job, jobId: jobId + 1 } })).toBe(21);
  expect(await farm.submitPlain(jobId, farm.nonce())).toBe(21);
  expect(farm.work).toBe(0n);
});

test('another share target comes with the cut after the next one and a higher first generation; each header has one price', async () => {
  const limits = { ...EASY, vardiff: { ...LIMIT_DEFAULTS.vardiff, startWork: 16n, minWork: 1n, secondsPerShare: 1 } };
  const bed = await bedOf({ limits });
  const farm = new DeskFarm(bed);
  await farm.begin(['a'], { password: '' });
  // Its login holds no longer.
  await bed.publish(1_002);
  await farm.send();
  const before = farm.job;
  const highest = before.firstGeneration + 3;
  for (let i = 0; i < 50; i++) {
    expect(await farm.submit(highest, { job: before, nonce: farm.nonce(1) })).toBe(0);
    bed.clock += 10;
  }
  expect(farm.job).toEqual(before);
  await bed.publish(1_003);
  await farm.send();
  expect(farm.job.jobId).not.toBe(before.jobId);
  expect(farm.job.shareTarget).toBe(before.shareTarget);
  await bed.publish(1_004);
  await farm.send();
  const after = farm.job;
  expect(after.shareTarget).not.toBe(before.shareTarget);
  expect(after.firstGeneration).toBeGreaterThan(highest + 4 * 8);
  // The rigs of before are still paid as they were; nothing can be sold at both prices.
  expect(await farm.submit(after.firstGeneration - 1, { job: before, nonce: farm.nonce(1) })).toBe(0);
  expect(await farm.submit(after.firstGeneration, { job: before, nonce: farm.nonce(1) })).toBe(20);
  expect(await farm.submit(after.firstGeneration - 1, { job: after, nonce: farm.nonce(0) })).toBe(20);
  expect(await farm.submit(after.firstGeneration, { job: after, nonce: farm.nonce(0) })).toBe(0);
  const works = new Map<string, bigint>();
  for (const { headerDigest, work } of bed.shares) {
    const header = toHex(headerDigest);
    expect(works.get(header) ?? work).toBe(work);
    works.set(header, work);
  }
});

test('after a resume old jobs stay good and count once; the first generation lies above all that was used', async () => {
  const bed = await bedOf();
  const farm = new DeskFarm(bed);
  const session = await farm.begin(['a']);
  const old = farm.job;
  const nonce = farm.nonce();
  expect(await farm.submit(old.firstGeneration + 100, { nonce })).toBe(0);
  expect(await farm.submit(old.firstGeneration, { nonce: farm.nonce(BLOCK) })).toBe(0);
  farm.end();
  await bed.settle();
  const again = new DeskFarm(bed);
  expect(await again.login({ session })).toBe(session);
  expect(await again.submit(old.firstGeneration + 100, { job: old, nonce })).toBe(24);
  await again.send({ type: 'farm', rigs: 8 });
  await again.name('a');
  expect(again.job.firstGeneration).toBeGreaterThan(old.firstGeneration + 100);
  expect(await again.submit(old.firstGeneration + 100, { job: old, nonce })).toBe(22);
  expect(await again.submit(old.firstGeneration + 100, { job: old })).toBe(0);
  expect(await again.submit(old.firstGeneration, { job: old, nonce: again.nonce(BLOCK) })).toBe(0);
  expect(again.blocks).toEqual([]);
  expect(again.work).toBe(4n * 32n);
});

test('what is kept of a farm is as many objects however many generations it named, and is all there after a resume', async () => {
  const bed = await bedOf();
  const objects = async (shares: number) => {
    const farm = new DeskFarm(bed);
    const session = await farm.begin(['a']);
    const { job } = farm;
    const nonces = Array.from({ length: shares }, (_, i) => farm.nonce(i === 0 ? BLOCK : SHARE));
    for (const [i, nonce] of nonces.entries()) expect(await farm.submit(job.firstGeneration + i, { nonce })).toBe(0);
    farm.end();
    await bed.settle();
    const record = bed.shelf.get(session)!;
    const again = new DeskFarm(bed);
    expect(await again.begin(['a'], { session })).toBe(session);
    for (const [i, nonce] of nonces.entries())
      expect(await again.submit(job.firstGeneration + i, { job, nonce })).toBe(22);
    expect(await again.submit(job.firstGeneration, { job, nonce: again.nonce(BLOCK) })).toBe(0);
    expect(again.blocks).toEqual([]);
    return objectsIn(record);
  };
  expect(await objects(40)).toBe(await objects(2));
});

/** Each is copied between threads by itself, which for a hundred thousand of them takes seconds. */
function objectsIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (ArrayBuffer.isView(value)) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + objectsIn(each), 1);
}

test('a farm that has used up its generations gets a new session', async () => {
  const bed = await bedOf();
  const farm = new DeskFarm(bed);
  const session = await farm.begin(['a']);
  expect(await farm.submit(0xffff_ffff)).toBe(0);
  farm.end();
  await bed.settle();
  const again = new DeskFarm(bed);
  expect(await again.begin(['a'], { session })).not.toBe(session);
  expect(await again.submit(again.job.firstGeneration)).toBe(0);
});

test('no farm job begins above what clients take: the connection ends before, and the next one has a new session', async () => {
  const bed = await bedOf();
  const farm = new DeskFarm(bed);
  const session = await farm.begin(['a']);
  expect(await farm.submit(LAST_FIRST_GENERATION - 4 * 8)).toBe(0);
  const { header } = await new TemplateSource().template(0);
  const template = { serial: 9, header, epoch: 0, draw: 0, draws: 1, isFresh: true, cutHeight: 0, told: 0 };
  bed.desk.publish({ templates: [template], headHeight: 1_000, clean: false });
  await farm.send();
  expect(farm.jobs.every(({ firstGeneration }) => firstGeneration <= LAST_FIRST_GENERATION)).toBe(true);
  expect(farm.conversation.isEnding).toBe(true);
  farm.end();
  await bed.settle();
  const again = new DeskFarm(bed);
  expect(await again.begin(['a'], { session })).not.toBe(session);
  expect(again.job.firstGeneration).toBeLessThan(10_000);
});

test('names: 4,097 rigs, an index that was not admitted, and bad names are refused; a rig without a name has no shares', async () => {
  const { bed, farm } = await farmOf();
  const tooMany = encodeClientFrame({ type: 'farm', rigs: 4_096 });
  tooMany[3] = 1;
  farm.conversation.receive(tooMany);
  await farm.send({ type: 'farm', rigs: 4 });
  expect(farm.codes).toEqual([-32602, -32600]);
  await farm.send({ type: 'rig', rig: { index: 8, worker: 'x' } });
  const bad = encodeClientFrame({ type: 'rig', rig: { index: 1, worker: 'x' } });
  bad[6] = 0x20;
  farm.conversation.receive(bad);
  await farm.send();
  expect(farm.codes.slice(2)).toEqual([-32602, -32602]);
  const { firstGeneration } = farm.job;
  expect(await farm.submit(firstGeneration, { rig: 5 })).toBe(24);
  expect(await farm.submit(firstGeneration, { rig: 0xffff })).toBe(24);
  expect(await farm.submit(firstGeneration, { rig: 1 })).toBe(0);
  await farm.send({ type: 'rig', rig: { index: 1, worker: '' } });
  expect(await farm.submit(firstGeneration, { rig: 1 })).toBe(24);
  expect(bed.shares.map(({ member }) => member.worker)).toEqual(['b']);
});

test('names cost nothing before a share, may all change at once but not without end, and are forgotten when they are gone', async () => {
  const introduced: Member[] = [];
  const left: string[] = [];
  const members = { left: (gone: readonly Member[]) => void left.push(...gone.map(({ worker }) => worker)) };
  const events: string[] = [];
  const worker = (list: readonly { kind: string; worker: string }[]) =>
    void events.push(...list.map(({ kind, worker: name }) => `${kind} ${name}`));
  const bed = await bedOf({ members, hub: { worker } });
  const farm = new DeskFarm(bed);
  await farm.begin(['a', 'b', 'c']);
  expect(events).toEqual(['joined hall']);
  expect(await farm.submit(farm.job.firstGeneration, { rig: 1 })).toBe(0);
  expect(await farm.submit(farm.job.firstGeneration, { rig: 1 })).toBe(0);
  introduced.push(...bed.shares.map(({ member }) => member));
  expect(new Set(introduced).size).toBe(1);
  await farm.send();
  expect(events).toEqual(['joined hall', 'joined b']);
  await farm.name('a', 'z');
  farm.conversation.session.mining?.forget(0);
  await farm.send();
  expect(left).toEqual(['b']);
  expect(events).toEqual(['joined hall', 'joined b', 'left b']);
  for (let i = 0; i < 40; i++) await farm.name(`name-${i}`);
  expect(farm.codes.filter((code) => code === 27).length).toBeGreaterThan(20);
  expect(farm.codes).not.toContain(28);
  expect(await farm.submit(farm.job.firstGeneration, { rig: 0 })).toBe(0);
  expect(bed.shares.at(-1)?.member.worker).toMatch(/^name-\d$|^name-1\d$/);
  for (let i = 0; i < 100; i++) farm.put({ type: 'rig', rig: { index: 0, worker: `name-${i}` } });
  await farm.send();
  expect(farm.codes).toContain(28);
});

test('names that are gone are forgotten also of a farm that always has a share in verification', async () => {
  const left: string[] = [];
  const members = { left: (gone: readonly Member[]) => void left.push(...gone.map(({ worker }) => worker)) };
  let judged = Promise.resolve();
  const bed = await bedOf({ members, verifying: () => judged });
  const farm = new DeskFarm(bed);
  await farm.begin(['a', 'b']);
  const { firstGeneration, jobId } = farm.job;
  expect(await farm.submit(firstGeneration, { rig: 0 })).toBe(0);
  expect(await farm.submit(firstGeneration, { rig: 1 })).toBe(0);
  const { promise, resolve } = Promise.withResolvers<void>();
  judged = promise;
  const submit = { jobId, generation: firstGeneration, rig: 0, nonce: farm.nonce() };
  await farm.send({ type: 'farmSubmit', sequence: 3, submit });
  await farm.name('y', 'z');
  farm.conversation.session.mining?.forget(0);
  expect(left).toEqual(['a', 'b']);
  // The share is that of its rig all the same, and once.
  resolve();
  await farm.send();
  expect(bed.shares.map(({ member }) => member.worker)).toEqual(['a', 'b', 'a']);
  expect(new Set(bed.shares.map(({ member }) => member.handle)).size).toBe(3);
  farm.conversation.session.mining?.forget(0);
  expect(left).toEqual(['a', 'b', 'a']);
});

test('a server without farms offers none, and the session goes on as a plain one', async () => {
  const bed = await bedOf({ limits: { ...EASY, farmRigs: 0 } });
  const farm = new DeskFarm(bed);
  await farm.begin(['a']);
  expect(farm.offer).toEqual({ rigs: 0, submitsPerSecond: 0 });
  expect(farm.jobs).toEqual([]);
  await bed.publish(1_001);
  await farm.send();
  expect(farm.plainJobs.length).toBe(2);
  expect(farm.conversation.isEnding).toBe(false);
  const limited = new DeskFarm(await bedOf({ limits: { ...EASY, farmRigs: 3 } }));
  await limited.begin(['a']);
  expect(limited.offer?.rigs).toBe(3);
});

test('share work follows the speed of all rigs: one share in ten seconds for each, and at most five a second', async () => {
  const workOf = async (rigs: number, rate: number) => {
    const bed = await bedOf();
    const farm = new DeskFarm(bed);
    await farm.begin(['a'], { rigs, password: `rate=${rate}` });
    await bed.publish(1_002);
    await farm.send();
    return Number(workOfTarget(farm.job.shareTarget));
  };
  expect(await workOf(1, 4)).toBe(40);
  expect(await workOf(10, 40)).toBe(40);
  expect(await workOf(100, 200)).toBe(40);
  expect(await workOf(4_096, 200)).toBe(40);
});

test('strangers that do nothing cannot keep all places for rigs: farms without a share for long give theirs up', async () => {
  const bed = await bedOf();
  const farms: DeskFarm[] = [];
  const begin = async (address: string) => {
    const farm = new DeskFarm(bed, undefined, address);
    await farm.begin(['a'], { rigs: 4_096 });
    farms.push(farm);
    return farm.offer?.rigs;
  };
  for (let i = 0; i < 256; i++) expect(await begin(`198.51.100.${i % 16}`)).toBe(4_096);
  expect(await begin('203.0.113.7')).toBe(0);
  bed.clock += 110_000;
  const [first, second] = farms as [DeskFarm, DeskFarm];
  expect(await first.submit(first.job.firstGeneration)).toBe(0);
  bed.clock += 20_000;
  expect(await begin('203.0.113.7')).toBe(4_096);
  expect([first, second].map(({ conversation }) => conversation.isEnding)).toEqual([false, true]);
  // Of one address that has as many as an address may have it is one of its own.
  expect(await begin('198.51.100.0')).toBe(4_096);
  expect(farms.filter(({ conversation }) => conversation.isEnding)).toEqual([second, farms[16]]);
  expect(await first.submit(first.job.firstGeneration)).toBe(0);
  for (let i = 0; i < 400; i++) await begin('203.0.113.8');
  expect(first.conversation.isEnding).toBe(false);
  expect(farms.filter(({ offer, conversation }) => offer?.rigs === 4_096 && !conversation.isEnding).length).toBe(256);
});

test('before the login there is no farm', async () => {
  const farm = new DeskFarm(await bedOf());
  await farm.send({ type: 'farm', rigs: 4 }, { type: 'rig', rig: { index: 0, worker: 'a' } });
  expect(farm.codes).toEqual([25, 25]);
});

test('all rigs of an address are bounded, whichever farms they are behind, and a farm that ends makes room', async () => {
  const bed = await bedOf();
  const admitted = async (address?: string) => {
    const farm = new DeskFarm(bed, undefined, address);
    await farm.begin([], { rigs: 4_096 });
    return { farm, rigs: farm.offer?.rigs };
  };
  const { farm: first } = await admitted();
  for (let taken = 4_096; taken < RIGS_OF_ADDRESS; taken += 4_096) expect((await admitted()).rigs).toBe(4_096);
  expect((await admitted()).rigs).toBe(0);
  expect((await admitted('203.0.113.8')).rigs).toBe(4_096);
  first.end();
  expect((await admitted()).rigs).toBe(4_096);
  expect((await admitted()).rigs).toBe(0);
});

/**
 * What a hash counts for is fixed before it is done (docs/protocol/stratum.md, S58). A miner that knew a header before its share
 * work could hash first, and then ask for the share work of its best hash: it was credited with ten times its hashes.
 */
import { expect, test } from 'vitest';
import type { Bytes } from '../../protocol/bytes.ts';
import { decodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { headerForPayout } from '../../protocol/ledger/reward.ts';
import { workOfHash } from '../../protocol/ledger/target.ts';
import { extranonceOfGeneration } from '../../protocol/stratum/farm.ts';
import { EASY } from '../bridge/bed.ts';
import { type DeskSettings, deskBed } from '../bridge/desk-bed.ts';
import { DeskFarm } from '../bridge/desk-farm.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { quickHash } from './credit/world.ts';

const HASHES = 32;
const ROUNDS = 40;
const BLOCK_WORK = 1n << 20n;
const LIMITS = { ...EASY, requests: { perSecond: 1e6, burst: 1e6 }, bans: { ...EASY.bans, limit: 1e9 } };

async function hardBed(settings: DeskSettings = {}) {
  const bed = await deskBed({ hash: quickHash, limits: LIMITS, ...settings });
  const source = new TemplateSource();
  source.blockWork = BLOCK_WORK;
  let serial = 10;
  const make = async (height = source.height) => {
    source.height = height;
    const { header } = await source.template(0);
    new DataView(header.buffer, header.byteOffset).setUint32(24, ++serial);
    return header;
  };
  const send = async (header: Bytes) => {
    const told = decodeHeader(header).anchorHeight;
    const template = { serial, header, epoch: 0, draw: 0, draws: 1, isFresh: false, cutHeight: 0, told };
    bed.tell(told);
    bed.desk.publish({ templates: [template], headHeight: 1_000, clean: false });
    await bed.settle();
    return header;
  };
  const publish = async (height?: number) => send(await make(height));
  const credited = () => bed.shares.reduce((sum, { work }) => sum + Number(work), 0);
  return { bed, make, send, publish, credited };
}

type Best = { readonly nonce: Bytes; readonly work: number };
let used = 0;

/** The best of some hashes on a header. */
function hashOn(template: Bytes, payout: Bytes, extranonce: Bytes, prefix: Bytes): Best {
  const header = Uint8Array.from(headerForPayout(template, payout, extranonce));
  let best: Best = { nonce: new Uint8Array(8), work: 0 };
  for (let i = 0; i < HASHES; i++) {
    const nonce = new Uint8Array(8);
    new DataView(nonce.buffer).setUint32(0, ++used);
    nonce.set(prefix, 8 - prefix.length);
    header.set(nonce, NONCE_OFFSET);
    const work = workOfHash(quickHash(header));
    if (work > best.work) best = { nonce, work };
  }
  return best;
}

const next = (extranonce: Bytes, { connection = 0, generation = 0 }): Bytes => {
  const bytes = Uint8Array.from(extranonce);
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, view.getUint32(bytes.length - 8, true) + connection, true);
  view.setUint32(bytes.length - 4, view.getUint32(bytes.length - 4, true) + generation, true);
  return bytes;
};

test('the header of a connection that will come', async () => {
  const { bed, publish, credited } = await hardBed();
  for (let round = 0; round < ROUNDS; round++) {
    const template = await publish();
    const scout = new DeskMiner(bed);
    await scout.login();
    const { extranonce, payout } = scout.jobs[0]!;
    const number = new DataView(scout.prefix.buffer, scout.prefix.byteOffset).getUint16(0) + 1;
    const prefix = Uint8Array.of(number >> 8, number);
    const best = hashOn(template, payout, next(extranonce, { connection: 1 }), prefix);
    const miner = new DeskMiner(bed);
    await miner.login({ password: `d=${best.work}` });
    await miner.ask({ method: 'mining.submit', params: { jobId: miner.jobs.at(-1)!.jobId, nonce: best.nonce } });
    scout.end();
    miner.end();
  }
  expect(credited() / (ROUNDS * HASHES)).toBeLessThan(1);
});

test('the next body of a session', async () => {
  const { bed, publish, credited } = await hardBed();
  const first = new DeskMiner(bed);
  const session = await first.login({ password: 'd=4' });
  let { extranonce, payout } = first.jobs[0]!;
  first.end();
  for (let round = 0; round < ROUNDS; round++) {
    const template = await publish();
    const best = hashOn(template, payout, next(extranonce, { generation: 1 }), first.prefix);
    const miner = new DeskMiner(bed);
    await miner.login({ session, password: `d=${best.work}` });
    const job = miner.jobs.at(-1)!;
    await miner.ask({ method: 'mining.submit', params: { jobId: job.jobId, nonce: best.nonce } });
    extranonce = job.extranonce;
    miner.end();
  }
  expect(credited() / (ROUNDS * HASHES)).toBeLessThan(1);
});

test.each([false, true])('any generation of a farm, with a plain login in between: %s', async (between) => {
  const { bed, publish, credited } = await hardBed();
  await publish();
  const first = new DeskFarm(bed);
  const session = await first.begin(['a'], { password: 'd=4' });
  const { extranonceHead, payout } = first.job;
  first.end();
  for (let round = 0; round < ROUNDS; round++) {
    const template = await publish();
    const generation = 1_000_000 + 1_000_000 * round;
    const best = hashOn(template, payout, extranonceOfGeneration(extranonceHead, generation), new Uint8Array(0));
    if (between) {
      const plain = new DeskFarm(bed);
      await plain.login({ session, password: `d=${best.work}` });
      plain.end();
    }
    const farm = new DeskFarm(bed);
    expect(await farm.begin(['a'], { session, password: `d=${best.work}` })).toBe(session);
    await farm.submit(generation, { nonce: best.nonce });
    farm.end();
  }
  expect(credited() / (ROUNDS * HASHES)).toBeLessThan(2);
});

test('any generation of a farm that is about to log in', async () => {
  const { bed, publish, credited } = await hardBed();
  const scout = new DeskFarm(bed);
  await scout.begin(['a'], { password: 'd=4' });
  const { extranonceHead, payout } = scout.job;
  for (let round = 0; round < ROUNDS; round++) {
    const template = await publish();
    const farm = new DeskFarm(bed);
    await farm.send({ type: 'subscribe', subscribe: { agent: 'x/1', tag: '', session: null } });
    const [said] = farm.said;
    const { noncePrefix } = said?.type === 'subscribed' ? said.subscribed : { noncePrefix: new Uint8Array(2) };
    const head = Uint8Array.from(extranonceHead);
    head.set([noncePrefix[1]!, noncePrefix[0]!], head.length - 4);
    const best = hashOn(template, payout, extranonceOfGeneration(head, 1_000_000), new Uint8Array(0));
    const authorize = { username: addressOf(1), password: `d=${best.work}` };
    await farm.send({ type: 'authorize', authorize });
    await farm.send({ type: 'farm', rigs: 8 });
    await farm.name('a');
    await farm.submit(1_000_000, { nonce: best.nonce });
    farm.end();
  }
  expect(credited() / (ROUNDS * HASHES)).toBeLessThan(1);
});

test('a template that another server of the same node sends a moment earlier', async () => {
  const { bed, make, send, publish, credited } = await hardBed();
  await publish();
  let farm = new DeskFarm(bed);
  const session = await farm.begin(['a'], { password: 'd=4' });
  const { extranonceHead, payout } = farm.job;
  for (let round = 1; round <= ROUNDS; round++) {
    const template = await make(1_000 + round);
    const generation = 1_000_000 * round;
    const best = hashOn(template, payout, extranonceOfGeneration(extranonceHead, generation), new Uint8Array(0));
    farm.end();
    farm = new DeskFarm(bed);
    // Not more than a few times the usual one: a single lucky hash would decide.
    await farm.begin(['a'], { session, password: `d=${Math.min(Number(best.work), 128)}` });
    await send(template);
    await farm.send();
    await farm.submit(generation, { nonce: best.nonce });
  }
  expect(credited() / (ROUNDS * HASHES)).toBeLessThan(2);
});

test('a share work that was chosen after the node told of a cut, or one cut before', async () => {
  const { bed, publish } = await hardBed();
  await publish();
  const farm = new DeskFarm(bed);
  const session = await farm.begin(['a'], { password: 'd=4' });
  const { shareTarget } = farm.job;
  farm.end();
  // Other servers have sent templates on the cut of 1,002 by then.
  bed.tell(1_001);
  const again = new DeskFarm(bed);
  await again.begin(['a'], { session, password: 'd=1000' });
  for (const height of [1_001, 1_002]) {
    await publish(height);
    await again.send();
  }
  expect(again.jobs.map((job) => job.shareTarget)).toEqual([shareTarget, shareTarget, shareTarget]);
  await publish(1_003);
  await again.send();
  expect(again.job.shareTarget).toBeLessThan(shareTarget);
});

test('a farm that logs in while a node serves that is behind keeps its share work where the first node serves again', async () => {
  const { bed, publish } = await hardBed();
  const begin = async (height: number, login: Parameters<DeskFarm['login']>[0]) => {
    await publish(height);
    const farm = new DeskFarm(bed);
    return { farm, session: await farm.begin(['a'], login) };
  };
  const first = await begin(1_003, { password: 'd=4' });
  first.farm.end();
  const { farm, session } = await begin(1_000, { password: 'd=4' });
  farm.end();
  const { farm: again } = await begin(1_000, { password: 'd=1000', session });
  await publish(1_003);
  await again.send();
  expect(again.jobs.length).toBeGreaterThan(1);
  expect(again.job.shareTarget).toBe(first.farm.job.shareTarget);
});

test('how many rigs a farm asks for decides its share work after the next cut', async () => {
  const { bed, publish } = await hardBed();
  await publish();
  const farm = new DeskFarm(bed);
  await farm.login({ password: 'rate=10000' });
  const plain = plainOf(farm)?.shareTarget;
  await farm.send({ type: 'farm', rigs: 1_000 });
  await publish(1_001);
  await farm.send();
  expect(farm.jobs.map((job) => job.shareTarget)).toEqual([plain, plain]);
  await publish(1_002);
  await farm.send();
  expect(farm.job.shareTarget).toBeGreaterThan(plain!);
});

test('where a plain job had another share work than a farm job would, also as one of many, the farm has no job on that template', async () => {
  const { bed, publish } = await hardBed();
  await publish();
  const begin = async (password: string, session: string | null = null) => {
    const miner = new DeskFarm(bed);
    return { miner, session: await miner.login({ password, session }) };
  };
  const first = await begin('d=4');
  first.miner.end();
  const { miner } = await begin('d=64', first.session);
  // The second one is on the same cut, with higher fees.
  await publish(1_001);
  await publish(1_001);
  await miner.send({ type: 'farm', rigs: 8 });
  expect(miner.jobs).toEqual([]);
  await publish(1_002);
  await miner.send();
  expect(miner.jobs).toHaveLength(1);
});

test('whatever a session asks for on one template, all its farm jobs there have one share work', async () => {
  const { bed, publish } = await hardBed();
  await publish();
  const works = new Set<bigint>();
  let session: string | null = null;
  for (let i = 0; i < 60; i++) {
    const farm: DeskFarm = new DeskFarm(bed);
    const password: string = ['', 'd=8', 'd=64', 'min=32', 'rate=100'][i % 5] as string;
    session = await (i % 3 === 1 ? farm.login({ session, password }) : farm.begin(['a'], { session, password }));
    for (const job of farm.jobs) works.add(job.shareTarget);
    for (let share = 0; share < 3 && farm.jobs.length > 0; share++)
      await farm.submit(farm.job.firstGeneration, {
        nonce: hashOn(
          farm.job.header,
          farm.job.payout,
          extranonceOfGeneration(farm.job.extranonceHead, farm.job.firstGeneration),
          new Uint8Array(0),
        ).nonce,
      });
    bed.clock += 500;
    for (const job of farm.jobs) works.add(job.shareTarget);
    farm.end();
  }
  expect(works.size).toBe(1);
});

/** Its newest plain job. */
const plainOf = ({ said }: DeskFarm) => said.flatMap((frame) => (frame.type === 'job' ? [frame.job] : [])).at(-1);

/** All hashes are shares, and none is a block. */
const allShares = () => new Uint8Array(32).fill(0xff, 4);

test('what a template counts for is the same whether a farm gets its job on it or resumes its session first', async () => {
  const targets: bigint[] = [];
  for (const resumes of [false, true]) {
    const { bed, publish } = await hardBed({ hash: allShares });
    await publish();
    const farm = new DeskFarm(bed);
    const session = await farm.begin(['a'], { password: '' });
    bed.clock += 100;
    for (let share = 0; share < 20; share++) await farm.submit(farm.job.firstGeneration);
    // It does not read: others have the template before.
    farm.peer.queued = 1;
    await publish(1_002);
    const next = resumes ? new DeskFarm(bed) : farm;
    if (resumes) await next.begin(['a'], { session, password: '' });
    next.peer.queued = 0;
    await next.send();
    expect(next.job.shareTarget).toBeLessThan(farm.jobs[0]!.shareTarget);
    targets.push(next.job.shareTarget);
  }
  expect(targets[0]).toBe(targets[1]);
});

test.each([0, 8])('a resume for which a share is verified too long, of a farm of so many rigs: %s', async (rigs) => {
  const { promise: verified, resolve: verify } = Promise.withResolvers<void>();
  let verifying = Promise.resolve();
  const { bed, publish } = await hardBed({
    hash: allShares,
    verifying: () => verifying,
    // The session is taken as it is in the end, and its jobs of before are dead.
    hub: {
      resume: (id) => {
        const taken = bed.desk.takeSession(id);
        bed.clock += 3_000;
        return taken;
      },
    },
  });
  await publish();
  const begin = async (password: string, session: string | null = null) => {
    const miner = new DeskFarm(bed);
    const id = await miner.login({ password, session });
    if (rigs > 0) await miner.send({ type: 'farm', rigs });
    if (rigs > 0) await miner.name('a');
    return { miner, id };
  };
  const generationOf = (extranonce: Bytes) => Buffer.from(extranonce).readUInt32LE(extranonce.length - 4);
  const { miner, id } = await begin('d=4');
  const submit = async () => {
    if (rigs > 0) return miner.submit(miner.job.firstGeneration);
    const [said] = miner.said;
    const nonce = miner.nonce();
    nonce.set(said?.type === 'subscribed' ? said.subscribed.noncePrefix : [], 6);
    return miner.submitPlain(plainOf(miner)!.jobId, nonce);
  };
  expect(await submit()).toBe(0);
  verifying = verified;
  await expect(submit()).rejects.toThrow('no verdict');
  const { miner: again } = await begin('d=1000', id);
  await expect.poll(() => again.send().then(() => plainOf(again))).toBeDefined();
  if (rigs > 0) expect(again.job.shareTarget).toBe(miner.job.shareTarget);
  else expect(generationOf(plainOf(again)!.extranonce)).toBeGreaterThan(generationOf(plainOf(miner)!.extranonce) + 1);
  verify();
  await bed.settle();
});

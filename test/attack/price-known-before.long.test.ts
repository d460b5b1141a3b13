/**
 * What a hash counts for is fixed before anybody can do it (docs/protocol/stratum.md, S58 and S73). A miner may know the next
 * template before the server has it: another server of the same node sends it, or its own node makes the same. Here the same
 * session meets it in several ways, whatever the miner does from the moment in which it can know it: logs in again as a farm or
 * not, wishes for anything, sends shares, falls silent, reads nothing. Had it hashed before, it could choose the best of
 * them: so each header that it could have hashed on has one price in all of them.
 */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { TemplateAnswer } from '../../bridge/nodes/template.ts';
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET, REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';
import { headerForPayout } from '../../protocol/ledger/reward.ts';
import { workOfHash } from '../../protocol/ledger/target.ts';
import { extranonceOfGeneration, type FarmJob } from '../../protocol/stratum/farm.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { EASY, startBed } from '../bridge/bed.ts';
import { type DeskBed, deskBed } from '../bridge/desk-bed.ts';
import { DeskFarm } from '../bridge/desk-farm.ts';
import { addressOf, V2Client } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { randomOf } from '../random.ts';
import { until } from '../until.ts';
import { quickHash, quickVerifier } from './credit/world.ts';

const SEEDS = 30;
const WAYS = 4;
const CUT_MILLIS = 2_500;
const ROUNDS = 40;
const HASHES = 32;
const PASSWORDS = ['', 'd=4', 'd=9', 'd=64', 'd=1000', 'min=32', 'min=7', 'rate=100', 'rate=3000'];
const LIMITS = { ...EASY, requests: { perSecond: 1e6, burst: 1e6 }, bans: { ...EASY.bans, limit: 1e9 } };
/** All hashes are shares, and none is a block. */
const allShares = () => new Uint8Array(32).fill(0xff, 4);

type Random = (limit: number) => number;
type Made = { readonly header: Bytes; readonly height: number; readonly isFresh: boolean };

/** The last one is that which the miner knows before: on the same cut, on the next one, or one that was there already. */
async function templatesOf(random: Random): Promise<Made[]> {
  const source = new TemplateSource();
  source.blockWork = 1n << 20n;
  source.height = 1_001;
  const made: Made[] = [];
  for (let i = 1 + random(4); i >= 0; i--) {
    const { header } = await source.template(0);
    new DataView(header.buffer, header.byteOffset).setUint32(24, made.length + 1);
    made.push({ header, height: source.height, isFresh: false });
    if (random(3) > 0) source.height++;
    // Another node serves, which is behind, or the one of before again.
    else if (random(3) === 0) source.height -= 1 + random(4);
    else if (random(2) === 0) source.height = Math.max(...made.map(({ height }) => height));
  }
  if (random(4) === 0) made.push({ ...(made[random(made.length)] as Made), isFresh: true });
  return made;
}

/** One miner with one session, which it is on again and again. */
class Chooser {
  readonly #bed: DeskBed;
  readonly #begun: DeskFarm[] = [];
  #session: string | null = null;
  #serial = 10;
  random: Random;

  constructor(bed: DeskBed, random: Random) {
    this.#bed = bed;
    this.random = random;
  }

  async publish({ header, height, isFresh }: Made): Promise<void> {
    const template = {
      serial: ++this.#serial,
      header,
      epoch: 0,
      draw: 0,
      draws: 1,
      isFresh,
      cutHeight: 0,
      told: height,
    };
    this.#bed.tell(height);
    this.#bed.desk.publish({ templates: [template], headHeight: height, clean: false });
    await this.#bed.settle();
  }

  async #begin(): Promise<void> {
    this.#begun.at(-1)?.end();
    const miner = new DeskFarm(this.#bed);
    const password = PASSWORDS[this.random(PASSWORDS.length)] as string;
    const session = await miner.login({ session: this.#session, password });
    this.#session = session;
    this.#begun.push(miner);
  }

  async act(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      if (this.#begun.at(-1)?.peer.isClosed !== false) await this.#begin();
      const miner = this.#begun.at(-1) as DeskFarm;
      switch (this.random(7)) {
        case 0:
          await this.#begin();
          break;
        case 1:
          await this.#begin();
          await this.#farm();
          break;
        case 2:
          await this.#farm();
          break;
        case 3:
          this.#bed.clock += this.random(20_000);
          await this.#tick();
          break;
        case 4:
          miner.peer.queued = this.random(2);
          break;
        default:
          await this.#share(miner);
      }
    }
  }

  async #farm(): Promise<void> {
    const miner = this.#begun.at(-1) as DeskFarm;
    if (miner.offer !== undefined) return;
    await miner.send({ type: 'farm', rigs: 8 });
    await miner.name('a');
  }

  /** Long enough for a sweep of all connections. */
  async #tick(): Promise<void> {
    for (let i = 0; i < 40; i++) this.#bed.desk.tick();
    await this.#bed.settle();
  }

  async #share(miner: DeskFarm): Promise<void> {
    for (let i = this.random(10); i >= 0; i--) {
      this.#bed.clock += 50;
      if (miner.peer.isClosed) return;
      if (miner.jobs.length > 0) await miner.submit(miner.job.firstGeneration + this.random(4));
      else {
        const [job, nonce] = [plainJobs(miner).at(-1), miner.nonce()];
        const [said] = miner.said;
        nonce.set(said?.type === 'subscribed' ? said.subscribed.noncePrefix : [], 6);
        if (job !== undefined) await miner.submitPlain(job.jobId, nonce);
      }
    }
  }

  async read(): Promise<void> {
    const miner = this.#begun.at(-1) as DeskFarm;
    miner.peer.queued = 0;
    await miner.send();
  }

  /** Of all its jobs on the template: what their header can be told by, and its price. */
  pricesOn({ header }: Made): { readonly farm: Map<string, bigint[]>; readonly plain: Map<string, bigint[]> } {
    const [farm, plain] = [new Map<string, bigint[]>(), new Map<string, bigint[]>()];
    for (const miner of this.#begun) {
      for (const job of miner.jobs) if (isOn(header, job.header)) add(farm, toHex(job.extranonceHead), job.shareTarget);
      for (const job of plainJobs(miner))
        if (isOn(header, job.header)) add(plain, toHex(job.extranonce), job.shareTarget);
    }
    return { farm, plain };
  }
}

const plainJobs = ({ said }: DeskFarm): Job[] => said.flatMap((frame) => (frame.type === 'job' ? [frame.job] : []));
const isOn = (template: Bytes, header: Bytes): boolean =>
  equalBytes(template.subarray(0, REWARD_ROOT_OFFSET), header.subarray(0, REWARD_ROOT_OFFSET));
const add = <K>(map: Map<K, bigint[]>, key: K, price: bigint): void =>
  void map.set(key, [...(map.get(key) ?? []), price]);

/** The same until the template can be known, and then one of several ways. */
async function meet(seed: number, way: number, templates: readonly Made[]): Promise<ReturnType<Chooser['pricesOn']>> {
  const bed = await deskBed({ hash: allShares, limits: LIMITS, seed });
  const miner = new Chooser(bed, randomOf(seed));
  const known = templates.at(-1) as Made;
  let height = Math.max(...templates.map((template) => template.height));
  for (const template of templates.slice(0, -1)) {
    await miner.publish(template);
    await miner.act(4);
  }
  // From here on chance is another: what is drawn, and the names of connections.
  for (let i = 0; i < 40 * way; i++) bed.desk.drawSteps();
  for (let i = 0; i < 100 * way; i++) bed.desk.newNumbers();
  miner.random = randomOf(1_000 * seed + way);
  await miner.act(miner.random(4));
  await miner.publish(known);
  await miner.act(miner.random(6));
  // Cuts come, and no templates: a dataset is built.
  for (let cuts = randomOf(seed)(3) * 4; cuts > 0; cuts--) {
    bed.tell(++height);
    await miner.act(miner.random(4));
  }
  await miner.read();
  return miner.pricesOn(known);
}

test('a header that could be known has one price, whatever the miner chooses after that', async () => {
  let compared = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const templates = await templatesOf(randomOf(seed));
    const all = new Map<string, bigint[]>();
    for (let way = 0; way < WAYS; way++) {
      const { farm, plain } = await meet(seed, way, templates);
      for (const prices of [farm, plain])
        for (const [name, found] of prices) for (const price of found) add(all, name, price);
      // Where a farm has hashed on all generations, one that is drawn for a plain job is no other.
      for (const [head, prices] of templates.at(-1)?.isFresh ? [] : farm) {
        const ofPlain = [...plain].filter(([name]) => name.startsWith(head)).flatMap(([, found]) => found);
        expect(new Set([...prices, ...ofPlain]).size, `seed ${seed}, way ${way}`).toBe(1);
      }
    }
    for (const [name, prices] of all) {
      compared += prices.length - 1;
      expect(new Set(prices).size, `seed ${seed}, ${name}`).toBe(1);
    }
  }
  expect(compared).toBeGreaterThan(SEEDS);
});

test('a server knows a cut when its node tells of it, also where a dataset has to be built first, and no heights of another chain', async () => {
  let prepared = Promise.resolve();
  let clock = 0;
  const { port, source } = await startBed({
    serverNow: () => clock,
    verifier: { ...quickVerifier, prepare: () => prepared },
    blockWork: 1n << 20n,
  });
  const begin = async (password: string, session: string | null) => {
    const client = await V2Client.open(port);
    await client.login(`${addressOf(1)}.w`, password, session);
    await client.farm(8);
    return client;
  };
  const targets = async (client: V2Client, jobs: number) => {
    await until(() => client.farmJobs.length === jobs);
    return client.farmJobs.map((job) => job.shareTarget);
  };
  const cut = () => {
    clock += CUT_MILLIS;
    source.cut();
  };
  const first = await begin('d=16', null);
  const [before] = await targets(first, 1);
  const { promise, resolve } = Promise.withResolvers<void>();
  prepared = promise;
  let asked = 0;
  source.spoil = (answer) => {
    asked++;
    return answer;
  };
  cut();
  await until(() => asked > 0);
  const again = await begin('d=1000', first.session);
  resolve();
  await targets(again, 2);
  cut();
  expect(await targets(again, 3)).toEqual([before, before, before]);
  cut();
  const wished = (await targets(again, 4)).at(-1);
  expect(wished).not.toBe(before);

  clock += CUT_MILLIS;
  source.takeUp(5, randomBytes(48));
  source.back();
  await targets(again, 5);
  const other = await begin('d=64', again.session);
  cut();
  expect(await targets(other, 2)).toEqual([wished, wished]);
  cut();
  expect((await targets(other, 3)).at(-1)).not.toBe(wished);
});

/** What another server of the same node sends is what this one gets. */
class SharedNode extends TemplateSource {
  #made: { readonly height: number; readonly answer: Promise<TemplateAnswer> } | undefined;

  override template(draw: number): Promise<TemplateAnswer> {
    if (this.isAway) return Promise.reject(new Error('away'));
    if (this.#made?.height !== this.height) this.#made = { height: this.height, answer: super.template(draw) };
    return this.#made.answer;
  }
}

/** The best of some hashes on a header of a farm's generation. */
function bestHash({ extranonceHead, payout }: FarmJob, header: Bytes, generation: number) {
  const own = Uint8Array.from(headerForPayout(header, payout, extranonceOfGeneration(extranonceHead, generation)));
  let best = { nonce: new Uint8Array(8), work: 0 };
  for (let i = 0; i < HASHES; i++) {
    const nonce = Uint8Array.from(randomBytes(8));
    own.set(nonce, NONCE_OFFSET);
    const work = Number(workOfHash(quickHash(own)));
    if (work > best.work) best = { nonce, work };
  }
  return best;
}

/** How far the second node is ahead at first, and what it and others tell of until it serves. */
type Second = { readonly ahead: number; readonly heard: boolean; readonly cutMillis: number; readonly rush: number };

test.each<[string, Second]>([
  ['it is ahead', { ahead: 3, heard: true, cutMillis: CUT_MILLIS, rush: 0 }],
  ['it catches up, many cuts a second', { ahead: 40, heard: true, cutMillis: 10, rush: 0 }],
  ['it comes back after a while', { ahead: 30, heard: false, cutMillis: CUT_MILLIS, rush: 0 }],
  ['it comes back with cuts of long ago', { ahead: -5, heard: false, cutMillis: CUT_MILLIS, rush: 0 }],
  ['it comes back, while a third one catches up', { ahead: 30, heard: false, cutMillis: CUT_MILLIS, rush: 30 }],
])(
  'a farm that has the templates of a second node from another server, when it begins to serve: %s',
  async (_, second) => {
    const [serving, next, third] = [new SharedNode('first'), new SharedNode('second'), new TemplateSource('third')];
    let clock = 0;
    const { port, sink } = await startBed({
      sources: [serving, next, third],
      serverNow: () => clock,
      verifier: quickVerifier,
      blockWork: 1n << 40n,
      limits: LIMITS,
    });
    const cut = (node: TemplateSource, millis = CUT_MILLIS) => {
      clock += millis;
      node.cut();
    };
    const begin = async (password: string, session: string | null) => {
      const client = await V2Client.open(port);
      await client.login(`${addressOf(1)}.w`, password, session);
      await client.farm(8);
      return client;
    };
    next.takeUp(serving.height + second.ahead, randomBytes(48));
    if (second.heard) next.back();
    else next.away();
    let farm = await begin('d=4', null);
    for (let round = 1; round <= ROUNDS; round++) {
      for (let cuts = 0; cuts < 3; cuts++) {
        if (second.heard) cut(next, second.cutMillis);
        else next.takeUp(next.height + 1, randomBytes(48));
        cut(serving);
      }
      next.isAway = false;
      const { header } = await next.template(0);
      next.isAway = !second.heard;
      const generation = 1_000_000 * round;
      const best = bestHash(farm.farmJobs.at(-1) as FarmJob, header, generation);
      const { session } = farm;
      farm.close();
      // Not more than a few times the usual one: a single lucky hash would decide.
      farm = await begin(`d=${Math.min(best.work, 128)}`, session);
      for (let cuts = 0; cuts < second.rush; cuts++) cut(third, 10);
      if (!second.heard) next.back();
      serving.away();
      const isOnIt = (job: FarmJob) => isOn(header, job.header);
      await until(() => farm.farmJobs.some(isOnIt));
      const { jobId } = farm.farmJobs.findLast(isOnIt) as FarmJob;
      const frames = farm.frames.length;
      await farm.codeOf(farm.farmSubmit({ jobId, generation, rig: 0, nonce: best.nonce }), frames);
      if (!second.heard) next.away();
      serving.back();
      await until(() => !isOnIt(farm.farmJobs.at(-1) as FarmJob));
    }
    const credited = sink.accepted.reduce((sum, { work }) => sum + Number(work), 0);
    expect(sink.accepted.length).toBeGreaterThan(ROUNDS / 4);
    expect(credited / (ROUNDS * HASHES)).toBeLessThan(1.5);
  },
);

/**
 * Farm sessions under clients that do anything: jobs of any connection of the session, generations below the first, of another job, of a
 * block before and at the edges, replays, plain submits among them, resumes while shares are being verified, templates that come
 * twice or on a changed chain. Whatever the order: a nonce of a header counts once, a header has one work, a generation has one block.
 */
import { expect, onTestFinished, test } from 'vitest';
import { LIMIT_DEFAULTS } from '../../bridge/options.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import type { FarmSubmit } from '../../protocol/stratum/farm.ts';
import { EASY } from '../bridge/bed.ts';
import { type DeskBed, deskBed } from '../bridge/desk-bed.ts';
import { DeskFarm } from '../bridge/desk-farm.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { seed as chosen, count } from '../level.ts';
import { randomOf } from '../random.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { anyGenerationOfAFarm, judgeByJobId } from './credit/mutations.ts';

/** A hash is the first byte of its nonce: up to 3 it is a block, up to 200 a share or not by the share work. */
const hash = (header: Bytes): Bytes => new Uint8Array(32).fill(header[NONCE_OFFSET] as number);
const ANY_RATE = { perSecond: 1e6, burst: 1e6 };
const LIMITS = {
  ...EASY,
  requests: ANY_RATE,
  submits: ANY_RATE,
  bans: { ...LIMIT_DEFAULTS.bans, limit: 1e12 },
  vardiff: { ...LIMIT_DEFAULTS.vardiff, startWork: 16n, minWork: 1n, secondsPerShare: 1 },
};
const PASSWORDS = ['', 'd=4', 'd=16', 'd=32', 'min=8'];
const EDGES = [0, 0x7fffffff, 0x80000000, 0xffffffff];
const STEPS = 120;
const LONGER_THAN_A_RESUME_WAITS = 3_000;

/** All that was sent to one session, on whatever connections. */
type Known = { readonly jobs: Map<number, Set<number>>; readonly sent: FarmSubmit[] };
type Line = { readonly farm: DeskFarm; readonly id: string; sequence: number };

class Strategy {
  readonly #random: (limit: number) => number;
  readonly #bed: DeskBed;
  readonly #verification: { held: (() => void)[] | null };
  readonly #known = new Map<string, Known>();
  #lines: Line[] = [];
  #serial = 1;
  #height = 1_000;

  constructor(random: (limit: number) => number, bed: DeskBed, verification: { held: (() => void)[] | null }) {
    this.#random = random;
    this.#bed = bed;
    this.#verification = verification;
  }

  async play(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      for (const line of this.#lines) this.#learn(line);
      this.#lines = this.#lines.filter(({ farm }) => !farm.conversation.isEnding && !farm.peer.isClosed);
      const line = this.#lines[this.#random(this.#lines.length)];
      if (line === undefined) await this.#connect([...this.#known.keys()].at(-1) ?? null);
      else await this.#step(line, this.#random(100));
      await this.#flush();
    }
    this.#release();
    await this.#flush();
  }

  async #step(line: Line, draw: number): Promise<void> {
    if (draw < 66) for (let i = 0; i < 6; i++) this.#submit(line);
    else if (draw < 71) this.#verification.held ??= [];
    else if (draw < 80) this.#release();
    else if (draw < 86) await this.#publish();
    else if (draw < 91) this.#bed.clock += this.#random(4_000);
    else if (draw < 94) line.farm.end();
    else if (draw < 98) await this.#connect([...this.#known.keys()][this.#random(this.#known.size)] ?? null);
    else if (draw < 99) await this.#connect(null);
    else line.farm.conversation.session.mining?.forget(this.#bed.desk.shelf.oldest);
  }

  async #flush(): Promise<void> {
    await this.#bed.settle();
    this.#bed.desk.tick();
    await this.#bed.settle();
  }

  #release(): void {
    const held = this.#verification.held ?? [];
    this.#verification.held = null;
    for (const resolve of held) resolve();
  }

  async #connect(session: string | null): Promise<void> {
    const farm = new DeskFarm(this.#bed);
    const subscribing = farm.send({ type: 'subscribe', subscribe: { agent: 'x/1', tag: '', session } });
    if (session !== null && this.#random(4) > 0) this.#release();
    const answer = () => farm.said.find((frame) => frame.type === 'subscribed');
    await subscribing;
    // It waits for what is being verified, and not for ever.
    this.#bed.clock += LONGER_THAN_A_RESUME_WAITS;
    await until(async () => {
      await this.#flush();
      return answer() !== undefined;
    });
    const id = answer()?.subscribed.session ?? '';
    if (!this.#known.has(id)) this.#known.set(id, { jobs: new Map(), sent: [] });
    const username = `${addressOf(1)}.hall`;
    const password = PASSWORDS[this.#random(PASSWORDS.length)] as string;
    await farm.send({ type: 'authorize', authorize: { username, password } });
    if (this.#random(5) > 0) await farm.send({ type: 'farm', rigs: 3 + this.#random(5) });
    await farm.name('a', 'b', 'c');
    this.#lines.push({ farm, id, sequence: 0 });
  }

  #knownOf({ id }: Line): Known {
    return this.#known.get(id) as Known;
  }

  #learn(line: Line): void {
    const { jobs } = this.#knownOf(line);
    for (const frame of line.farm.said) {
      if (frame.type !== 'job' && frame.type !== 'farmJob') continue;
      const { jobId } = frame.job;
      const generations = jobs.get(jobId) ?? new Set();
      if (frame.type === 'farmJob') generations.add(frame.job.firstGeneration);
      jobs.set(jobId, generations);
    }
    line.farm.forget();
  }

  #submit(line: Line): void {
    const random = this.#random;
    const { jobs, sent } = this.#knownOf(line);
    const ids = [...jobs.keys()];
    const jobId = ids[Math.max(0, ids.length - 1 - (random(2) === 0 ? 0 : random(3)))];
    if (jobId === undefined) return;
    const again = sent.slice(-12);
    const own = jobs.get(jobId) as Set<number>;
    const firsts = [...(random(4) > 0 && own.size > 0 ? own : [...jobs.values()].flatMap((each) => [...each]))];
    const near = Math.max(
      0,
      (firsts[random(firsts.length)] ?? 0) + ([-1, 0, 0, 0, 1, 2, 3, 8, 30][random(9)] as number),
    );
    const generation = random(60) === 0 ? (EDGES[random(EDGES.length)] as number) : near;
    const nonce = Uint8Array.from([random(8) === 0 ? 200 : random(7), ...Array.from({ length: 7 }, () => random(3))]);
    const fresh = { jobId, generation, rig: random(12) === 0 ? 5 : random(3), nonce };
    const submit = random(3) === 0 ? (again[random(again.length)] ?? fresh) : fresh;
    if (submit === fresh) sent.push(fresh);
    const sequence = ++line.sequence;
    line.farm.put(
      random(6) === 0
        ? { type: 'submit', sequence, submit: { jobId, nonce } }
        : { type: 'farmSubmit', sequence, submit },
    );
  }

  async #publish(): Promise<void> {
    const source = new TemplateSource();
    source.blockWork = 64n;
    source.height = ++this.#height;
    const header = (await source.template(0)).header.slice();
    // The only parts of a template that chance or the clock chose.
    header.fill(0, 24, 80);
    const isFresh = this.#random(6) === 0;
    const template = {
      serial: ++this.#serial,
      header,
      epoch: 0,
      draw: 0,
      draws: 1,
      isFresh,
      cutHeight: 0,
      told: this.#height,
    };
    this.#bed.tell(this.#height);
    this.#bed.desk.publish({ templates: [template], headHeight: this.#height, clean: this.#random(16) === 0 });
  }
}

const SEEDS = Array.from({ length: count({ quick: 4, full: 24, deep: 1_000 }) }, (_, i) => chosen + i);

test(
  'a nonce of a header counts once, a header has one work and a generation one block, whatever a farm sends and when',
  lasts(120, 'strategies of a hundred steps each'),
  async () => {
    const all = { shares: 0, blocks: 0 };
    for (const seed of SEEDS) {
      const bed = await played(seed);
      expectEachOnce(bed, seed);
      all.shares += bed.shares.length;
      all.blocks += bed.blocks.length;
    }
    expect(all.shares).toBeGreaterThan(20 * SEEDS.length);
    expect(all.blocks).toBeGreaterThan(5 * SEEDS.length);
  },
);

test.each([
  ['duplicates by job id', judgeByJobId],
  ['generations with two share targets', anyGenerationOfAFarm],
])('the hole is found when it is put back: %s', async (_, mutate) => {
  onTestFinished(mutate());
  const found = async (seed: number): Promise<boolean> => {
    const bed = await played(seed);
    return await Promise.try(() => expectEachOnce(bed, seed)).then(
      () => false,
      () => true,
    );
  };
  let seed = chosen;
  while (!(await found(seed))) expect(seed++).toBeLessThan(chosen + 20);
});

async function played(seed: number): Promise<DeskBed> {
  const verification: { held: (() => void)[] | null } = { held: null };
  const verifying = () =>
    new Promise<void>((resolve) => {
      if (verification.held === null) resolve();
      else verification.held.push(resolve);
    });
  const bed = await deskBed({ hash, seed, limits: LIMITS, verifying });
  await new Strategy(randomOf(seed), bed, verification).play();
  return bed;
}

function expectEachOnce({ shares, blocks }: DeskBed, seed: number): void {
  const works = new Map<string, bigint>();
  const counted = new Set<string>();
  for (const { headerDigest, nonce, work } of shares) {
    const header = toHex(headerDigest);
    counted.add(`${header} ${toHex(nonce)}`);
    expect(works.get(header) ?? work, `two works of one header, seed ${seed}`).toBe(work);
    works.set(header, work);
  }
  expect(counted.size, `counted twice, seed ${seed}`).toBe(shares.length);
  const bodies = new Set(blocks.map(({ extranonce }) => toHex(extranonce)));
  expect(bodies.size, `two blocks of one body, seed ${seed}`).toBe(blocks.length);
}

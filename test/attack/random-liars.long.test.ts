/**
 * One honest peer, quick or slow, now and then busy, or pruned, among up to 60 random liars that come and go as they
 * like: a node that syncs reaches the newest cut within a bounded time, stays near it and blames no honest peer. In
 * virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { count, seed } from '../level.ts';
import { type Random, randomOf } from '../random.ts';
import { type Answer, CUT_MILLIS, LiarsBed, passing, pause, type Question } from './liars.ts';

const INTERVAL = 384;
const MUCH = 1_000_000_000;
const RUNS = count({ full: 24, deep: 400 });
const MILLIS = 360_000;

/** Three searches, for cuts, headers and blocks, in which each liar has its turn twice, before the honest peer is known. */
const START_MILLIS = 180_000;
/** What the node may be behind at any time after that, and for longer than a round of turns. */
const WORST_CUTS = 40;
const CUTS = 10;
const ROUND_MILLIS = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

type Deed = (bed: LiarsBed, question: Question) => Uint8Array | 'busy' | 'silent';

const some =
  (keep: (i: number, count: number) => boolean): Deed =>
  (bed, question) =>
    question.type === 'blocks'
      ? bed.truth({
          ...question,
          ids: question.ids.map((id, i, { length }) => (keep(i, length) ? id : id.slice().fill(0))),
        })
      : bed.truth(question, { most: 1 });

/** It has what this node has: what it claimed before is gone, and costs it nothing, as it has nothing older either. */
const takesBack: Deed = (bed, question) =>
  question.type === 'cuts' && question.from > bed.height
    ? bed.truth(question, { head: bed.height, bodiesFrom: question.from + 1 })
    : bed.truth(question);

/** What a liar does over a question. */
const DEEDS: readonly Deed[] = [
  (bed, question) => bed.truth(question),
  (bed, question) => bed.truth(question, { most: 1 }),
  (bed, question) => bed.truth(question, { most: 3 }),
  (bed, question) => bed.truth(question, { head: Math.min(bed.tip, bed.height + 1) }),
  (bed, question) => bed.truth(question, { head: Math.max(0, bed.tip - 4) }),
  (bed, question) =>
    question.type === 'cuts' ? bed.truth({ ...question, from: bed.tip + 1 }) : bed.truth(question, { head: -1 }),
  (bed, question) => bed.truth(question, { isCertified: () => false, most: 3 }),
  (bed, question) => (question.type === 'headers' ? bed.truth({ ...question, count: 1 }) : bed.truth(question)),
  some((i) => i > 0),
  some((i, length) => i < length - 1),
  some((i, length) => i < length / 2),
  (bed, question) => takesBack(bed, question),
  () => 'silent',
  () => 'busy',
  () => 'busy',
  () => new Uint8Array(3),
];
const DELAYS = [0, 0, 50, 300, 900, 1_400, 1_600, 2_900, 3_100, 6_000, 12_000, 19_000, 19_900];

type Phase = {
  readonly deeds: Readonly<
    Record<Exclude<Question['type'], 'blockPart'>, { readonly deed: Deed; readonly millis: number }>
  >;
  readonly length: number;
};
type Character = {
  readonly phases: readonly Phase[];
  /** By questions, by seconds, or by whether the node is behind. */
  readonly turns: 'questions' | 'seconds' | 'behind';
  readonly isShifted: boolean;
  readonly stays: number;
  readonly announces: number;
};

const oneOf = <T>(random: Random, of: readonly T[]): T => of[random(of.length)] as T;

function characterOf(random: Random): Character {
  const deed = () => ({ deed: oneOf(random, DEEDS), millis: oneOf(random, DELAYS) });
  const honest = { deed: DEEDS[0] as Deed, millis: 0 };
  const phases = Array.from({ length: 1 + random(4) }, () => ({
    deeds:
      random(4) === 0
        ? { cuts: honest, headers: honest, blocks: honest }
        : { cuts: deed(), headers: deed(), blocks: deed() },
    length: oneOf(random, [1, 2, 3, 5, 10, 30, 100]),
  }));
  return {
    phases,
    turns: oneOf(random, ['questions', 'seconds', 'behind'] as const),
    isShifted: random(2) === 0,
    stays: oneOf(random, [1_000, 8_000, 30_000, 120_000, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]),
    announces: oneOf(random, [0, 1, MUCH]),
  };
}

/** 25 that bring one cut after 12 seconds, and say at once that they are busy when they are asked for blocks. */
const ONE_CUT_LATE: Character = {
  phases: [
    {
      deeds: {
        cuts: { deed: DEEDS[1] as Deed, millis: 12_000 },
        headers: { deed: DEEDS[0] as Deed, millis: 19_900 },
        blocks: { deed: () => 'busy', millis: 0 },
      },
      length: 1,
    },
  ],
  turns: 'questions',
  isShifted: false,
  stays: Number.POSITIVE_INFINITY,
  announces: MUCH,
};

type Honest = 'quick' | 'slow' | 'busy' | 'pruned';
type Plan = {
  readonly random: Random;
  readonly honest: Honest;
  readonly count: number;
  readonly characters: readonly Character[];
};

function planOf(random: Random): Plan {
  return {
    random,
    honest: oneOf(random, ['quick', 'slow', 'busy', 'pruned'] as const),
    count: oneOf(random, [1, 2, 3, 6, 12, 25, 40, 60]),
    characters: Array.from({ length: 1 + random(3) }, () => characterOf(random)),
  };
}

class Liars {
  #names = 0;
  readonly #until = new Map<string, number>();
  readonly #announces = new Map<string, number>();
  readonly #plan: Plan;
  readonly #bed: LiarsBed;

  constructor(bed: LiarsBed, plan: Plan) {
    this.#bed = bed;
    this.#plan = plan;
  }

  /** Each second. */
  move(): void {
    const { random, characters, count } = this.#plan;
    for (const [name, until] of this.#until)
      if (until <= Date.now() || !this.#bed.peers.has(name)) {
        this.#bed.leave(name);
        this.#until.delete(name);
      }
    while (this.#until.size < count) this.#come(oneOf(random, characters));
    for (const name of this.#until.keys()) {
      const more = this.#announces.get(name) ?? 0;
      if (more > 0) this.#bed.announce(name, this.#bed.tip + more);
    }
  }

  #come({ phases, turns, isShifted, stays, announces }: Character): void {
    const [bed, { random }] = [this.#bed, this.#plan];
    const name = `liar${this.#names++}`;
    this.#until.set(name, Date.now() + stays);
    this.#announces.set(name, announces);
    const total = phases.reduce((sum, { length }) => sum + length, 0);
    const [shift, since] = [isShifted ? random(200) : 0, Date.now()];
    let asked = 0;
    const phase = (): Phase => {
      if (turns === 'behind') return phases[bed.tip - bed.height > 2 ? phases.length - 1 : 0] as Phase;
      let left = (shift + (turns === 'questions' ? asked++ : (Date.now() - since) / 1_000)) % total;
      for (const one of phases) {
        if (left < one.length) return one;
        left -= one.length;
      }
      return phases[0] as Phase;
    };
    bed.join(name, oneOf(random, [0, bed.tip, MUCH]), async (question) => {
      const { deed, millis } = phase().deeds[question.type === 'blockPart' ? 'blocks' : question.type];
      await pause(millis + 1);
      return deed(bed, question);
    });
  }
}

/** As a full node keeps certificates: of the newest cuts, of each step of the running epoch, of the ends of others. */
const isKept = (height: number, tip: number): boolean =>
  height > tip - 100 || ((height + 1) % 96 === 0 && Math.floor(height / INTERVAL) === Math.floor(tip / INTERVAL));

function honestOf(bed: LiarsBed, { honest, random }: Pick<Plan, 'honest' | 'random'>): Answer {
  return async (question) => {
    await pause(honest === 'slow' ? 3_000 : 50 + random(150));
    if (honest === 'busy' && random(100) < 30) return 'busy';
    const bodiesFrom = honest === 'pruned' ? Math.max(0, bed.tip - 300) : 0;
    return bed.truth(question, { isCertified: (height) => isKept(height, bed.tip), bodiesFrom });
  };
}

async function run(plan: Plan) {
  const { random, honest } = plan;
  const tip = oneOf(random, [100, 700]);
  const bed = new LiarsBed(tip + MILLIS / CUT_MILLIS + 10, tip, INTERVAL);
  bed.height = honest === 'pruned' ? Math.max(0, tip - 150) : oneOf(random, [0, tip - 5, tip]);
  const liars = new Liars(bed, plan);
  const isHeard = random(2) === 0;
  const timers = [
    setInterval(() => {
      bed.tip++;
      // Of announcements that come second only those of the next cuts are read.
      if (isHeard || bed.tip <= bed.height + 3) bed.announce('honest', bed.tip);
    }, CUT_MILLIS),
    setInterval(() => liars.move(), 1_000),
  ];
  liars.move();
  bed.join('honest', bed.tip, honestOf(bed, plan));
  bed.sync.start();
  let [worst, behind, longest] = [0, 0, 0];
  const began = Date.now();
  await passing(
    () => {
      if (Date.now() - began < START_MILLIS) return false;
      worst = Math.max(worst, bed.tip - bed.height);
      behind = bed.tip - bed.height > CUTS ? behind + 1_000 : 0;
      longest = Math.max(longest, behind);
      return false;
    },
    MILLIS,
    1_000,
  );
  for (const timer of timers) clearInterval(timer);
  void bed.sync.close();
  await passing(() => false, 40_000, 10_000);
  return { worst, longest, blamed: bed.blamed.filter((line) => line.startsWith('honest')) };
}

test.each(['quick', 'slow', 'busy'] as const)(
  'an honest peer that is %s among 25 that bring one cut after 12 seconds, and are busy otherwise, is enough',
  async (honest) => {
    const { worst } = await run({ random: randomOf(seed), honest, count: 25, characters: [ONE_CUT_LATE] });
    expect(worst).toBeLessThanOrEqual(CUTS);
  },
);

test.each([0, 40])(
  'an honest peer whose claim is old is asked, beside %s that claim nothing and one that leaves when it is asked',
  async (count) => {
    const bed = new LiarsBed(120, 100, INTERVAL);
    bed.height = 50;
    const comes = () =>
      bed.join('liar', bed.tip, async () => {
        await pause(100);
        bed.leave('liar');
        return 'busy';
      });
    for (let i = 0; i < count; i++) bed.join(`other${i}`, 0, async (question) => takesBack(bed, question));
    bed.join('honest', bed.height, honestOf(bed, { honest: 'slow', random: randomOf(seed) }));
    const timer = setInterval(comes, 1_000);
    bed.sync.start();
    expect(await passing(() => bed.height === bed.tip, 60_000)).toBeLessThan(50_000);
    clearInterval(timer);
    void bed.sync.close();
    await passing(() => false, 40_000, 10_000);
  },
);

test('where one claims what there is not, others that have no more are not all asked to show the newest cut', async () => {
  const bed = new LiarsBed(12, 10, INTERVAL);
  bed.height = bed.tip;
  let shown = 0;
  for (let i = 0; i < 20; i++)
    bed.join(`honest${i}`, bed.tip, async (question) => {
      if (question.type === 'cuts' && question.from <= bed.height) shown++;
      return bed.truth(question);
    });
  bed.join('liar', MUCH, async () => 'busy');
  bed.sync.start();
  await passing(() => false, 30_000);
  expect(shown).toBe(1);
  void bed.sync.close();
  await passing(() => false, 40_000, 10_000);
});

test('one honest peer is enough, whatever up to 60 others do', async () => {
  for (let i = 0; i < RUNS; i++) {
    const { worst, longest, blamed } = await run(planOf(randomOf(seed + i)));
    const why = `SVC_TEST_SEED=${seed + i}`;
    expect(blamed, why).toEqual([]);
    expect(worst, why).toBeLessThanOrEqual(WORST_CUTS);
    expect(longest, why).toBeLessThanOrEqual(ROUND_MILLIS);
  }
});

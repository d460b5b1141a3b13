/**
 * One honest peer, now and then busy, among random liars that come and go as they like: a node that syncs goes on within
 * a bounded time, reaches the newest cut, stays near it and blames no honest peer. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { count, seed } from '../level.ts';
import { type Random, randomOf } from '../random.ts';
import { type Answer, CUT_MILLIS, LiarsBed, passing, pause, type Question } from './liars.ts';

const TIP = 700;
const MINUTES = 5;
const LENGTH = TIP + 1_000;
const INTERVAL = 384;
const MUCH = 1_000_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

/** What a liar does over a question. */
const DEEDS: Readonly<Record<string, (bed: LiarsBed, question: Question) => ReturnType<Answer>>> = {
  truth: async (bed, question) => bed.truth(question),
  part: async (bed, question) => bed.truth(question, { most: 1 }),
  only: async (bed, question) => bed.truth(question, { head: Math.min(bed.tip, bed.height + 1) }),
  nothing: async (bed, question) =>
    question.type === 'cuts' ? bed.truth({ ...question, from: bed.tip + 1 }) : bed.truth(question, { head: -1 }),
  unproven: async (bed, question) =>
    question.type === 'headers' ? 'silent' : bed.truth(question, { isCertified: () => false, most: 3 }),
  silent: async () => 'silent',
  busy: async () => 'busy',
  junk: async () => new Uint8Array(3),
};
const DELAYS = [0, 20, 400, 1_400, 1_600, 5_000, 19_000];

type Character = {
  readonly deeds: readonly string[];
  readonly delays: readonly number[];
  readonly good: number;
  readonly stays: number;
};

const oneOf = <T>(random: Random, of: readonly T[]): T => of[random(of.length)] as T;
const someOf = <T>(random: Random, of: readonly T[]): T[] =>
  Array.from({ length: 1 + random(3) }, () => oneOf(random, of));

/** The liars of a run have few characters, so that many do the same at once. */
const characters = (random: Random): Character[] =>
  Array.from({ length: 1 + random(3) }, () => ({
    deeds: someOf(random, Object.keys(DEEDS)),
    delays: someOf(random, DELAYS),
    good: random(4) === 0 ? random(40) : 0,
    stays: oneOf(random, [1_000, 5_000, 30_000, Number.POSITIVE_INFINITY]),
  }));

class Liars {
  #names = 0;
  readonly #until = new Map<string, number>();
  readonly bed: LiarsBed;
  readonly #random: Random;
  readonly #characters: readonly Character[];
  readonly #count: number;

  constructor(bed: LiarsBed, random: Random) {
    this.bed = bed;
    this.#random = random;
    this.#characters = characters(random);
    this.#count = oneOf(random, [1, 3, 10, 49]);
  }

  /** Each second. */
  move(): void {
    const random = this.#random;
    for (const [name, until] of this.#until)
      if (until <= Date.now() || !this.bed.peers.has(name)) {
        this.bed.leave(name);
        this.#until.delete(name);
      }
    while (this.#until.size < this.#count) this.#come(oneOf(random, this.#characters));
    for (const name of this.#until.keys())
      if (random(4) === 0) this.bed.announce(name, oneOf(random, [this.bed.tip + 1, MUCH]));
  }

  #come({ deeds, delays, good, stays }: Character): void {
    const [random, bed, name] = [this.#random, this.bed, `liar${this.#names++}`];
    this.#until.set(name, Date.now() + stays);
    let asked = 0;
    bed.join(name, oneOf(random, [0, bed.tip, MUCH]), async (question) => {
      if (asked++ < good) return await (DEEDS.only as (typeof DEEDS)[string])(bed, question);
      await pause(oneOf(random, delays));
      return await (DEEDS[oneOf(random, deeds)] as (typeof DEEDS)[string])(bed, question);
    });
  }
}

/** As a full node keeps certificates: of the newest cuts, of each step of the running epoch, of the ends of others. */
const isKept = (height: number, tip: number): boolean =>
  height > tip - 100 || ((height + 1) % 96 === 0 && Math.floor(height / INTERVAL) === Math.floor(tip / INTERVAL));

async function run(of: number) {
  const random = randomOf(of);
  const bed = new LiarsBed(LENGTH, TIP, INTERVAL);
  const liars = new Liars(bed, random);
  const keepsAll = random(2) === 0;
  /** In so many of a hundred questions others take its time. */
  const busy = oneOf(random, [0, 10, 30]);
  const rests = random(2) === 0;
  const isHeard = random(2) === 0;
  const began = Date.now();
  const isAway = () => rests && (Date.now() - began) % 120_000 > 100_000;
  const honest: Answer = async (question) => {
    await pause(30 + random(200));
    if (isAway() || random(100) < busy) return 'busy';
    return bed.truth(question, { isCertified: (height) => keepsAll || isKept(height, bed.tip) });
  };
  const timers = [
    setInterval(() => {
      bed.tip++;
      // Of announcements that come second only those of the next cuts are read.
      if (bed.peers.has('honest') && (isHeard || bed.tip <= bed.height + 3)) bed.announce('honest', bed.tip);
    }, CUT_MILLIS),
    setInterval(() => liars.move(), 1_000),
  ];
  const first = random(2) === 0;
  if (first) bed.join('honest', bed.tip, honest);
  liars.move();
  bed.sync.start();
  if (!first) bed.join('honest', bed.tip, honest);
  let stands = 0;
  const passes = async (isOver: () => boolean, most: number) => {
    let [height, since] = [bed.height, Date.now()];
    return await passing(() => {
      if (bed.height > height || bed.height >= bed.tip - 2) [height, since] = [bed.height, Date.now()];
      stands = Math.max(stands, Date.now() - since);
      return isOver();
    }, most);
  };
  const millis = await passes(() => bed.height >= bed.tip - 2, MINUTES * 60_000);
  let behind = 0;
  const look = setInterval(() => {
    if (bed.tip - bed.height > 2 && !isAway()) behind++;
  }, 1_000);
  await passes(() => false, MINUTES * 60_000);
  clearInterval(look);
  for (const timer of timers) clearInterval(timer);
  void bed.sync.close();
  await passing(() => false, 30_000, 1_000);
  return { millis, behind, stands, honest: bed.blamed.filter((line) => line.startsWith('honest')) };
}

const RUNS = count({ quick: 2, full: 6, deep: 20 });

test('one honest peer is enough, whatever others do', async () => {
  for (let i = 0; i < RUNS; i++) {
    const { millis, behind, stands, honest } = await run(seed + i);
    const why = `SVC_TEST_SEED=${seed + i}`;
    expect(honest, why).toEqual([]);
    // The honest one is busy for 20 seconds, and then all others are asked once, some at a time.
    expect(stands, why).toBeLessThan(60_000);
    expect(millis, why).toBeLessThan(180_000);
    expect(behind, why).toBeLessThan(MINUTES * 30);
  }
});

const LATER: Readonly<Record<string, (bed: LiarsBed, question: Question) => ReturnType<Answer>>> = {
  'answer in the last moment': async (bed, question) => {
    await pause(19_000);
    return bed.truth(question);
  },
  'are busy, and say so late': async () => {
    await pause(1_400);
    return 'busy';
  },
};

test.each(Object.entries(LATER))(
  'forty that brought a cut, claim much and then %s hold up a node at the newest cut once',
  async (_, later) => {
    const bed = new LiarsBed(TIP, 100, INTERVAL);
    const names = Array.from({ length: 40 }, (_, i) => `liar${i}`);
    let isLater = false;
    for (const name of names) {
      bed.join(name, 1, async (question) =>
        isLater && question.type === 'cuts' ? await later(bed, question) : bed.truth(question),
      );
      bed.sync.heights.brought(name, true);
    }
    bed.join('honest', bed.tip, async (question) => {
      await pause(100);
      return bed.truth(question);
    });
    const timer = setInterval(() => bed.announce('honest', ++bed.tip), CUT_MILLIS);
    bed.sync.start();
    await passing(() => bed.height === bed.tip, 60_000);
    isLater = true;
    for (const name of names) bed.announce(name, MUCH);
    let behind = 0;
    for (let second = 0; second < 200; second++) {
      await passing(() => false, 1_000);
      if (bed.tip - bed.height > 2) behind++;
    }
    expect(behind).toBeLessThan(30);
    expect(bed.blamed.filter((line) => line.startsWith('honest'))).toEqual([]);
    clearInterval(timer);
    void bed.sync.close();
    await passing(() => false, 30_000, 1_000);
  },
);

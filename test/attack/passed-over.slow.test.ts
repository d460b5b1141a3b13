/**
 * A node that syncs among random peers: pruned up to some height, begun with a snapshot, syncing themselves, busy or
 * silent now and then, lying; and one honest peer that has everything. It never stands for longer than rule 5 of the
 * network says, and blames nobody that is honest. In virtual time.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { count, seed } from '../level.ts';
import { type Random, randomOf } from '../random.ts';
import { type Answer, CUT_MILLIS, LiarsBed, passing, pause, type Question } from './liars.ts';

const INTERVAL = 384;
const MUCH = 1_000_000_000;
const RUNS = count({ full: 16, deep: 400 });
const MILLIS = 240_000;
const TOLERATED_CUTS = 2;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

const oneOf = <T>(random: Random, of: readonly T[]): T => of[random(of.length)] as T;

/** As a full node keeps certificates: of the newest cuts, of each step of the running epoch, of the ends of others. */
const isKept = (height: number, tip: number): boolean =>
  height > tip - 100 || ((height + 1) % 96 === 0 && Math.floor(height / INTERVAL) === Math.floor(tip / INTERVAL));

/** What a peer has: the cuts from `first` on with their headers, up to `behind` before the newest. */
function partOf(bed: LiarsBed, question: Question, first: number, behind: number): Uint8Array {
  const head = Math.max(0, bed.tip - behind);
  const has = { head, bodiesFrom: first, isCertified: (height: number) => isKept(height, bed.tip) };
  if (question.type === 'cuts') return bed.truth(question, has);
  if (question.type === 'headers') {
    const lowest = Math.max(first, question.to - question.count + 1);
    return lowest > question.to
      ? bed.truth(question, { head: -1 })
      : bed.truth({ ...question, count: question.to - lowest + 1 }, has);
  }
  const here = (id: Uint8Array) => {
    const height = bed.heightOf(id);
    return height >= first && height <= head ? id : id.slice().fill(0);
  };
  if (question.type === 'blockPart') return bed.truth({ ...question, id: here(question.id) });
  return bed.truth({ ...question, ids: question.ids.map(here) });
}

const LIES: readonly ((bed: LiarsBed, question: Question) => Uint8Array | 'silent' | 'busy')[] = [
  (bed, question) => bed.truth(question, { isCertified: () => false, most: 3 }),
  (bed, question) => (question.type === 'headers' ? bed.truth({ ...question, count: 1 }) : bed.truth(question)),
  (bed, question) => (question.type === 'headers' ? 'busy' : bed.truth(question, { isCertified: () => false })),
  (bed, question) => (question.type === 'blocks' ? 'silent' : bed.truth(question)),
  (bed, question) => (question.type === 'blocks' ? 'busy' : bed.truth(question, { most: 1 })),
  (bed, question) => bed.truth(question, { head: bed.height }),
  () => new Uint8Array(3),
];

/** It has a part, and is busy or silent now and then. */
function partial(bed: LiarsBed, random: Random): { readonly claim: number; readonly answer: Answer } {
  const first = oneOf(random, [0, random(bed.tip), bed.height + random(200)]);
  const behind = oneOf(random, [0, 0, random(400)]);
  const [busy, silent] = [oneOf(random, [0, 30, 90]), oneOf(random, [0, 0, 30, 100])];
  const millis = oneOf(random, [50, 300, 1_400, 3_000, 12_000]);
  const answer: Answer = async (question) => {
    await pause(millis + random(50));
    if (random(100) < silent) return 'silent';
    return random(100) < busy ? 'busy' : partOf(bed, question, first, behind);
  };
  return { claim: oneOf(random, [0, Math.max(0, bed.tip - behind)]), answer };
}

function liar(bed: LiarsBed, random: Random): { readonly claim: number; readonly answer: Answer } {
  const [lie, millis] = [oneOf(random, LIES), oneOf(random, [0, 300, 1_400, 6_000, 19_000])];
  const answer: Answer = async (question) => {
    await pause(millis);
    return lie(bed, question);
  };
  return { claim: oneOf(random, [0, bed.tip, MUCH]), answer };
}

async function standing(random: Random) {
  const tip = oneOf(random, [100, 500, 900]);
  const bed = new LiarsBed(tip + MILLIS / CUT_MILLIS + 10, tip, INTERVAL);
  bed.height = oneOf(random, [0, 0, random(tip), tip - 5]);
  const others = oneOf(random, [1, 3, 8, 20, 40]);
  for (let i = 0; i < others; i++) {
    const isLiar = random(2) === 0;
    const { claim, answer } = isLiar ? liar(bed, random) : partial(bed, random);
    bed.join(`${isLiar ? 'liar' : 'partial'}${i}`, claim, answer);
  }
  const millis = oneOf(random, [50, 1_000, 3_000]);
  const isBusy = random(2) === 0;
  // Busy at every second question, of each kind.
  const asked = { cuts: 0, headers: 0, blocks: 0, blockPart: 0 };
  bed.join('honest', bed.tip, async (question) => {
    await pause(millis);
    return isBusy && asked[question.type]++ % 2 === 0 ? 'busy' : partOf(bed, question, 0, 0);
  });
  const timer = setInterval(() => {
    bed.tip++;
    if (bed.tip <= bed.height + 3) bed.announce('honest', bed.tip);
  }, CUT_MILLIS);
  bed.sync.start();
  let [longest, since, height] = [0, Date.now(), bed.height];
  await passing(
    () => {
      if (bed.height > height || bed.tip - bed.height <= TOLERATED_CUTS) [since, height] = [Date.now(), bed.height];
      longest = Math.max(longest, Date.now() - since);
      return false;
    },
    MILLIS,
    250,
  );
  clearInterval(timer);
  void bed.sync.close();
  await passing(() => false, 40_000, 10_000);
  // Cuts, headers that prove them, the cuts again, and their blocks, each after a turn, or two where the honest one is busy.
  const turn = (0.75 * (others + 1) + 1.5) * 1_000 + millis;
  const bound = 3 * CUT_MILLIS + 4 * (isBusy ? 2 : 1) * turn;
  return {
    longest,
    bound,
    behind: bed.tip - bed.height,
    blamed: bed.blamed.filter((line) => !line.startsWith('liar')),
  };
}

test('a node with one full honest peer stands for no longer than the bound, whatever parts the others have', async () => {
  for (let i = 0; i < RUNS; i++) {
    const { longest, bound, blamed } = await standing(randomOf(seed + i));
    const why = `SVC_TEST_SEED=${seed + i}`;
    expect(longest, why).toBeLessThanOrEqual(bound);
    expect(
      blamed.filter((line) => !line.includes(' unanswered ')),
      why,
    ).toEqual([]);
  }
});

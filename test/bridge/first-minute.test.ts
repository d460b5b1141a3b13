/**
 * The first minute of a rig, simulated from the real parts: the server's share work and submit allowance, the miner's own pace,
 * and a chain whose block work follows what it registers. Counted is the work credited per hash from the tenth second on.
 */
import { describe, expect, test } from 'vitest';
import { LIMIT_DEFAULTS } from '../../bridge/options.ts';
import { newVardiff, onShare, retarget, VARDIFF_DEFAULTS } from '../../bridge/session/vardiff.ts';
import { Pace } from '../../miner/work/pace.ts';
import { blockWork, initialRate, nextRate } from '../../node/ledger/retarget.ts';
import { MAX_CUT_BLOCKS } from '../../protocol/ledger/cut.ts';
import { BLOCKS_PER_CUT } from '../../protocol/network.ts';
import { fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import { seed } from '../level.ts';
import { poisson } from '../node/retarget-simulation.ts';
import { randomOf } from '../random.ts';

const STEP = 10;
/** Of `npm start`. */
const CUT_MILLIS = 500;
/** From a block to the next job at work: a body is good for one block, and a card has two dispatches of 45 ms under way. */
const TURN_MILLIS = 100;

type Start = { readonly rate: number; readonly named: boolean; readonly initialWork: bigint };

/** Work credited per hash between `from` and `to`, in seconds. */
function creditedPart({ rate, named, initialWork }: Start, from: number, to: number, random: () => number): number {
  const { submits } = LIMIT_DEFAULTS;
  let vardiff = newVardiff(VARDIFF_DEFAULTS, 0, { minWork: null, rate: named ? BigInt(rate) : null });
  let bucket = fullBucket(submits, 0);
  const pace = new Pace();
  let chain = initialRate(initialWork);
  let found = 0;
  let foundBefore = 0;
  let freshAt = 0;
  let credited = 0;
  const shareWork = (): bigint => (vardiff.work < blockWork(chain) ? vardiff.work : blockWork(chain));
  let handed = shareWork();
  for (let now = STEP; now <= to * 1000; now += STEP) {
    const hits = poisson((rate * STEP) / 1000 / Number(handed), random);
    const work = shareWork();
    const handedNow = handed;
    for (let hit = 0; hit < hits; hit++) {
      if (pace.hit(handedNow)) handed = pace.workFor(shareWork());
      const left = take(bucket, submits, now);
      if (left === undefined) {
        pace.refused();
        continue;
      }
      bucket = left;
      if (now > from * 1000) credited += Number(work);
      if (now >= freshAt && random() * Number(blockWork(chain)) < Number(handedNow)) {
        found++;
        freshAt = now + TURN_MILLIS;
      }
      vardiff = retarget(onShare(vardiff, work, now, VARDIFF_DEFAULTS), now, VARDIFF_DEFAULTS);
    }
    if (now % 1000 === 0) {
      pace.look(rate, 0);
      vardiff = retarget(vardiff, now, VARDIFF_DEFAULTS);
    }
    if (now % CUT_MILLIS === 0) {
      const blocks = Math.min(found, MAX_CUT_BLOCKS);
      const registered = blockWork(chain) * BigInt(blocks);
      chain = nextRate(chain, registered, { work: registered, blocks, blocksBefore: foundBefore }, 64n);
      foundBefore = blocks;
      found = 0;
    }
    handed = pace.workFor(shareWork());
  }
  return credited / (rate * (to - from));
}

const mean = (runs: number, of: (random: () => number) => number): number => {
  const draw = randomOf(seed);
  const random = () => (draw(0x4000_0000) + 0.5) / 0x4000_0000;
  let sum = 0;
  for (let run = 0; run < runs; run++) sum += of(random);
  return sum / runs;
};

const RATES = [1e3, 1e6, 1e9];

describe.each([true, false])('a miner that names its rate: %s', (named) => {
  test.each(RATES)('at %d H/s on a chain of its size', (rate) => {
    const initialWork = BigInt((rate * CUT_MILLIS) / 1000) / BLOCKS_PER_CUT;
    const part = mean(4, (random) => creditedPart({ rate, named, initialWork }, 10, 300, random));
    expect(part).toBeGreaterThan(0.95);
    expect(part).toBeLessThan(1.05);
  });
});

/** On a chain whose blocks are much harder than shares. */
test.each(RATES)('who names %d H/s has a first share after about ten seconds, and no flood of them', (rate) => {
  const { secondsPerShare } = VARDIFF_DEFAULTS;
  const { work } = newVardiff(VARDIFF_DEFAULTS, 0, { minWork: null, rate: BigInt(rate) });
  expect(Number(work) / rate).toBeCloseTo(secondsPerShare, 5);
});

test('a rate that is not true harms only who named it, and not for long', () => {
  for (const [named, rate] of [
    [1e12, 1e6],
    [1, 1e9],
  ] as const) {
    let vardiff = newVardiff(VARDIFF_DEFAULTS, 0, { minWork: null, rate: BigInt(named) });
    const draw = randomOf(seed);
    const random = () => (draw(0x4000_0000) + 0.5) / 0x4000_0000;
    let sent = 0;
    for (let now = STEP; now <= 900_000; now += STEP) {
      const { work } = vardiff;
      const shares = Math.min(poisson((rate * STEP) / 1000 / Number(work), random), 100);
      sent += shares;
      for (let i = 0; i < shares; i++)
        vardiff = retarget(onShare(vardiff, work, now, VARDIFF_DEFAULTS), now, VARDIFF_DEFAULTS);
      if (now % 1000 === 0) vardiff = retarget(vardiff, now, VARDIFF_DEFAULTS);
    }
    expect(Number(vardiff.work) / rate).toBeGreaterThan(2.5);
    expect(Number(vardiff.work) / rate).toBeLessThan(40);
    expect(sent).toBeLessThan(1_000);
  }
});

/**
 * Credit for ever: whatever a miner sends, the work it is credited with is not more than the hashes it did, but for luck. The
 * luck of a strategy has a known size: a hash at share work W earns W with a chance of 1/W, so the credit of all its hashes has
 * the variance of the sum of their works, and five times its root is the bound.
 */
import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { AcceptedShare } from '../../bridge/shares/sink.ts';
import { toHex } from '../../protocol/bytes.ts';
import { BRIDGE, RecordingSink } from '../bridge/bed.ts';
import { accountOf } from '../bridge/stratum-client.ts';
import { count } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { anyGenerationOfAFarm, judgeByJobId, sameHeaderForAnotherWork } from './credit/mutations.ts';
import { credit, type Ledger, play, type Result, sigmasOf, tell } from './credit/play.ts';

/** What the servers accepted; of each account it is looked at with `look`. */
async function accepted(look: (shares: readonly AcceptedShare[]) => void = expectEachOnce): Promise<Ledger> {
  const sinks: RecordingSink[] = [];
  const open = async () => {
    const sink = new RecordingSink();
    sinks.push(sink);
    return sink;
  };
  return {
    sinks: { service: BRIDGE, open },
    credited: async (number) => {
      const name = toHex(accountOf(number));
      const shares = sinks.flatMap((sink) => sink.accepted).filter(({ account }) => toHex(account) === name);
      look(shares);
      return shares.reduce((sum, { work }) => sum + Number(work), 0);
    },
  };
}

/**
 * The rule behind the luck: a hash counts once, and what it counts for was fixed with its header before it was done. This has
 * no luck in it, and says which share is wrong.
 */
function expectEachOnce(shares: readonly AcceptedShare[]): void {
  const counted = new Set<string>();
  const works = new Map<string, bigint>();
  for (const { headerDigest, nonce, work } of shares) {
    const header = toHex(headerDigest);
    const share = `${header} ${toHex(nonce)}`;
    expect(counted, `counted twice: ${share}, ${work}`).not.toContain(share);
    counted.add(share);
    expect(work, `another work on one header: ${share}`).toBe(works.get(header) ?? work);
    works.set(header, work);
  }
}

const noLook = (): void => {};

/** In parts, each of which can be run alone: all of them together take a quarter of an hour of one core. */
const PART = count({ full: 4, deep: 200 });
const PARTS = Array.from({ length: count({ full: 1, deep: 5 }) }, (_, i) => i * PART + 1);
const all: Result[] = [];
afterAll(() => {
  if (all.length > 0) tell('credit, all that were run', all);
});

test.each(PARTS)(
  'over random strategies, from number %i on, nobody is credited with more work than hashes done',
  lasts(120, 'miners with many strategies mine with real hashes'),
  async (first) => {
    const results = await play(() => accepted(), { strategies: PART, first });
    all.push(...results);
    tell(`credit from strategy ${first} on`, results);
    for (const result of results) expect(sigmasOf(result)).toBeLessThan(5);
    expect(credit(results)).toBeGreaterThan(0.2);
  },
);

test(
  'nor where anchors are drawn, and the same ones come again',
  lasts(120, 'miners with many strategies mine with real hashes'),
  async () => {
    const results = await play(() => accepted(), {
      strategies: count({ full: 2, deep: 50 }),
      first: 5_001,
      anchors: 'best',
    });
    tell('credit on drawn anchors', results);
    for (const result of results) expect(sigmasOf(result)).toBeLessThan(5);
    expect(credit(results)).toBeGreaterThan(0.2);
  },
);

test(
  'nor where every connection is a farm',
  lasts(120, 'miners with many strategies mine with real hashes'),
  async () => {
    const results = await play(() => accepted(), {
      strategies: count({ full: 2, deep: 50 }),
      first: 6_001,
      farms: true,
    });
    tell('credit of farms', results);
    for (const result of results) expect(sigmasOf(result)).toBeLessThan(5);
    expect(credit(results)).toBeGreaterThan(0.2);
  },
);

test.each([
  ['duplicates by job id', judgeByJobId, {}],
  ['two share targets for one header', sameHeaderForAnotherWork, { instances: 1, collects: true, farms: false }],
  ['generations of a farm with two share targets', anyGenerationOfAFarm, { instances: 1, collects: true, farms: true }],
])('the hole is found when it is put back: %s', async (name, mutate, settings) => {
  onTestFinished(mutate());
  // A few strategies find it nearly always; on a machine that is busy with other things some come too late with everything.
  let most = 0;
  for (let tries = 0; tries < 6 && most < 5; tries++) {
    const results = await play(() => accepted(noLook), { strategies: 2, first: 1 + 2 * tries, ...settings });
    tell(name, results);
    most = Math.max(...results.map(sigmasOf));
  }
  expect(most).toBeGreaterThan(5);
});

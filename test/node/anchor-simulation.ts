/**
 * Miners with the template policies `newest` and `best` on one chain: who earns how much for a hash (docs/anchors.md). The real draw, retarget rule, limit of a cut and
 * division of work halves; hashing, blocks on their way and what a server sees are played with a seeded generator.
 *
 * Time is counted in cuts. A server draws anew at each cut, for each of its draws of templates, and sees no block that is younger than `delay`. Its
 * miners go on with the job before for as long.
 */
import { blockWork, initialRate, nextRate } from '../../node/ledger/retarget.ts';
import {
  anchorAt,
  anchorChances,
  MOST_WAITING,
  type OpenAnchor,
  SPREAD_BLOCKS,
  worthwhileAnchors,
} from '../../node/mining/anchor-choice.ts';
import { MAX_CUT_BLOCKS } from '../../protocol/ledger/cut.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { randomFrom } from '../random.ts';
import { poisson } from './retarget-simulation.ts';

export type AnchorStage = { readonly cuts: number; readonly rate: number };

export type AnchorWorld = {
  readonly seed: number;
  /** Part of the hash rate that mines by `best`. */
  readonly adoption: number;
  /** Servers that share it, each with `draws` templates. */
  readonly servers: number;
  readonly draws: number;
  /** In cuts. */
  readonly delay: number;
  /** Hash rate per cut, over time. */
  readonly stages: readonly AnchorStage[];
  /** Work of a block that does not follow the rate, as on a chain at its least work or in the middle of a change. */
  readonly fixedWork?: number;
  readonly spread?: number;
};

export type AnchorIncome = {
  /** Reward per hash, as a part of the mean of all. */
  readonly best: number;
  readonly newest: number;
  /** Blocks that were found and never registered, as a part of all. */
  readonly lost: number;
  /** Standard deviation of a block's reward over its mean. */
  readonly spread: number;
  /** Reward per hash of a miner too small to matter with `best`, as a part of the same with `newest`. */
  readonly probe: number;
  readonly cuts: readonly { readonly work: number; readonly blocks: number; readonly rate: number }[];
};

type Block = { readonly anchor: number; readonly isBest: boolean; readonly value: number; readonly at: number };
type Anchor = {
  readonly work: number;
  readonly exact: bigint;
  registered: number;
  best: number;
  /** Hashes of two miners too small to matter, one of each policy. */
  bestProbe: number;
  newestProbe: number;
};

export function simulateAnchors(world: AnchorWorld): AnchorIncome {
  const { adoption, servers, draws, delay, stages, fixedWork, spread = SPREAD_BLOCKS } = world;
  const random = randomFrom(world.seed);
  const uniform = () => (random(0x4000_0000) + 0.5) / 0x4000_0000;
  const slots = adoption > 0 ? servers * draws : 0;
  let rate = initialRate(BigInt(Math.round(fixedWork ?? (stages[0] as AnchorStage).rate / 4)));
  const anchors: Anchor[] = [];
  const history: { work: number; blocks: number; rate: number }[] = [];
  let waiting: Block[] = [];
  let drawn: number[] = Array.from({ length: slots }, () => 0);
  let carry = 0;
  let [bestPay, newestPay, bestHashes, newestHashes, found, registeredAll] = [0, 0, 0, 0, 0, 0];
  let [rewards, rewardSquares, paidBlocks] = [0, 0, 0];
  const probes = { best: 0, newest: 0 };
  let head = -1;

  const begin = (): void => {
    head++;
    const exact = fixedWork === undefined ? blockWork(rate) : BigInt(fixedWork);
    anchors.push({ work: Number(exact), exact, registered: 0, best: 0, bestProbe: 0, newestProbe: 0 });
  };
  /** What the servers see at the newest cut. */
  const draw = (): number[] => {
    const seen = waiting.filter((block) => block.at <= head - delay);
    (anchors[head] as Anchor).newestProbe += 1;
    if (seen.length > MOST_WAITING) {
      (anchors[head] as Anchor).bestProbe += 1;
      return drawn.map(() => head);
    }
    const pending = new Map<number, number>();
    for (const { anchor } of seen) pending.set(anchor, (pending.get(anchor) ?? 0) + 1);
    const all: OpenAnchor[] = [];
    for (let height = Math.max(0, head - REGISTRATION_WINDOW + 1); height <= head; height++) {
      const { registered, work } = anchors[height] as Anchor;
      all.push({ height, blocks: registered + (pending.get(height) ?? 0), work });
    }
    const open = worthwhileAnchors(all);
    const chances = anchorChances(open, spread);
    for (const [i, { height }] of open.entries()) (anchors[height] as Anchor).bestProbe += chances[i] as number;
    return drawn.map(() => anchorAt(open, chances, uniform()).height);
  };
  /** Hashes spread evenly over anchors, from one part of the cut to another. */
  const mine = (heights: readonly number[], hashes: number, isBest: boolean, from: number, until: number): void => {
    if (isBest) bestHashes += hashes;
    else newestHashes += hashes;
    const expected = heights.map((height) => hashes / heights.length / (anchors[height] as Anchor).work);
    const all = expected.reduce((sum, each) => sum + each, 0);
    for (let left = poisson(all, uniform); left > 0; left--) {
      let [place, slot] = [uniform() * all, 0];
      while (slot < heights.length - 1 && place >= (expected[slot] as number)) place -= expected[slot++] as number;
      const anchor = heights[slot] as number;
      found++;
      waiting.push({
        anchor,
        isBest,
        value: uniform() / (anchors[anchor] as Anchor).work,
        at: head + from + uniform() * (until - from),
      });
    }
  };
  const register = (rateNow: number): void => {
    waiting = waiting.filter(({ anchor }) => head + 1 <= anchor + REGISTRATION_WINDOW);
    waiting.sort((a, b) => a.value - b.value);
    const taken = waiting.splice(0, MAX_CUT_BLOCKS);
    let work = 0n;
    const newest = { work: 0n, blocks: 0, blocksBefore: head > 0 ? (anchors[head - 1] as Anchor).registered : 0 };
    for (const { anchor: height, isBest } of taken) {
      const anchor = anchors[height] as Anchor;
      anchor.registered++;
      if (isBest) anchor.best++;
      work += anchor.exact;
      if (height === head - 1) newest.blocksBefore++;
      if (height !== head) continue;
      newest.work += anchor.exact;
      newest.blocks++;
    }
    registeredAll += taken.length;
    rate = nextRate(rate, work, newest, 64n);
    history.push({ work: (anchors[head] as Anchor).work, blocks: taken.length, rate: rateNow });
  };
  const pay = (height: number): void => {
    const { registered, best, work, bestProbe, newestProbe } = anchors[height] as Anchor;
    carry += 1;
    probes.best += (bestProbe * carry) / (registered + 1) / work;
    probes.newest += (newestProbe * carry) / (registered + 1) / work;
    if (registered === 0) return;
    bestPay += (carry * best) / registered;
    newestPay += (carry * (registered - best)) / registered;
    rewards += carry;
    rewardSquares += (carry * carry) / registered;
    paidBlocks += registered;
    carry = 0;
  };

  begin();
  for (const stage of stages)
    for (let i = 0; i < stage.cuts; i++) {
      const before = drawn;
      const last = Math.max(0, head - 1);
      drawn = draw();
      const bestRate = stage.rate * adoption;
      const newestRate = stage.rate - bestRate;
      if (bestRate > 0) {
        mine(before, bestRate * delay, true, 0, delay);
        mine(drawn, bestRate * (1 - delay), true, delay, 1);
      }
      if (newestRate > 0) {
        mine([last], newestRate * delay, false, 0, delay);
        mine([head], newestRate * (1 - delay), false, delay, 1);
      }
      register(stage.rate);
      begin();
      if (head >= REGISTRATION_WINDOW) pay(head - REGISTRATION_WINDOW);
    }
  const mean = (bestPay + newestPay) / (bestHashes + newestHashes);
  const meanReward = rewards / paidBlocks;
  return {
    best: bestHashes === 0 ? 1 : bestPay / bestHashes / mean,
    newest: newestHashes === 0 ? 1 : newestPay / newestHashes / mean,
    lost: (found - registeredAll - waiting.length) / Math.max(1, found),
    spread: Math.sqrt(Math.max(0, rewardSquares / paidBlocks - meanReward ** 2)) / meanReward,
    probe: probes.best / probes.newest,
    cuts: history,
  };
}

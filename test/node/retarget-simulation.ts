/** Miners that hash at a given rate against the real retarget rule, with the 64-block limit of a cut and blocks that wait. */
import { blockWork, initialRate, nextRate } from '../../node/ledger/retarget.ts';
import { MAX_CUT_BLOCKS } from '../../protocol/ledger/cut.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { randomFrom } from '../random.ts';

export type Stage = { readonly cuts: number; readonly rate: number };
export type SimulatedCut = { readonly work: number; readonly blocks: number; readonly rate: number };

/** Number of blocks a cut finds: exact for few, normal for many. */
export function poisson(mean: number, uniform: () => number): number {
  if (mean > 200) {
    const normal = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal));
  }
  const limit = Math.exp(-mean);
  let found = 0;
  for (let product = uniform(); product > limit; product *= uniform()) found++;
  return found;
}

export function simulateRetarget(
  stages: readonly Stage[],
  seed: number,
  start: { initialWork: bigint; minimumWork: bigint } = { initialWork: 250_000n, minimumWork: 64n },
): SimulatedCut[] {
  const random = randomFrom(seed);
  const uniform = () => (random(0x4000_0000) + 0.5) / 0x4000_0000;
  const history: SimulatedCut[] = [];
  let rate = initialRate(start.initialWork);
  /** Blocks that wait, by the work of their target; the hardest stand for the lowest hashes. */
  let waiting: { work: bigint; count: number; height: number }[] = [];
  let height = 0;
  let blocksBefore = 0;
  for (const stage of stages)
    for (let i = 0; i < stage.cuts; i++, height++) {
      const work = blockWork(rate);
      waiting.push({ work, count: poisson(stage.rate / Number(work), uniform), height });
      waiting = waiting.filter((group) => group.count > 0 && height - group.height < REGISTRATION_WINDOW);
      waiting.sort((a, b) => (a.work > b.work ? -1 : a.work < b.work ? 1 : 0));
      let room = MAX_CUT_BLOCKS;
      let registered = 0n;
      const newest = { work: 0n, blocks: 0, blocksBefore };
      blocksBefore = 0;
      for (const group of waiting) {
        const taken = Math.min(room, group.count);
        group.count -= taken;
        room -= taken;
        registered += group.work * BigInt(taken);
        if (group.height === height) {
          newest.blocks = taken;
          newest.work = group.work * BigInt(taken);
          blocksBefore = taken;
        }
        if (group.height === height - 1) newest.blocksBefore += taken;
      }
      history.push({ work: Number(work), blocks: MAX_CUT_BLOCKS - room, rate: stage.rate });
      rate = nextRate(rate, registered, newest, start.minimumWork);
    }
  return history;
}

/** Plays strategies, some at a time on one world, and says what each was credited with. */
import type { AnchorPolicy } from '../../../node/mining/anchor-choice.ts';
import { seed } from '../../level.ts';
import { CountedMiner, type Outcome } from './miner.ts';
import { type Sinks, World } from './world.ts';

/** At once: they share servers, and each waits most of the time. */
const CROWD = 25;
/** Worlds at once: two use up one core. */
const WORLDS = 2;
const HASHES = 10_000;
const RESTART_MILLIS = 4_000;

export type Result = Outcome & { readonly credited: number };

/** How far beyond the hashes done, in parts of what luck explains. */
export const sigmasOf = ({ credited, hashes, variance }: Result): number => (credited - hashes) / Math.sqrt(variance);

/** `first`: number of the first strategy, 1 unless told. */
export type Play = {
  readonly strategies: number;
  readonly first?: number;
  readonly instances?: number;
  readonly collects?: boolean;
  readonly farms?: boolean;
  readonly anchors?: AnchorPolicy;
};

/** Where the servers of one crowd put their shares, and what was credited by then, by the number of an account. */
export type Ledger = { readonly sinks: Sinks; credited(account: number): Promise<number> };

export async function play(
  open: () => Promise<Ledger>,
  { strategies, first = 1, ...settings }: Play,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = first;
  const end = first + strategies;
  const playOn = async (): Promise<void> => {
    while (next < end) {
      const numbers = Array.from({ length: Math.min(CROWD, end - next) }, (_, i) => next + i);
      next += numbers.length;
      results.push(...(await playCrowd(await open(), numbers, settings)));
    }
  };
  await Promise.all(Array.from({ length: WORLDS }, playOn));
  return results;
}

/** One world, from its start to its end. */
async function playCrowd(
  ledger: Ledger,
  numbers: readonly number[],
  { instances = 2, anchors = 'newest', ...traits }: Omit<Play, 'strategies' | 'first'>,
): Promise<Result[]> {
  const world = await World.open(ledger.sinks, instances, anchors);
  const miners = numbers.map((number) => new CountedMiner(world, number, seed + number, traits));
  let restarting: Promise<void> = Promise.resolve();
  const restarts = setInterval(() => {
    if (instances > 1) restarting = world.restart(0);
  }, RESTART_MILLIS);
  const outcomes = await Promise.all(miners.map((miner) => miner.play(HASHES)));
  clearInterval(restarts);
  await restarting;
  await world.settle();
  for (const miner of miners) miner.close();
  await world.close();
  const results: Result[] = [];
  for (const [i, outcome] of outcomes.entries())
    results.push({ ...outcome, credited: await ledger.credited(numbers[i] as number) });
  return results;
}

export function tell(name: string, results: readonly Result[]): void {
  const ratios = results.map(({ credited, hashes }) => credited / hashes);
  const submits = results.reduce((sum, each) => sum + each.submits, 0);
  console.log(
    `${name}: ${results.length} strategies, ${submits} submits; credited work per hash at most ` +
      `${Math.max(...ratios).toFixed(3)}, ${Math.max(...results.map(sigmasOf)).toFixed(2)} sigma; on average ` +
      `${(ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length).toFixed(3)}`,
  );
}

/** Of all hashes together, the part that was credited: a test in which nothing is accepted is none. */
export const credit = (results: readonly Result[]): number =>
  results.reduce((sum, { credited }) => sum + credited, 0) / results.reduce((sum, { hashes }) => sum + hashes, 0);

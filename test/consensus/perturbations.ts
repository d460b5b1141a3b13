/**
 * What happens to four validators in processes of their own and two nodes that follow: one killed again and again at random instants, one that joins late while blocks are found, networks that part and heal, processes that hang, all killed
 * at once. Then all have the same cuts and states, and nobody ever voted twice. Plain code, so that a test and `npm run bench -- kills` do the same.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsensusReport } from '../../node/reports/consensus-report.ts';
import { type Random, randomOf } from '../random.ts';
import { VALIDATORS, type ValidatorProcesses } from './processes.ts';

export type Perturbations = {
  readonly cutMillis: number;
  readonly kills: number;
  readonly blocks: number;
  readonly partitions: number;
  readonly killsOfAll: number;
  readonly seed: number;
};

export type Perturbed = {
  /** Cuts that all of them have. */
  readonly cuts: number;
  /** Different votes that passed between validators, and how many of them are of the one that was killed. */
  readonly votes: number;
  readonly ofVictim: number;
};

const KILLS_BEFORE_JOINING = 40;

type Process = ValidatorProcesses['validators'][number];

const highestOf = async (processes: readonly Process[]): Promise<number> =>
  Math.max(...(await Promise.all(processes.map((process) => process.height()))));

export async function perturb(
  processes: ValidatorProcesses,
  { cutMillis, kills, blocks, partitions, killsOfAll, seed }: Perturbations,
  say: (line: string) => void = () => undefined,
): Promise<Perturbed> {
  const random = randomOf(seed);
  const victim = processes.validators[random(VALIDATORS)] as Process;
  const { consensus } = JSON.parse(await processes.ask(victim, 'consensus', 'dump')) as ConsensusReport;
  // Neighbours serve a bounded number of cuts: one that joins after hundreds of kills would find none who has the first.
  const early = Math.min(kills, KILLS_BEFORE_JOINING);
  await killAgainAndAgain(processes, victim, consensus.member, { cutMillis, kills: early }, random, say);
  await joinLate(processes, blocks);
  await killAgainAndAgain(processes, victim, consensus.member, { cutMillis, kills: kills - early }, random, say);
  for (let time = 0; time < partitions; time++) {
    await partAndHeal(processes, cutMillis, time % 2 === 0, random);
    say(`partition ${time + 1}`);
  }
  for (let kill = 0; kill < killsOfAll; kill++) {
    const before = await processes.highest();
    await processes.end('SIGKILL');
    for (const process of processes.all) process.start();
    await processes.reached(before + 2);
    say(`all killed ${kill + 1}`);
  }
  await processes.end('SIGTERM');
  return judge(processes, consensus.member, blocks);
}

async function killAgainAndAgain(
  processes: ValidatorProcesses,
  victim: Process,
  member: number,
  { cutMillis, kills }: Pick<Perturbations, 'cutMillis' | 'kills'>,
  random: Random,
  say: (line: string) => void,
): Promise<void> {
  for (let kill = 0; kill < kills; kill++) {
    const others = processes.all.filter((process) => process !== victim);
    await sleep(random(2 * cutMillis));
    await victim.end('SIGKILL');
    // Less than a third of the stake is away: the chain goes on.
    const before = await processes.highest();
    await processes.reached(before + 1, others);
    victim.start();
    // Mostly once it votes again, sometimes while it still starts, catches up or listens.
    if (kill % 4 === 3) await sleep(random(8 * cutMillis));
    else {
      const height = await processes.highest();
      await processes.reached(height, [victim]);
      while (processes.votedAt(member) <= height) await sleep(20);
    }
    if (kill % 10 === 9) say(`kill ${kill + 1}: height ${await processes.highest()}`);
  }
  await processes.reached(await processes.highest(), [victim]);
}

/** One that comes late, and knows the other follower alone, has everything from genesis on while blocks go on being found. */
async function joinLate(processes: ValidatorProcesses, blocks: number): Promise<void> {
  await processes.mine();
  processes.late.start();
  for (let block = 0; block < blocks; block++) {
    await processes.mine();
    await processes.reached((await processes.highest()) + 1, processes.validators);
  }
  await processes.reached(await processes.highest(), [processes.late]);
}

async function partAndHeal(
  processes: ValidatorProcesses,
  cutMillis: number,
  isCutOff: boolean,
  random: Random,
): Promise<void> {
  // Two and two: neither half has a quorum.
  const away = random(VALIDATORS);
  processes.part([away, (away + 1) % VALIDATORS]);
  await sleep(4 * cutMillis);
  // What was on its way has arrived: from here on nothing is final.
  const before = await processes.highest();
  await sleep(4 * cutMillis);
  assert.ok((await processes.highest()) <= before + 1, 'halves without a quorum made cuts');
  processes.heal();
  await processes.reached(before + 2);
  // One alone, cut off or hung: the others go on, and it comes after.
  const lonely = processes.validators[random(VALIDATORS)] as Process;
  if (isCutOff) processes.part([processes.validators.indexOf(lonely)]);
  else lonely.signal('SIGSTOP');
  const rest = processes.validators.filter((process) => process !== lonely);
  await processes.reached((await highestOf(rest)) + 2, rest);
  processes.heal();
  lonely.signal('SIGCONT');
  await processes.reached(await highestOf(rest), [lonely]);
}

/** From the stores of the ended processes, and from all votes that ever passed. */
async function judge(processes: ValidatorProcesses, member: number, found: number): Promise<Perturbed> {
  const { chains, blocks } = await processes.chains();
  // Two followers and four validators; what was found at one of them all have.
  assert.equal(chains.length, VALIDATORS + 2);
  assert.ok(Math.min(...blocks) >= found + 1, `blocks: ${blocks}`);
  const lowest = Math.min(...chains.map((chain) => chain.length));
  assert.ok(lowest > 4);
  for (const chain of chains) assert.deepEqual(chain.slice(0, lowest), (chains[0] as string[]).slice(0, lowest));
  assert.deepEqual(processes.contrary(), []);
  // The proxies heard both votes of every validator for most heights.
  assert.ok(processes.votes.size > lowest * VALIDATORS, `${processes.votes.size} votes, ${lowest} cuts`);
  const ofVictim = [...processes.votes.keys()].filter((key) => key.startsWith(`${member}/`)).length;
  return { cuts: lowest, votes: processes.votes.size, ofVictim };
}

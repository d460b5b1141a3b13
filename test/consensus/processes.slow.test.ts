/**
 * Four validators in processes of their own and a node that follows, over real sockets: the same cuts everywhere, through kill -9 of one again and again and of all at once; and
 * nobody ever votes twice. Nothing here is measured by the clock: what is waited for comes, sooner or later.
 */
import { afterEach, expect, test } from 'vitest';
import type { ConsensusReport } from '../../node/consensus-report.ts';
import { count, repeats, seed } from '../level.ts';
import { randomOf } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { VALIDATORS, ValidatorProcesses } from './processes.ts';

const CUT_MILLIS = 400;
/** For a machine that is busy with other tests. */
const LIMIT_MILLIS = count({ full: 240_000, deep: 1_800_000 });
let running: ValidatorProcesses | undefined;
afterEach(async () => {
  await running?.close();
});

test(
  'four validators and a follower have one chain; validators killed at random moments never vote twice; all killed at once go on',
  async () => {
    const random = randomOf(seed);
    const processes = new ValidatorProcesses(temporaryDirectory());
    running = processes;
    await processes.prepare(CUT_MILLIS);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    const [first] = processes.validators;
    expect(await processes.ask(first as NonNullable<typeof first>, 'validator', 'status')).toMatch(
      /^in the committee +yes.*^signs +yes/ms,
    );
    expect(await processes.ask(processes.plain, 'validator', 'status')).toContain('it follows');
    const dump = JSON.parse(
      await processes.ask(first as NonNullable<typeof first>, 'consensus', 'dump'),
    ) as ConsensusReport;
    expect(dump.consensus.height).toBeGreaterThan(2);
    expect(dump.consensus.members.length).toBe(VALIDATORS);

    for (let kill = 0; kill < repeats({ full: 2, deep: 60 }); kill++) {
      const victim = processes.validators[random(VALIDATORS)] as (typeof processes.validators)[number];
      const others = processes.all.filter((process) => process !== victim);
      await new Promise((resolve) => setTimeout(resolve, random(2 * CUT_MILLIS)));
      await victim.end('SIGKILL');
      // Less than a third of the stake is away: the chain goes on.
      const before = await processes.highest();
      await processes.reached(before + 1, others);
      victim.start();
      await processes.reached(await processes.highest(), [victim]);
    }

    for (let kill = 0; kill < count({ full: 1, deep: 10 }); kill++) {
      const before = await processes.highest();
      await processes.end('SIGKILL');
      for (const process of processes.all) process.start();
      await processes.reached(before + 2);
    }

    await processes.end('SIGTERM');
    const chains = await processes.chains();
    const lowest = Math.min(...chains.map((chain) => chain.length));
    expect(lowest).toBeGreaterThan(4);
    for (const chain of chains) expect(chain.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
    expect(processes.contrary()).toEqual([]);
    // The watcher heard both votes of every validator for most heights.
    expect(processes.votes.size).toBeGreaterThan(lowest * VALIDATORS);
  },
  LIMIT_MILLIS,
);

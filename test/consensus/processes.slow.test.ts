/**
 * Four validators in processes of their own and two nodes that follow, over real sockets: the same cuts and states everywhere, through kill -9 of one again and again and of all at once, through networks that part
 * and heal and processes that hang; and nobody ever votes twice. Nothing here is measured by the clock: what is waited for comes, sooner or later.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { ConsensusReport } from '../../node/consensus-report.ts';
import { count, repeats, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { VALIDATORS, ValidatorProcesses } from './processes.ts';

const CUT_MILLIS = 400;
/** For a machine that is busy with other tests. */
const LIMIT_MILLIS = count({ full: 240_000, deep: 5_400_000 });
const highestOf = async (processes: ValidatorProcesses['validators']): Promise<number> =>
  Math.max(...(await Promise.all(processes.map((process) => process.height()))));

let running: ValidatorProcesses | undefined;
afterEach(async () => {
  await running?.close();
});

test(
  'four validators, a follower and one that comes late have one chain and one state; one killed at random moments again and again never votes twice; parted, hung and all killed at once they go on',
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

    const victim = processes.validators[random(VALIDATORS)] as (typeof processes.validators)[number];
    for (let kill = 0; kill < repeats({ full: 1, deep: 200 }); kill++) {
      const others = processes.all.filter((process) => process !== victim);
      await sleep(random(2 * CUT_MILLIS));
      await victim.end('SIGKILL');
      // Less than a third of the stake is away: the chain goes on.
      const before = await processes.highest();
      await processes.reached(before + 1, others);
      victim.start();
      await processes.reached(await processes.highest(), [victim]);
    }

    // One that comes late, and knows the other follower alone, has everything from genesis on while blocks go on being found.
    await processes.mine();
    processes.late.start();
    for (let block = 0; block < count({ full: 3, deep: 30 }); block++) {
      await processes.mine();
      await processes.reached((await processes.highest()) + 1, processes.validators);
    }
    await processes.reached(await processes.highest(), [processes.late]);

    for (let time = 0; time < count({ full: 1, deep: 10 }); time++) {
      // Two and two: neither half has a quorum.
      const away = random(VALIDATORS);
      processes.part([away, (away + 1) % VALIDATORS]);
      await sleep(4 * CUT_MILLIS);
      // What was on its way has arrived: from here on nothing is final.
      const before = await processes.highest();
      await sleep(4 * CUT_MILLIS);
      expect(await processes.highest()).toBeLessThanOrEqual(before + 1);
      processes.heal();
      await processes.reached(before + 2);
      // One alone, cut off or hung: the others go on, and it comes after.
      const lonely = processes.validators[random(VALIDATORS)] as (typeof processes.validators)[number];
      if (time % 2 === 0) processes.part([processes.validators.indexOf(lonely)]);
      else lonely.signal('SIGSTOP');
      const rest = processes.validators.filter((process) => process !== lonely);
      await processes.reached((await highestOf(rest)) + 2, rest);
      processes.heal();
      lonely.signal('SIGCONT');
      await processes.reached(await highestOf(rest), [lonely]);
    }

    for (let kill = 0; kill < count({ full: 1, deep: 10 }); kill++) {
      const before = await processes.highest();
      await processes.end('SIGKILL');
      for (const process of processes.all) process.start();
      await processes.reached(before + 2);
    }

    await processes.end('SIGTERM');
    const { chains, blocks } = await processes.chains();
    // Two followers and four validators; what was found at one of them all have.
    expect(chains.length).toBe(VALIDATORS + 2);
    expect(Math.min(...blocks)).toBeGreaterThanOrEqual(count({ full: 4, deep: 31 }));
    const lowest = Math.min(...chains.map((chain) => chain.length));
    expect(lowest).toBeGreaterThan(4);
    for (const chain of chains) expect(chain.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
    expect(processes.contrary()).toEqual([]);
    // The proxies heard both votes of every validator for most heights.
    expect(processes.votes.size).toBeGreaterThan(lowest * VALIDATORS);
  },
  LIMIT_MILLIS,
);

test(
  'a key that runs in two processes: the second finds out before it has signed anything, and says why; the first goes on',
  async () => {
    const processes = new ValidatorProcesses(temporaryDirectory());
    running = processes;
    await processes.prepare(CUT_MILLIS);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    const first = processes.validators[VALIDATORS - 1] as (typeof processes.validators)[number];
    processes.twin.start();
    const says = /this validator signs nothing more: its key runs in another process too/;
    await expect.poll(() => processes.twin.output, { timeout: LIMIT_MILLIS }).toMatch(says);
    expect(await processes.ask(processes.twin, 'validator', 'status')).toMatch(/^signs +no/m);
    await processes.reached((await processes.highest()) + 3);
    expect(await processes.ask(first, 'validator', 'status')).toMatch(/^signs +yes/m);
    // Nothing that would cost its bond.
    for (const { output } of processes.all) expect(output).not.toContain('voted twice');
    await processes.end('SIGTERM');
    const { chains } = await processes.chains();
    const lowest = Math.min(...chains.map((chain) => chain.length));
    for (const chain of chains) expect(chain.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
  },
  LIMIT_MILLIS,
);

/**
 * Four validators in processes of their own and two nodes that follow, over real sockets: the same cuts and states everywhere, through kill -9 of one again and again and of all at once, through networks that part
 * and heal and processes that hang; and nobody ever votes twice. Nothing here is measured by the clock: what is waited for comes, sooner or later.
 */
import { afterEach, expect, test } from 'vitest';
import type { ConsensusReport } from '../../node/reports/consensus-report.ts';
import { count, repeats, seed } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { perturb } from './perturbations.ts';
import { VALIDATORS, ValidatorProcesses } from './processes.ts';

const CUT_MILLIS = 400;

let running: ValidatorProcesses | undefined;
afterEach(async () => {
  await running?.close();
});

test(
  'four validators, a follower and one that comes late have one chain and one state; one killed at random moments again and again never votes twice; parted, hung and all killed at once they go on',
  lasts(600, 'validators are killed, parted and hung, again and again'),
  async () => {
    const processes = new ValidatorProcesses(temporaryDirectory());
    running = processes;
    await processes.prepare(CUT_MILLIS);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    const first = processes.validators[0] as (typeof processes.validators)[number];
    await processes.signs(first);
    const status = await processes.ask(first, 'validator', 'status');
    expect(status).toMatch(/^in the committee +yes.*^signs +yes/ms);
    expect(await processes.ask(processes.plain, 'validator', 'status')).toContain('it follows');
    const dump = JSON.parse(await processes.ask(first, 'consensus', 'dump')) as ConsensusReport;
    expect(dump.consensus.height).toBeGreaterThan(2);
    expect(dump.consensus.members.length).toBe(VALIDATORS);

    const { ofVictim } = await perturb(processes, {
      cutMillis: CUT_MILLIS,
      kills: repeats({ full: 1, deep: 200 }),
      blocks: count({ full: 3, deep: 30 }),
      partitions: count({ full: 1, deep: 10 }),
      killsOfAll: count({ full: 1, deep: 10 }),
      seed,
    });
    expect(ofVictim).toBeGreaterThan(repeats({ full: 1, deep: 200 }));
  },
);

test(
  'a key that runs in two processes: the second finds out before it has signed anything, and says why; the first goes on',
  lasts(600, 'validators are killed, parted and hung, again and again'),
  async () => {
    const processes = new ValidatorProcesses(temporaryDirectory());
    running = processes;
    await processes.prepare(CUT_MILLIS);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    const first = processes.validators[VALIDATORS - 1] as (typeof processes.validators)[number];
    processes.twin.start();
    const says = /this validator signs nothing more: its key runs in another process too/;
    await expect.poll(() => processes.twin.output).toMatch(says);
    expect(await processes.ask(processes.twin, 'validator', 'status')).toMatch(/^signs +no/m);
    await processes.reached((await processes.highest()) + 3);
    // It may have listened until now.
    await processes.signs(first);
    // Nothing that would cost its bond.
    for (const { output } of processes.all) expect(output).not.toContain('voted twice');
    await processes.end('SIGTERM');
    const { chains } = await processes.chains();
    const lowest = Math.min(...chains.map((chain) => chain.length));
    for (const chain of chains) expect(chain.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
  },
);

/**
 * What svc-pool needs goes away under load and comes back: PostgreSQL frozen, PostgreSQL killed, Redis killed, the journal's disk
 * full. As long as the journal can be written shares are taken and answered; afterwards the books hold each of them once.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { runToEnd } from '../../stack/process.ts';
import { addressOf, V1Client } from '../bridge/stratum-client.ts';
import { count } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { Fleet, type Instance } from './fleet.ts';
import { booksCaughtUp, expectShares, Rig } from './rig.ts';
import { smallDisk } from './small-disk.ts';

const OUTAGE_MILLIS = count({ full: 6_000, deep: 600_000 });
const NOT_READY = 31;

async function hasher(): Promise<Verifier> {
  const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
  onTestFinished(() => verifier.close());
  await verifier.prepare(0);
  return verifier;
}

/** Every rig gets `shares` more of them accepted. */
async function everyoneMines(rigs: readonly Rig[], shares: number): Promise<void> {
  const before = rigs.map((rig) => rig.accepted);
  const isDone = () => rigs.every((rig, i) => rig.accepted >= (before[i] as number) + shares);
  await expect.poll(isDone).toBe(true);
}

/** Resident memory in MiB. */
const memoryOf = ({ program }: Instance): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1]) / 1024;

test(
  'PostgreSQL frozen, PostgreSQL killed, Redis killed: shares are taken all the while, and each is in the books once',
  lasts(600, 'each service is away for seconds, one after the other'),
  async () => {
    const verifier = await hasher();
    const fleet = await Fleet.start({ blockWork: 3_000, cutMillis: 1_000 });
    const instances = await Promise.all(['a', 'b'].map((name) => fleet.add(name)));
    const rigs: Rig[] = [];
    const addRig = (): Rig => {
      const number = rigs.length;
      const instance = instances[number % 2] as Instance;
      const form = number % 4 < 2 ? 'v1' : 'v2';
      const rig = new Rig({ number, form, service: 'pplns', restMillis: 100 }, instance.ports, verifier);
      rigs.push(rig);
      return rig;
    };
    for (let i = 0; i < 20; i++) addRig();
    await everyoneMines(rigs, 3);
    const asker = await V1Client.open(instances[0]?.ports.pplns as number);
    await asker.login(`${addressOf(999)}.asker`);
    const memory = instances.map(memoryOf);
    const outage = async (stop: () => unknown, start: () => unknown, hasBalances: boolean) => {
      await stop();
      const until = Date.now() + OUTAGE_MILLIS;
      // New miners are accepted, requests for balances are answered, and neither delays shares.
      const newcomers = [addRig(), addRig()];
      await everyoneMines([...rigs, ...newcomers], 3);
      // Without the database no balance is reported, rather than one of nothing.
      const figures = await asker.ask({ method: 'mining.stats' });
      expect(figures).toMatchObject({ kind: 'result', ...(hasBalances ? {} : { result: { pool: null } }) });
      while (Date.now() < until) await everyoneMines(rigs, 1);
      await start();
      await everyoneMines(rigs, 3);
    };
    await outage(fleet.postgres.freeze, fleet.postgres.thaw, false);
    await outage(fleet.postgres.kill, fleet.postgres.start, false);
    await outage(fleet.redis.kill, fleet.redis.start, true);
    for (const [i, instance] of instances.entries())
      expect(memoryOf(instance) - (memory[i] as number)).toBeLessThan(300);
    asker.close();
    await Promise.all(rigs.map((rig) => rig.stop()));
    const sql = fleet.books();
    await booksCaughtUp(sql, rigs);
    for (const { program } of instances) expect(await program.stop()).toBe(0);
    await expectShares(sql, rigs);
    await sql.end({ timeout: 1 });
    expect(await runToEnd('svc-pool', ['audit', '--database', fleet.postgres.url])).toMatch(/every atom/);
  },
);

test(
  'a full disk of the journal: shares are refused rather than lost, and taken again when there is room',
  lasts(600, 'each service is away for seconds, one after the other'),
  async () => {
    const verifier = await hasher();
    const fleet = await Fleet.start({ blockWork: 3_000, cutMillis: 1_000 });
    const disk = smallDisk(join(fleet.directory, 'a', 'journal'));
    const first = await fleet.add('a');
    const rigs = Array.from({ length: 10 }, (_, number) => {
      const form = number % 2 === 0 ? 'v1' : 'v2';
      return new Rig({ number, form, service: 'pplns', restMillis: 50 }, first.ports, verifier);
    });
    await everyoneMines(rigs, 3);
    // From here on the journal is the only place that has the shares.
    fleet.postgres.freeze();
    await fleet.redis.kill();
    await everyoneMines(rigs, 3);
    disk.fill(first.program.pid);
    const refusals = rigs.map((rig) => rig.refused.length);
    const isRefused = () => rigs.every((rig, i) => rig.refused.length >= (refusals[i] as number) + 2);
    await expect.poll(isRefused).toBe(true);
    for (const [i, rig] of rigs.entries())
      expect(rig.refused.slice(refusals[i]).every(({ code }) => code === NOT_READY || code === 21)).toBe(true);
    await first.program.until(/the (journal) cannot be written/);
    const newcomer = await V1Client.open(first.ports.pplns);
    await expect(newcomer.login(`${addressOf(998)}.late`)).rejects.toThrow(/"code":(31|20)/);
    newcomer.close();
    disk.free(first.program.pid);
    await everyoneMines(rigs, 3);
    await Promise.all(rigs.map((rig) => rig.stop()));
    await first.program.stop('SIGKILL');
    fleet.postgres.thaw();
    await fleet.redis.start();
    const second = await fleet.add('a');
    const sql = fleet.books();
    await booksCaughtUp(sql, rigs);
    expect(await second.program.stop()).toBe(0);
    await expectShares(sql, rigs);
    await sql.end({ timeout: 1 });
  },
);

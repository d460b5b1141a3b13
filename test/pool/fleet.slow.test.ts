/**
 * Three svc-pool processes behind real Redis and PostgreSQL, under real miners of both wire forms. What they need goes away and comes back: PostgreSQL frozen, PostgreSQL
 * killed, Redis killed, the journal's disk full. Sessions move from one to another and back, one process is killed, a fourth is added, the killed one comes back.
 * As long as a journal can be written shares are taken and answered. No accepted share is missing or in the books twice, and no header was ever given to two connections.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import { toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { runToEnd } from '../../stack/process.ts';
import { addressOf, V1Client } from '../bridge/stratum-client.ts';
import { count } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { Fleet, type Instance } from './fleet.ts';
import { booksCaughtUp, expectShares, Rig } from './rig.ts';
import { smallDisk } from './small-disk.ts';

/** Twelve: each combination of instance, wire and service. */
const RIGS = count({ full: 12, deep: 102 });
const REST_MILLIS = 150;
const LOAD = count({ full: 40, deep: 20_000 });
const OUTAGE_MILLIS = count({ full: 0, deep: 600_000 });
const MOVERS = 6;
/** What an outage may cost a process: a leak would cost more. */
const MORE_MEBIBYTES = 300;

/** Every header and every extranonce that any connection was given, each one's alone. */
function expectHeadersApart(rigs: readonly Rig[]): void {
  const owners = new Map<string, object>();
  const shared = new Set<string>();
  let jobs = 0;
  for (const life of rigs.flatMap((rig) => rig.lives))
    for (const job of life.client.jobs) {
      jobs++;
      for (const text of [toHex(job.header), toHex(job.extranonce)]) {
        if ((owners.get(text) ?? life) !== life) shared.add(text);
        owners.set(text, life);
      }
    }
  expect([...shared]).toEqual([]);
  expect(jobs).toBeGreaterThan(rigs.length);
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
  'three instances: services away, a full disk, sessions that move, one killed, one added: no share lost or twice, no header given twice',
  lasts(180, 'it ends programs many times, and waits for them to come back'),
  async () => {
    const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
    onTestFinished(() => verifier.close());
    await verifier.prepare(0);
    const fleet = await Fleet.start({ blockWork: 3_000, cutMillis: 1_000 });
    const disk = smallDisk(join(fleet.directory, 'a', 'journal'));
    const instances = await Promise.all(['a', 'b', 'c'].map((name) => fleet.add(name)));
    const [a, b, c] = instances as [Instance, Instance, Instance];
    const rigs: Rig[] = [];
    const addRig = (): Rig => {
      const number = rigs.length;
      const form = Math.floor(number / 3) % 2 === 0 ? 'v1' : 'v2';
      const service = Math.floor(number / 6) % 2 === 0 ? 'pplns' : 'solo';
      const { ports } = instances[number % 3] as Instance;
      const rig = new Rig({ number, form, service, restMillis: REST_MILLIS }, ports, verifier);
      rigs.push(rig);
      return rig;
    };
    for (let i = 0; i < RIGS; i++) addRig();
    const load = async () => {
      const accepted = () => rigs.reduce((sum, rig) => sum + rig.accepted, 0);
      const before = accepted();
      await expect.poll(() => accepted() - before).toBeGreaterThan(LOAD);
      await everyoneMines(rigs, 1);
    };
    await load();

    const asker = await V1Client.open(a.ports.pplns);
    await asker.login(`${addressOf(999)}.asker`);
    const memory = instances.map(memoryOf);
    const outage = async (stop: () => unknown, start: () => unknown, hasBalances: boolean) => {
      await stop();
      const until = Date.now() + OUTAGE_MILLIS;
      // New miners are accepted, requests for balances are answered, and neither delays shares.
      addRig();
      await everyoneMines(rigs, 2);
      // Without the database no balance is reported, rather than one of nothing.
      const figures = await asker.ask({ method: 'mining.stats' });
      expect(figures).toMatchObject({ kind: 'result', ...(hasBalances ? {} : { result: { pool: null } }) });
      while (Date.now() < until) await everyoneMines(rigs, 1);
      await start();
      await everyoneMines(rigs, 2);
    };
    await outage(fleet.postgres.freeze, fleet.postgres.thaw, false);
    await outage(fleet.postgres.kill, fleet.postgres.start, false);
    await outage(fleet.redis.kill, fleet.redis.start, true);
    for (const [i, instance] of instances.entries())
      expect(memoryOf(instance) - (memory[i] as number)).toBeLessThan(MORE_MEBIBYTES);
    asker.close();

    // From b to c and back: the session goes on, its headers never come again.
    const shelved = (session: string) => expect.poll(() => fleet.isShelved(session)).toBe(true);
    const movers = rigs.filter((_, i) => i % 3 === 1).slice(0, MOVERS);
    await Promise.all(movers.map((rig) => rig.move(c.ports, shelved)));
    await Promise.all(movers.map((rig) => rig.move(b.ports, shelved)));

    // The journal is the only place that has the shares, and then its disk is full: they are refused rather than lost, and taken again when there is room.
    const orphans = rigs.filter((_, i) => i % 3 === 0);
    fleet.postgres.freeze();
    await fleet.redis.kill();
    await everyoneMines(orphans, 2);
    disk.fill(a.program.pid);
    const refusals = orphans.map((rig) => rig.refused.length);
    const isRefused = () => orphans.every((rig, i) => rig.refused.length >= (refusals[i] as number) + 2);
    await expect.poll(isRefused).toBe(true);
    for (const [i, rig] of orphans.entries())
      for (const { code } of rig.refused.slice(refusals[i])) expect([CODE.not_ready, CODE.unknown_job]).toContain(code);
    await a.program.until(/the (journal) cannot be written/);
    const newcomer = await V1Client.open(a.ports.pplns);
    await expect(newcomer.login(`${addressOf(998)}.late`)).rejects.toThrow(/"code":(31|20)/);
    newcomer.close();
    disk.free(a.program.pid);
    await everyoneMines(orphans, 2);

    const lost = new Set(orphans.map((rig) => rig.life));
    await a.program.stop('SIGKILL');
    fleet.postgres.thaw();
    await fleet.redis.start();
    // Half of its miners go to another instance at once, the others wait for the new one.
    const half = orphans.length / 2;
    for (const rig of orphans.slice(0, half)) rig.turnTo(c.ports);
    const d = await fleet.add('d');
    for (const rig of orphans.slice(half)) rig.turnTo(d.ports);
    const isBack = (rig: Rig) => !lost.has(rig.life) && (rig.life?.accepted ?? 0) > 0;
    await expect.poll(() => orphans.every(isBack)).toBe(true);
    await load();

    // The same data directory, a new process: what the killed one answered and nobody took comes from there.
    const again = await fleet.add('a');
    for (const rig of orphans.slice(0, half / 2)) await rig.move(again.ports, shelved);
    await load();
    await Promise.all(rigs.map((rig) => rig.stop()));

    expectHeadersApart(rigs);
    const sql = fleet.books();
    await booksCaughtUp(sql, rigs);
    for (const { program } of [b, c, d, again]) expect(await program.stop()).toBe(0);
    await expectShares(sql, rigs);
    const [boots] = await sql<{ n: number }[]>`select count(distinct boot_id)::int as n from shares`;
    expect(boots?.n).toBe(5);
    await sql.end({ timeout: 1 });
    expect(await runToEnd('svc-pool', ['audit', '--database', fleet.postgres.url])).toMatch(/every atom/);
  },
);

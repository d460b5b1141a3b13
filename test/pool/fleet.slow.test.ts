/**
 * Three svc-pool processes behind real Redis and PostgreSQL, under real miners of both wire forms: sessions move from one to
 * another and back, one process is killed, a fourth is added, the killed one comes back. No accepted share is missing or in the books
 * twice, and no header was ever given to two connections.
 */
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import { toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { runToEnd } from '../../stack/process.ts';
import { count } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { Fleet, type Instance } from './fleet.ts';
import { booksCaughtUp, expectShares, Rig } from './rig.ts';

const RIGS = 102;

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

test(
  'three instances, one killed, one added, sessions that move: no share lost or twice, no header given twice',
  lasts(600, 'it ends programs many times, and waits for them to come back'),
  async () => {
    const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
    onTestFinished(() => verifier.close());
    await verifier.prepare(0);
    const fleet = await Fleet.start({ blockWork: 3_000, cutMillis: 1_000 });
    const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((name) => fleet.add(name)))) as [
      Instance,
      Instance,
      Instance,
    ];
    const rigs = Array.from({ length: RIGS }, (_, i) => {
      const instance = [a, b, c][i % 3] as Instance;
      const form = Math.floor(i / 3) % 2 === 0 ? 'v1' : 'v2';
      const service = Math.floor(i / 6) % 2 === 0 ? 'pplns' : 'solo';
      return new Rig({ number: i, form, service, restMillis: 150 }, instance.ports, verifier);
    });
    const accepted = () => rigs.reduce((sum, rig) => sum + rig.accepted, 0);
    const everyoneMines = () => expect.poll(() => rigs.every((rig) => (rig.life?.accepted ?? 0) > 0)).toBe(true);
    const load = async () => {
      const before = accepted();
      const wanted = count({ full: 300, deep: 20_000 });
      await expect.poll(() => accepted() - before).toBeGreaterThan(wanted);
      await everyoneMines();
    };
    await everyoneMines();
    await load();

    // From b to c and back: the session goes on, its headers never come again.
    const shelved = (session: string) => expect.poll(() => fleet.isShelved(session)).toBe(true);
    const movers = rigs.filter((_, i) => i % 3 === 1).slice(0, 6);
    await Promise.all(movers.map((rig) => rig.move(c.ports, shelved)));
    await Promise.all(movers.map((rig) => rig.move(b.ports, shelved)));

    const orphans = rigs.filter((_, i) => i % 3 === 0);
    const lost = new Set(orphans.map((rig) => rig.life));
    await a.program.stop('SIGKILL');
    // Half of its miners go to another instance at once, the others wait for the new one.
    for (const rig of orphans.slice(0, 17)) rig.turnTo(c.ports);
    const d = await fleet.add('d');
    for (const rig of orphans.slice(17)) rig.turnTo(d.ports);
    const isBack = (rig: Rig) => !lost.has(rig.life) && (rig.life?.accepted ?? 0) > 0;
    await expect.poll(() => orphans.every(isBack)).toBe(true);
    await load();

    // The same data directory, a new process: what the killed one answered and nobody took comes from there.
    const again = await fleet.add('a');
    for (const rig of orphans.slice(0, 8)) await rig.move(again.ports, shelved);
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

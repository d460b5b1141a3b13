/**
 * Instances of two releases at one database: a migration of the newer one ends the older one's term, and the older one keeps no
 * books any more and says why. (What they leave for each other in Redis: test/attack/redis-writer.test.ts.)
 */
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { fenced, TermLostError, tryElection } from '../../pool/books/term.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { MIGRATIONS, migrate } from '../../pool/database/migrate.ts';
import { lookAtDatabase } from '../../pool/start/doctor.ts';
import { databaseServer } from '../pool/database-fixture.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const server = databaseServer();

/** The migrations of a release that is one ahead of this one. */
function newerRelease(number: number): URL {
  const directory = join(temporaryDirectory(), 'migrations');
  cpSync(fileURLToPath(MIGRATIONS), directory, { recursive: true });
  const name = `${String(number + 1).padStart(4, '0')}-of-the-next-release.sql`;
  writeFileSync(join(directory, name), 'alter table settings add column of_the_next_release text;');
  return pathToFileURL(`${directory}/`);
}

test('a newer release migrates under a running older one: the older one writes nothing more and is not elected again', async () => {
  const { sql, url } = await server.fresh();
  const election = connectDatabase(url, { max: 1 });
  onTestFinished(() => election.end({ timeout: 1 }));
  const old = (await tryElection(election, 'old release')) ?? expect.fail('nobody else stands for election');
  const write = (value: string) =>
    fenced(sql, old.number, (transaction) => transaction`insert into settings values (${value}, 'by the old release')`);
  await write('before');
  const [row] = await sql<{ number: number }[]>`select max(number) as number from schema_version`;
  await migrate(sql, quietLog, newerRelease(row?.number as number));
  await expect(write('after')).rejects.toBeInstanceOf(TermLostError);
  await old.release();
  await expect(tryElection(election, 'old release')).rejects.toThrow(/run a newer release/);
  expect(await lookAtDatabase(url)).toMatchObject({
    state: 'bad',
    says: expect.stringContaining('run a newer release'),
  });
  // Nor does it start.
  await expect(migrate(sql, quietLog)).rejects.toThrow(/run a newer release/);
  const kept = await sql<{ name: string }[]>`select name from settings where value = 'by the old release'`;
  expect(kept.map(({ name }) => name)).toEqual(['before']);
});

test('a newer release that migrates in the middle of a transaction of the books waits for its end: neither is ended by PostgreSQL', async () => {
  const { sql, url } = await server.fresh();
  const [election, newer] = [connectDatabase(url, { max: 1 }), connectDatabase(url, { max: 1 })];
  onTestFinished(async () => void (await Promise.all([election, newer].map((each) => each.end({ timeout: 1 })))));
  const old = (await tryElection(election, 'old release')) ?? expect.fail('nobody else stands for election');
  const [row] = await sql<{ number: number }[]>`select max(number) as number from schema_version`;
  let migrated: Promise<void> | undefined;
  await fenced(sql, old.number, async (transaction) => {
    migrated = migrate(newer, quietLog, newerRelease(row?.number as number));
    await until(async () => {
      const [waits] = await election<{ n: number }[]>`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return waits?.n === 1;
    });
    await transaction`insert into settings values ('during', 'by the old release')`;
  });
  await migrated;
  const [after] = await sql<{ number: number }[]>`select max(number) as number from schema_version`;
  expect(after?.number).toBe((row?.number as number) + 1);
  await old.release();
});

/** The database cuts connections in the middle of everything: queries fail, the process lives, and the next ones work. */
import { expect, test } from 'vitest';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { copyIn } from '../../pool/database/copy-in.ts';
import { count } from '../level.ts';
import { until } from '../until.ts';
import { databaseServer } from './database-fixture.ts';

const server = databaseServer();

test('transactions and COPY survive a server that ends their connections', async () => {
  const { sql, url } = await server.fresh();
  await sql`create table numbers (n integer)`;
  const admin = connectDatabase(url, { max: 1, name: 'admin' });
  let over = false;
  const cutting = (async () => {
    for (let i = 0; i < count({ full: 40, deep: 1000 }); i++) {
      await admin`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'svc-pool' and datname = current_database() and pid <> pg_backend_pid()`;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    over = true;
  })();
  const outcome = { done: 0, failed: 0 };
  const work = async () => {
    while (!over)
      await sql
        .begin(async (transaction) => {
          await transaction`insert into numbers select ${1} from generate_series(1, 5)`;
          await copyIn(transaction`copy numbers from stdin`, '1\n'.repeat(2000));
          await transaction`select pg_sleep(0.005)`;
        })
        .then(
          () => outcome.done++,
          () => outcome.failed++,
        );
  };
  await Promise.all([work(), work(), work(), cutting]);
  expect(outcome.failed).toBeGreaterThan(0);
  // A connection that was told to end does so when the system lets it: the first to ask by it may be refused.
  const [row] = await until(() => sql<{ n: number }[]>`select count(*)::int as n from numbers`.catch(() => undefined));
  expect(row?.n).toBeGreaterThanOrEqual(outcome.done * 2005);
  await admin.end();
});

const cut = (admin: Sql) => admin`select pg_terminate_backend(pid) from pg_stat_activity
  where application_name = 'svc-pool' and datname = current_database()`;

test('a transaction that lost its connection between two statements writes nothing any more, and ends no other transaction', async () => {
  const { sql: admin, url } = await server.fresh();
  await admin`create table numbers (n integer)`;
  // The next transaction has the same connection, made anew.
  const sql = connectDatabase(url, { max: 1, name: 'svc-pool' });
  const watcher = connectDatabase(url, { max: 1, name: 'admin' });
  const went: string[] = [];
  const [begun, goOn, inSecond, endSecond] = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const first = sql.begin(async (transaction) => {
    await transaction`insert into numbers values (1)`;
    begun?.resolve();
    // Something that is not the database, such as a disk.
    await goOn?.promise;
    const write = async () => await transaction`insert into numbers values (2)`;
    await write().then(
      () => went.push('written'),
      () => went.push('refused'),
    );
    return 'made';
  });
  const outcome = first.catch((error: Error) => error.message);
  await begun?.promise;
  await cut(watcher);
  expect(await outcome).toMatch(/CONNECTION_CLOSED|closed the connection/);
  const second = sql.begin(async (transaction) => {
    await transaction`insert into numbers values (3)`;
    inSecond?.resolve();
    await endSecond?.promise;
    throw new Error('taken back');
  });
  const undone = expect(second).rejects.toThrow('taken back');
  await inSecond?.promise;
  goOn?.resolve();
  // The second one ends only when the first has come to its end, whatever that is.
  await until(() => went.length > 0);
  endSecond?.resolve();
  await undone;
  expect(went).toEqual(['refused']);
  expect(await watcher`select n from numbers`).toEqual([]);
  for (const each of [sql, watcher]) await each.end({ timeout: 1 });
});

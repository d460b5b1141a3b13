/** The database cuts connections in the middle of everything: queries fail, the process lives, and the next ones work. */
import { expect, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
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

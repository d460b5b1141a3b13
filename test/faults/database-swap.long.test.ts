/** The rig that the fault tests stand on: a copy taken while the server works is whole, and comes back as it was. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { until } from '../until.ts';
import { swapIn, takeBaseBackup } from './database-swap.ts';

test('a database falls back to a base backup under the same address, any number of times', async () => {
  const server = await startPostgresServer(20);
  onTestFinished(() => server.stop());
  const sql = connectDatabase(server.url, { max: 2 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  await sql`create table numbers (n integer primary key)`;
  let next = 0;
  let isWriting = true;
  const writing = (async () => {
    while (isWriting) await sql`insert into numbers values (${next}) on conflict do nothing`.then(() => next++);
  })();
  await sleep(100);
  const least = next;
  const copy = await takeBaseBackup(server);
  const most = next;
  await sleep(100);
  isWriting = false;
  await writing;
  for (let round = 0; round < 2; round++) {
    await swapIn(server, copy);
    const ask = () => sql<{ n: number; top: number }[]>`select count(*)::int as n, max(n) as top from numbers`;
    // Each connection to the server that fell may be found broken once.
    const [row] = await until(() => ask().catch(() => undefined));
    // A prefix of what was written, at least up to where the backup began.
    expect(row?.n).toBe((row?.top ?? 0) + 1);
    expect(row?.n).toBeGreaterThanOrEqual(least);
    expect(row?.n).toBeLessThanOrEqual(most + 1);
    await until(() =>
      sql`insert into numbers values (1000000 + ${round}) on conflict do nothing`.catch(() => undefined),
    );
  }
});

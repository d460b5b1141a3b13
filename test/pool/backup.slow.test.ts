/** A copy of the books, taken beside a running pool's database while it is written, and put back: the same books, and payouts paused. */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pausePayouts, payoutsPaused } from '../../pool/api/payout-pause.ts';
import { backup, outdated, restore } from '../../pool/backup.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { formatAddress } from '../../protocol/address.ts';
import { lockDirectory } from '../../runtime/directory-lock.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { account } from './books-bed.ts';
import { bringCluster } from './ready-cluster.ts';
import { svcPool } from './svc-pool.ts';

const ADDRESS = formatAddress(account('pool'), 'development');
const DAY = Date.UTC(2026, 0, 2, 3, 4, 5);

async function opened<T>(dataDir: string, run: (sql: Sql) => Promise<T>): Promise<T> {
  const server = await startEmbeddedPostgres(join(dataDir, 'database'), quietLog);
  const sql = connectDatabase(server.url, { max: 2 });
  try {
    return await run(sql);
  } finally {
    await sql.end({ timeout: 5 });
    await server.stop();
  }
}

const notes = async (sql: Sql) =>
  (await sql<{ actor: string }[]>`select actor from operator_log order by id`).map(({ actor }) => actor);

test('a copy of a database that is written all the while is restored to a moment of it, with payouts paused', async () => {
  const dataDir = join(temporaryDirectory(), 'pool');
  const to = join(dataDir, '..', 'copies');
  mkdirSync(dataDir);
  await bringCluster(join(dataDir, 'database'));
  // As a running pool holds it.
  const lock = lockDirectory(dataDir);
  let copy = '';
  await opened(dataDir, async (sql) => {
    await migrate(sql, quietLog);
    await sql`insert into settings values ('pool_address', ${ADDRESS})`;
    await pausePayouts(sql, false);
    await sql`insert into operator_log (actor, action, details) values ('before', 'x', '{}')`;
    let isOver = false;
    const writing = (async () => {
      for (let n = 0; !isOver; n++)
        await sql`insert into operator_log (actor, action, details) values (${`during ${n}`}, 'x', '{}')`;
    })();
    copy = await backup({ dataDir, to, keep: undefined }, quietLog, DAY);
    isOver = true;
    await writing;
    await sql`insert into operator_log (actor, action, details) values ('after', 'x', '{}')`;
  });
  lock.release();
  expect(readdirSync(to)).toEqual(['books-20260102T030405Z']);
  expect(statSync(copy).mode & 0o077).toBe(0);

  const { poolAddress, kept } = await restore(copy, dataDir, quietLog, DAY);
  expect(poolAddress).toBe(ADDRESS);
  expect(readdirSync(kept as string)).toContain('data');
  await opened(dataDir, async (sql) => {
    const [first, ...rest] = await notes(sql);
    expect(first).toBe('before');
    // Every entry up to a moment, and none after it.
    expect(rest.slice(0, -1)).toEqual(rest.slice(0, -1).map((_, n) => `during ${n}`));
    expect(rest.at(-1)).toBe('svc-pool restore');
    expect(await payoutsPaused(sql)).toBe(true);
  });
});

test('what is no whole copy, no pool, or a pool that runs is refused in a line and changes nothing', async () => {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'pool');
  await bringCluster(join(dataDir, 'database'));
  const half = join(folder, 'books-20260102T030405Z');
  await bringCluster(half);
  rmSync(join(half, 'ready'));
  expect(await svcPool('restore', half, '--data-dir', dataDir)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/not a whole copy/),
  });
  expect(await svcPool('backup', '--data-dir', join(folder, 'none'))).toMatchObject({
    code: 1,
    err: expect.stringMatching(/does not exist/),
  });
  const lock = lockDirectory(dataDir);
  const whole = join(folder, 'whole');
  await bringCluster(whole);
  await expect(restore(whole, dataDir, quietLog, DAY)).rejects.toMatchObject({ code: 'directory_locked' });
  await expect(backup({ dataDir, to: folder, keep: 1 }, quietLog, DAY)).rejects.toMatchObject({
    code: 'backup_unusable',
  });
  lock.release();
  expect(readdirSync(dataDir).filter((name) => !name.startsWith('lock'))).toEqual(['database']);
  expect(readdirSync(folder).sort()).toEqual(['books-20260102T030405Z', 'pool', 'whole']);
});

test('only the oldest copies go, and nothing else that lies there', () => {
  const names = [
    'books-20260103T000000Z',
    'notes',
    'books-20260101T000000Z',
    'books-20260102T000000Z',
    'books-x',
    'books-20260101T000000Z.7.part',
  ];
  expect(outdated(names, 1)).toEqual(['books-20260101T000000Z', 'books-20260102T000000Z']);
  expect(outdated(names, 3)).toEqual([]);
});

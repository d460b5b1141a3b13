/** A copy of the books, taken beside a running pool's database while it is written, and put back: the same books, and payouts paused. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pausePayouts, payoutsPaused } from '../../pool/api/operator/payout-pause.ts';
import { backup, leftovers, outdated, restore } from '../../pool/backup/backup.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { markRestoring } from '../../pool/database/half-restored.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { formatAddress } from '../../protocol/address.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { account } from './books-bed.ts';
import { runPoolCommand } from './pool-command.ts';
import { bringCluster } from './ready-cluster.ts';

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

/** As large as a process number cannot be. */
const NO_PROCESS = 9_999_999;

/** A folder that passes for a copy of the database with this `pg_control`. */
function pretend(folder: string, control: Uint8Array): void {
  mkdirSync(join(folder, 'data', 'global'), { recursive: true });
  writeFileSync(join(folder, 'data', 'global', 'pg_control'), control);
}

test('a copy of a database that is written all the while is restored to a moment of it, with payouts paused', async () => {
  const dataDir = join(temporaryDirectory(), 'pool');
  const to = join(dataDir, '..', 'copies');
  mkdirSync(dataDir);
  await bringCluster(join(dataDir, 'database'));
  const control = readFileSync(join(dataDir, 'database', 'data', 'global', 'pg_control'));
  const cluster = control.subarray(0, 8).toString('hex');
  const later = 'books-99991231T235959Z';
  const others = 'books-20250101T000001Z';
  for (const name of [later, 'books-20250101T000000Z', `books-20250101T000000Z.${cluster}.${NO_PROCESS}.part`])
    pretend(join(to, name), control);
  pretend(join(to, others), new Uint8Array(8));
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
    copy = await backup({ dataDir, to, keep: 1 }, quietLog, DAY);
    isOver = true;
    await writing;
    await sql`insert into operator_log (actor, action, details) values ('after', 'x', '{}')`;
    expect(await sql`show max_slot_wal_keep_size`, 'a backup that hangs').toEqual([{ max_slot_wal_keep_size: '8GB' }]);
  });
  lock.release();
  expect(readdirSync(to).sort()).toEqual([others, 'books-20260102T030405Z', later]);
  expect(statSync(copy).mode & 0o077).toBe(0);

  // As a pool that was killed leaves it.
  const orphan = await startEmbeddedPostgres(join(dataDir, 'database'), quietLog);
  onTestFinished(() => orphan.stop());
  const { poolAddress, kept } = await restore(copy, dataDir, quietLog, DAY);
  await orphan.exited;
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

test('a pool does not start on the half that a restore left, and a second restore makes it whole', async () => {
  const dataDir = join(temporaryDirectory(), 'pool');
  const database = join(dataDir, 'database');
  const copy = join(dataDir, '..', 'copy');
  await bringCluster(database);
  await opened(dataDir, async (sql) => {
    await migrate(sql, quietLog);
    await sql`insert into settings values ('pool_address', ${ADDRESS})`;
  });
  cpSync(database, copy, { recursive: true });
  const kept = `${database}.before`;
  await markRestoring(database, kept);
  renameSync(database, kept);
  const refusal = { code: 'restore_interrupted', message: expect.stringContaining(kept) };
  await expect(startEmbeddedPostgres(database, quietLog)).rejects.toMatchObject(refusal);
  await expect(backup({ dataDir, to: dataDir, keep: 1 }, quietLog, DAY)).rejects.toMatchObject(refusal);
  expect(existsSync(database)).toBe(false);
  expect(await restore(copy, dataDir, quietLog, DAY)).toEqual({ poolAddress: ADDRESS, kept });
  await opened(dataDir, async (sql) => expect(await payoutsPaused(sql)).toBe(true));
});

test('what is no whole copy, no pool, or a pool that runs is refused in a line and changes nothing', async () => {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'pool');
  await bringCluster(join(dataDir, 'database'));
  const half = join(folder, 'books-20260102T030405Z');
  await bringCluster(half);
  rmSync(join(half, 'ready'));
  expect(await runPoolCommand('restore', half, '--data-dir', dataDir)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/not a complete copy/),
  });
  expect(await runPoolCommand('backup', '--data-dir', join(folder, 'none'))).toMatchObject({
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

test('only the oldest copies of this pool go, never the one just made, and nothing else that lies there', () => {
  const days = [3, 1, 4, 2].map((day) => ({ name: `books-2026010${day}T000000Z`, cluster: 'a' }));
  const copies = [...days, { name: 'notes', cluster: 'a' }, { name: 'books-20250101T000000Z', cluster: 'b' }];
  const made = 'books-20260103T000000Z';
  expect(outdated(copies, made, 'a', 1)).toEqual(['books-20260101T000000Z', 'books-20260102T000000Z']);
  expect(outdated(copies, made, 'a', 3)).toEqual([]);
  expect(outdated(copies, 'books-20260101T000000Z', 'a', 1)).toEqual([]);
});

test('half copies of this pool go when their process is gone', () => {
  const [own, others] = ['0123456789abcdef', 'fedcba9876543210'];
  const half = (cluster: string, pid: number) => `books-20260101T000000Z.${cluster}.${pid}.part`;
  const names = [half(own, 7), half(own, 8), half(others, 8), 'books-20260101T000000Z', `${half(own, 8)}.x`];
  expect(leftovers(names, own, (pid) => pid === 7)).toEqual([half(own, 8)]);
});

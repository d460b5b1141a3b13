/**
 * Several front ends behind real Redis and PostgreSQL, each a process of its own: one is killed and one is added under load, the
 * accountant changes, Redis forgets everything. What was answered is in the books once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { count } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { startRedisServer } from './redis-server.ts';

const PROGRAM = new URL('./front-end-process.ts', import.meta.url).pathname;

test('three instances, one killed, one added, Redis wiped: every answered share is in the books once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-instances-'));
  const redis = await startRedisServer();
  const postgres = await startEmbeddedPostgres(join(directory, 'database'), quietLog);
  const sql = connectDatabase(postgres.url, { max: 2 });
  await migrate(sql, quietLog);
  const children: ChildProcess[] = [];
  const start = (name: string): ChildProcess => {
    const words = [PROGRAM, join(directory, name), postgres.url, redis.url, join(directory, `${name}.answered`)];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'] });
    children.push(child);
    return child;
  };
  const ended = (child: ChildProcess) =>
    child.exitCode !== null || child.signalCode !== null
      ? Promise.resolve()
      : new Promise((resolve) => child.once('close', resolve));
  const rest = count({ full: 1_500, deep: 20_000 });
  try {
    const [a, b] = [start('a'), start('b'), start('c')];
    await sleep(4_000 + rest);
    a.kill('SIGKILL');
    await ended(a);
    start('d');
    await sleep(rest);
    await redis.kill();
    await sleep(rest);
    await redis.start();
    await sleep(rest);
    // The same data directory, a new boot: it sends what the killed one left behind.
    start('a');
    b.kill('SIGKILL');
    await ended(b);
    start('b');
    await sleep(2_000 + rest);
    const running = children.filter((child) => child.exitCode === null && child.signalCode === null);
    for (const child of running) child.kill('SIGUSR2');
    const answered = () =>
      ['a', 'b', 'c', 'd'].flatMap((name) =>
        readFileSync(join(directory, `${name}.answered`), 'utf8')
          .split('\n')
          .filter((line) => line.length === 33),
      );
    await sleep(500);
    const expected = new Set(answered());
    const kept = async () =>
      new Set(
        (
          await sql<{ boot: string; sequence: string }[]>`select encode(boot_id, 'hex') as boot,
            lpad(sequence::text, 16, '0') as sequence from shares`
        ).map((row) => `${row.boot}/${row.sequence}`),
      );
    let missing = [...expected];
    for (const end = Date.now() + 40_000; missing.length > 0 && Date.now() < end; await sleep(500)) {
      const inBooks = await kept();
      missing = missing.filter((share) => !inBooks.has(share));
    }
    expect(expected.size).toBeGreaterThan(500);
    expect(missing).toEqual([]);
    const [rows] = await sql<{ all: number; distinct: number }[]>`select count(*)::int as all,
      count(distinct (boot_id, sequence))::int as distinct from shares`;
    expect(rows?.all).toBe(rows?.distinct);
    const [sums] = await sql<{ accepted: number; work: string; open: string }[]>`select sum(accepted)::int as accepted,
      sum(work)::text as work, (select sum(work)::text from open_work) as open from workers`;
    expect(sums?.accepted).toBe(rows?.all);
    expect(sums?.work).toBe(sums?.open);
    const [terms] = await sql<{ number: bigint }[]>`select number from term`;
    expect(Number(terms?.number)).toBeGreaterThan(1);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await sql.end({ timeout: 1 });
    await redis.stop();
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}, 120_000);

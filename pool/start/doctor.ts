/** `svc-pool doctor`: what a pool needs. Texts never repeat the URL of a database or of Redis: it may hold a password. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { stratumDoctor } from '../../bridge/doctor.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { bad, type Check, type Finding, ok, warn } from '../../runtime/doctor/doctor.ts';
import { directoryChecks, isInUse, portChecks, secretCheck } from '../../runtime/doctor/machine.ts';
import { nodeChecks } from '../../runtime/doctor/other-programs.ts';
import { connectDatabase, type Sql } from '../database/connect.ts';
import { isEmbeddedMade } from '../database/embedded.ts';
import { checkSchema } from '../database/migrate.ts';
import type { PoolValues } from '../options.ts';
import { createWalletClient } from '../payout/wallet-client.ts';

const LEAST_POSTGRES = 150_000;
const SLOW_COMMIT_MILLIS = 20;
/** Where systemd keeps what a unit of the pool names on its command line, and not in the config file, while it runs. */
const CREDENTIALS = '/run/credentials';

const tokenOfUnit = (): string | undefined =>
  (existsSync(CREDENTIALS) ? readdirSync(CREDENTIALS) : [])
    .filter((unit) => /^svc-pool(@.*)?\.service$/.test(unit))
    .map((unit) => join(CREDENTIALS, unit, 'wallet-token'))
    .find((file) => existsSync(file));

export function poolDoctor(values: PoolValues, now: SteadyClock): Check[] {
  const { dataDir, database, redis, wallet, walletTokenFile } = values;
  return [
    ...directoryChecks(dataDir),
    ...stratumDoctor(values, now),
    ...portChecks(isInUse(dataDir), [
      { option: 'pplns-listen', address: values.pplnsListen },
      { option: 'pplns-listen-ws', address: values.pplnsListenWs },
      { option: 'solo-listen', address: values.soloListen },
      { option: 'solo-listen-ws', address: values.soloListenWs },
      { option: 'web-bind', address: values.webBind },
    ]),
    { name: 'database', look: () => (database === undefined ? lookAtEmbedded(dataDir) : lookAtDatabase(database)) },
    { name: 'redis', look: () => (redis === undefined ? ok('none: this is the only instance') : lookAtRedis(redis)) },
    ...(values.node.length === 0 ? [] : nodeChecks(values.nodeApi, '--node-api', values.network, now)),
    ...(wallet === undefined
      ? []
      : [{ name: 'wallet', look: () => lookAtWallet(wallet, walletTokenFile ?? tokenOfUnit()) }]),
    secretCheck('pool key', values.poolKeyFile ?? join(dataDir, 'pool.key'), undefined),
    secretCheck('operator token', values.operatorTokenFile ?? join(dataDir, 'operator.token'), undefined),
    ...(values.webhookSecretFile === undefined
      ? []
      : [secretCheck('webhook secret', values.webhookSecretFile, 'make it, with a random text in it')]),
  ];
}

const lookAtEmbedded = (dataDir: string): Finding =>
  isEmbeddedMade(join(dataDir, 'database'))
    ? ok('embedded, in the data directory')
    : ok('embedded, will be made in the data directory');

export async function lookAtDatabase(url: string): Promise<Finding> {
  const sql = connectDatabase(url, { max: 1, name: 'svc-pool-doctor' });
  try {
    const [row] = await sql<Record<'number' | 'version' | 'writes' | 'flushes' | 'books', string | null>[]>`
      SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS version,
        current_setting('transaction_read_only') AS writes, current_setting('synchronous_commit') AS flushes,
        to_regclass('schema_version')::text AS books`;
    const began = performance.now();
    await sql`SELECT pg_current_xact_id()`;
    const millis = performance.now() - began;
    const says = `PostgreSQL ${row?.version}, a transaction takes ${millis.toFixed(1)} ms`;
    if (Number(row?.number) < LEAST_POSTGRES) return bad(says, 'use PostgreSQL 15 or newer');
    if (row?.writes === 'on') return bad(`${says}; it is read-only`, 'name the primary, not a replica');
    const newer = row?.books === null ? undefined : await newerBooks(sql);
    if (newer !== undefined) return bad(newer, 'or restore a backup of before, with this release');
    if (row?.flushes === 'off')
      return bad(`${says}; synchronous_commit is off`, 'switch it on: a power failure would take payments back');
    return millis > SLOW_COMMIT_MILLIS
      ? warn(says, 'the books wait for it: look at its disk, its load and the network between')
      : ok(says);
  } catch (error) {
    return bad(`no answer: ${reasonOf(error)}`, 'start PostgreSQL, or correct --database (user, password, host, name)');
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Why this release cannot keep these books. */
const newerBooks = (sql: Sql): Promise<string | undefined> =>
  checkSchema(sql).then(
    () => undefined,
    (error: Error) => error.message,
  );

async function lookAtRedis(url: string): Promise<Finding> {
  const redis = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    retryStrategy: null,
  });
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    const began = performance.now();
    await redis.ping();
    const policy = /maxmemory_policy:(\S+)/.exec(await redis.info('memory'))?.[1] ?? 'unknown';
    const says = `answers in ${(performance.now() - began).toFixed(1)} ms, policy ${policy}`;
    return policy === 'noeviction' || policy === 'unknown'
      ? ok(says)
      : warn(says, 'set maxmemory-policy noeviction: otherwise Redis deletes shares that the books lack');
  } catch (error) {
    return bad(`no answer: ${reasonOf(reason ?? error)}`, 'start Redis, or correct --redis (password, host, port)');
  } finally {
    redis.disconnect();
  }
}

async function lookAtWallet(url: string, tokenFile: string | undefined): Promise<Finding> {
  if (tokenFile === undefined)
    return warn(
      `${url}: without a token it cannot be asked`,
      'name it with --wallet-token-file; the units of the pool do that themselves, and its copy is found while one runs',
    );
  const status = await createWalletClient({ url, tokenFile, timeoutMillis: 5_000 }).status();
  return status.kind === 'ok'
    ? ok(`${url} answers`)
    : bad(`${url}: ${status.reason}`, 'start svc-wallet daemon, or correct --wallet and --wallet-token-file');
}

/** Without the address, which a driver may put into its text. */
const reasonOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message.replace(/[a-z]+:\/\/\S+/gi, '***');
};

/**
 * Several instances on one database need Redis: without it the accountant never sees the shares of the others. An
 * instance without Redis therefore holds an exclusive lock in the database; instances with Redis share it. The lock is
 * held by a separate connection, and taken again after that connection was lost.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase, type Sql, type Transaction } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';
import { every } from '../rounds.ts';
import type { PoolDependencies } from './pool-dependencies.ts';

const INSTANCE_LOCK = 0x5356_4303;
/**
 * A predecessor that was killed, or whose machine lost its power, is dropped by the server within this time
 * (LOST_CLIENT in database/connect.ts).
 */
const WAIT_MILLIS = 20_000;
const RETRY_MILLIS = 250;
/** More often than the driver closes idle connections. */
const KEEP_MILLIS = 10_000;

/** The id of the server's process that holds the lock; undefined while another instance has it. */
async function tryLock(sql: Sql, hasRedis: boolean): Promise<number | undefined> {
  const [row] = hasRedis
    ? await sql<
        { won: boolean; pid: number }[]
      >`select pg_try_advisory_lock_shared(${INSTANCE_LOCK}) as won, pg_backend_pid() as pid`
    : await sql<
        { won: boolean; pid: number }[]
      >`select pg_try_advisory_lock(${INSTANCE_LOCK}) as won, pg_backend_pid() as pid`;
  return row?.won === true ? row.pid : undefined;
}

export async function insistOneInstance(
  options: { readonly databaseUrl: string; readonly hasRedis: boolean; readonly waitMillis?: number },
  { log, started }: Pick<PoolDependencies, 'log' | 'started'>,
): Promise<void> {
  const { hasRedis } = options;
  const sql = connectDatabase(options.databaseUrl, { max: 1, name: 'svc-pool-instance' });
  started('place of this instance', () => sql.end({ timeout: 1 }));
  const until = performance.now() + (options.waitMillis ?? WAIT_MILLIS);
  let holder = await tryLock(sql, hasRedis);
  while (holder === undefined && performance.now() < until) {
    await sleep(RETRY_MILLIS);
    holder = await tryLock(sql, hasRedis);
  }
  if (holder === undefined)
    throw new PoolError(
      'instances_need_redis',
      hasRedis
        ? 'an instance without --redis uses this database: stop it, and give every instance the same --redis'
        : 'another instance uses this database: give every instance the same --redis, or stop the other one',
    );
  const keep = async () => {
    const [now] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    if (now?.pid === holder) return;
    holder = await tryLock(sql, hasRedis);
    if (holder === undefined) log.error('another instance uses this database without the same --redis');
  };
  every(KEEP_MILLIS, keep, 'place of this instance', { log, started });
}

/** Throws while an instance runs; until the end of the transaction none takes its place. */
export async function lockOutInstances(transaction: Transaction): Promise<void> {
  const [row] = await transaction<{ won: boolean }[]>`select pg_try_advisory_xact_lock(${INSTANCE_LOCK}) as won`;
  if (row?.won !== true)
    throw new PoolError('pool_running', 'an instance of the pool runs on this database: stop all of them first');
}

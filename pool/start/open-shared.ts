/**
 * Opens the state shared between instances, and the accountant's end of the feed: in this process alone, or over Redis,
 * where everything is sealed with a secret from the database (shared/seal.ts).
 */
import { limitsOf } from '../../bridge/options.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql } from '../database/connect.ts';
import type { EntrySource } from '../feed/entry-source.ts';
import { LocalFeed } from '../feed/local-feed.ts';
import type { Outbox } from '../feed/outbox.ts';
import { positionsOf, reignOf } from '../feed/positions.ts';
import { StreamSender } from '../feed/stream-sender.ts';
import { StreamSource } from '../feed/stream-source.ts';
import type { PoolValues } from '../options.ts';
import { connectRedis, redisKeys, redisReady } from '../shared/redis.ts';
import { RedisSharedState } from '../shared/redis-shared-state.ts';
import { poolSecret, Seal } from '../shared/seal.ts';
import { LocalSharedState, type SharedState } from '../shared/shared-state.ts';
import { UnreadValues } from '../shared/unread-values.ts';

export type OpenSharedDependencies = {
  readonly log: Logger;
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  readonly sql: Sql;
  readonly outbox: Outbox;
  readonly bootId: string;
};

export type OpenShared = {
  readonly shared: SharedState;
  readonly source: EntrySource;
  /** Values in Redis that were left unread, by reason; undefined without a Redis. */
  readonly unread: (() => Readonly<Record<string, number>>) | undefined;
};

const REDIS_START_MILLIS = 3_000;
const SECRET_MILLIS = 10_000;

export async function openShared(values: PoolValues, dependencies: OpenSharedDependencies): Promise<OpenShared> {
  const { sql, outbox } = dependencies;
  if (values.redis !== undefined) return openRedis(values.redis, values, dependencies);
  const shared = new LocalSharedState(limitsOf(values), steadyMillis);
  return { shared, source: new LocalFeed(outbox, { positions: positionsOf(sql) }), unread: undefined };
}

async function openRedis(url: string, values: PoolValues, dependencies: OpenSharedDependencies): Promise<OpenShared> {
  const { log, started, sql, outbox, bootId } = dependencies;
  const keys = redisKeys(`${values.redisPrefix}:${values.network}`);
  const redisLog = log.child('redis');
  if (new URL(url).password === '')
    redisLog.warn('redis has no password: anyone who can reach it can remove what instances share', {
      remedy: 'set requirepass, and --redis redis://:PASSWORD@HOST:PORT in the config file',
    });
  const connect = (name: string) => connectRedis(url, `svc-pool-${name}`, redisLog);
  const [redis, subscriber, sending, reading] = [
    connect('shared'),
    connect('news'),
    connect('feed'),
    connect('accountant'),
  ];
  await redisReady(sending, REDIS_START_MILLIS);
  const seal = new Seal(await poolSecret(sql), keys.feed);
  followSecret(seal, dependencies);
  const unread = new UnreadValues({ log: redisLog, now: steadyMillis });
  const common = { keys, seal, unread, now: steadyMillis };
  const shared = new RedisSharedState(limitsOf(values), {
    ...common,
    redis,
    subscriber,
    instance: bootId,
    log: redisLog,
  });
  started('shared state', () => shared.close());
  const books = { positions: positionsOf(sql), reign: reignOf(sql) };
  const feedLog = log.child('feed');
  const sender = new StreamSender({ keys }, { ...common, ...books, redis: sending, outbox, log: feedLog });
  started('feed', async () => {
    await sender.close();
    sending.disconnect();
  });
  const source = new StreamSource({ keys, consumer: bootId }, { ...common, ...books, redis: reading, log: feedLog });
  started('share stream', () => source.close());
  return { shared, source, unread: () => unread.counts };
}

/** A database that was restored or replaced has another secret. */
function followSecret(seal: Seal, { sql, log, started }: OpenSharedDependencies): void {
  const timer = setInterval(() => {
    poolSecret(sql).then(
      (secret) => seal.replaceSecret(secret),
      (error: Error) => log.debug('the shared secret could not be read', { reason: error.message }),
    );
  }, SECRET_MILLIS);
  started('the shared secret', () => clearInterval(timer));
}

/**
 * How the pool connects to Redis; only its doctor looks whether one answers by itself. Commands fail at once while it is unavailable instead of queueing in memory: every
 * caller has a journal, a cache or a later retry, so an unavailable Redis only causes delay.
 */
import { Redis } from 'ioredis';
import type { Logger } from '../../runtime/log/log.ts';

export type RedisKeys = {
  readonly feed: string;
  readonly gaps: string;
  readonly lasts: string;
  readonly bans: string;
  readonly session: string;
  readonly instances: string;
  readonly news: string;
};

/** One Redis may serve several pools: names start with the pool's own prefix. */
export const redisKeys = (prefix: string): RedisKeys => ({
  feed: `${prefix}:feed`,
  gaps: `${prefix}:feed-gaps`,
  lasts: `${prefix}:feed-lasts`,
  bans: `${prefix}:bans`,
  session: `${prefix}:session:`,
  instances: `${prefix}:instances`,
  news: `${prefix}:news`,
});

export function connectRedis(url: string, name: string, log: Logger): Redis {
  const redis = new Redis(url, {
    connectionName: name,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    commandTimeout: 10_000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
  });
  let away = false;
  redis.on('error', (error: Error) => {
    if (!away) log.warn('redis is away', { reason: error.message });
    away = true;
  });
  redis.on('ready', () => {
    if (away) log.info('redis is back');
    away = false;
  });
  return redis;
}

/** Resolves once the connection is ready, or after `millis`: a start never depends on Redis. */
export const redisReady = (redis: Redis, millis: number): Promise<boolean> =>
  new Promise((resolve) => {
    if (redis.status === 'ready') return resolve(true);
    const timer = setTimeout(() => resolve(redis.status === 'ready'), millis);
    redis.once('ready', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });

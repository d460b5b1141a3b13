/**
 * What instances share, in Redis. While it is away each instance goes on with what it has: bans stay local and are told
 * again when it is back, ended sessions wait locally, figures of others go stale and vanish.
 */
import { deserialize, serialize } from 'node:v8';
import type { Redis } from 'ioredis';
import type { SessionRecord } from '../../bridge/hub.ts';
import { LocalSessionShelf, type SessionShelf, type SessionShelfOptions } from '../../bridge/session-shelf.ts';
import type { Logger } from '../../runtime/log.ts';
import type { RedisKeys } from './redis.ts';
import { type Ban, INSTANCE_SILENT_MILLIS, type InstanceFigures, type News, type SharedState } from './shared-state.ts';

/** Figures of an instance that is gone for this long are removed by whoever reads them. */
const FORGET_MILLIS = 3_600_000;
/** Bans kept in Redis and in each instance. */
const MAX_BANS = 65_536;

export type RedisSharedDependencies = {
  readonly redis: Redis;
  /** A connection of its own: a subscriber can do nothing else. */
  readonly subscriber: Redis;
  readonly keys: RedisKeys;
  readonly log: Logger;
  readonly now: () => number;
};

export class RedisSharedState implements SharedState {
  readonly sessions: SessionShelf;
  readonly #dependencies: RedisSharedDependencies;
  readonly #bans = new Map<string, number>();
  readonly #listeners: ((news: News) => void)[] = [];
  #own: InstanceFigures | undefined;

  constructor(options: SessionShelfOptions, dependencies: RedisSharedDependencies) {
    this.#dependencies = dependencies;
    this.sessions = new RedisSessionShelf(options, dependencies);
    const { subscriber, keys, redis } = dependencies;
    const listen = () => void subscriber.subscribe(keys.news).catch(() => undefined);
    subscriber.on('ready', listen);
    if (subscriber.status === 'ready') listen();
    subscriber.on('message', (_channel, text) => this.#heard(text));
    const restore = () => void this.#restoreBans().catch(() => undefined);
    redis.on('ready', restore);
    if (redis.status === 'ready') restore();
  }

  #heard(text: string): void {
    const news = readNews(text);
    if (news === undefined) this.#dependencies.log.warn('news that cannot be read', { text: text.slice(0, 200) });
    else this.#apply(news);
  }

  #apply(news: News): void {
    if (news.kind === 'ban') this.#remember(news.key, news.untilMillis);
    if (news.kind === 'unban') this.#bans.delete(news.key);
    for (const listener of this.#listeners) listener(news);
  }

  #remember(key: string, untilMillis: number): void {
    this.#bans.delete(key);
    this.#bans.set(key, untilMillis);
    for (const oldest of this.#bans.keys()) {
      if (this.#bans.size <= MAX_BANS) break;
      this.#bans.delete(oldest);
    }
  }

  /** After a connection: theirs become ours, and ours theirs. */
  async #restoreBans(): Promise<void> {
    const { redis, keys, now } = this.#dependencies;
    const theirs = await redis.hgetall(keys.bans);
    for (const [key, text] of Object.entries(theirs)) {
      const untilMillis = Number(text);
      if (untilMillis > now() && !this.#bans.has(key)) this.#apply({ kind: 'ban', key, untilMillis });
    }
    for (const [key, until] of [...this.#bans])
      if (until > now() && !(key in theirs)) await this.ban({ key, untilMillis: until });
  }

  async ban({ key, untilMillis }: Ban): Promise<void> {
    const { redis, keys } = this.#dependencies;
    this.#remember(key, untilMillis);
    await redis.hset(keys.bans, key, String(untilMillis)).catch(() => undefined);
    await this.publish({ kind: 'ban', key, untilMillis });
  }

  async unban(key: string): Promise<boolean> {
    const { redis, keys } = this.#dependencies;
    const known = this.#bans.delete(key);
    const removed = await redis.hdel(keys.bans, key).catch(() => 0);
    await this.publish({ kind: 'unban', key });
    return known || removed > 0;
  }

  async bans(): Promise<readonly Ban[]> {
    const { redis, keys, now } = this.#dependencies;
    const over = [...this.#bans].filter(([, until]) => until <= now()).map(([key]) => key);
    for (const key of over) this.#bans.delete(key);
    if (over.length > 0) await redis.hdel(keys.bans, ...over).catch(() => undefined);
    return [...this.#bans].map(([key, untilMillis]) => ({ key, untilMillis }));
  }

  async report(figures: InstanceFigures): Promise<void> {
    const { redis, keys } = this.#dependencies;
    this.#own = figures;
    await redis.hset(keys.instances, figures.instance, JSON.stringify(figures)).catch(() => undefined);
  }

  async instances(): Promise<readonly InstanceFigures[]> {
    const { redis, keys, now } = this.#dependencies;
    const rows = await redis.hgetall(keys.instances).catch((): Record<string, string> => ({}));
    const others = Object.values(rows).map((text) => JSON.parse(text) as InstanceFigures);
    const gone = others.filter((figures) => now() - figures.atMillis > FORGET_MILLIS);
    if (gone.length > 0)
      await redis.hdel(keys.instances, ...gone.map((figures) => figures.instance)).catch(() => undefined);
    const own = this.#own;
    const heard = others.filter(
      (figures) => figures.instance !== own?.instance && now() - figures.atMillis <= INSTANCE_SILENT_MILLIS,
    );
    return own === undefined ? heard : [own, ...heard];
  }

  async publish(news: News): Promise<void> {
    const { redis, keys } = this.#dependencies;
    // Heard back over Redis like everybody else's; while it is away, this instance still hears itself.
    await redis.publish(keys.news, JSON.stringify(news)).catch(() => this.#apply(news));
  }

  subscribe(listener: (news: News) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#dependencies.subscriber.disconnect();
    this.#dependencies.redis.disconnect();
  }
}

function readNews(text: string): News | undefined {
  try {
    const news = JSON.parse(text) as News;
    return ['ban', 'unban', 'block'].includes(news.kind) ? news : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A session is on one shelf only, so that no two connections ever get the same: here when Redis was away before anything
 * was sent, there otherwise. Where it is not sure whether Redis took it, it is dropped; the miner begins a new session.
 */
export class RedisSessionShelf implements SessionShelf {
  readonly #options: SessionShelfOptions;
  readonly #local: LocalSessionShelf;
  readonly #redis: Redis;
  readonly #keys: RedisKeys;

  constructor(options: SessionShelfOptions, dependencies: { redis: Redis; keys: RedisKeys; now: () => number }) {
    this.#options = options;
    this.#local = new LocalSessionShelf(options, dependencies.now);
    this.#redis = dependencies.redis;
    this.#keys = dependencies.keys;
  }

  async put(record: SessionRecord): Promise<void> {
    if (this.#redis.status !== 'ready') return this.#local.put(record);
    const value = Buffer.from(serialize(record));
    await this.#redis
      .set(`${this.#keys.session}${record.id}`, value, 'PX', this.#options.resumeMillis)
      .catch(() => undefined);
  }

  async take(id: string): Promise<SessionRecord | null> {
    const local = await this.#local.take(id);
    if (local !== null || this.#redis.status !== 'ready') return local;
    const value = await this.#redis.getdelBuffer(`${this.#keys.session}${id}`).catch(() => null);
    return value === null ? null : (deserialize(value) as SessionRecord);
  }
}

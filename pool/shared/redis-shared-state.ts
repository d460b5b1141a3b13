/**
 * The shared state of instances in Redis. While it is unavailable each instance uses its local state: bans stay local
 * and are sent again afterwards, ended sessions wait locally, statistics of others expire.
 */
import type { Redis } from 'ioredis';
import { BAN_DEFAULTS } from '../../bridge/session/ban-score.ts';
import { KeptBans } from '../../bridge/session/kept-bans.ts';
import type { SessionRecord } from '../../bridge/session/session-record.ts';
import {
  isProven,
  keptMillis,
  LocalSessionShelf,
  type SessionShelf,
  type SessionShelfOptions,
} from '../../bridge/session/session-shelf.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { type Codec, count, decode, encode } from './codec.ts';
import { NewsReader, NewsWriter } from './news-codec.ts';
import type { RedisKeys } from './redis.ts';
import type { Purpose, Seal } from './seal.ts';
import { waitingSession } from './session-codec.ts';
import {
  type Ban,
  INSTANCE_SILENT_MILLIS,
  type InstanceFigures,
  instanceFigures,
  type News,
  type SharedState,
} from './shared-state.ts';
import type { UnreadValues } from './unread-values.ts';

/** Statistics of an instance that has been gone for this long are removed by the next reader. */
const FORGET_MILLIS = 3_600_000;

/** Names removed from Redis by one command. */
const AT_ONCE = 1_000;

/** Codecs and seal for the values of a pool. */
export type Sealed = { readonly seal: Seal; readonly unread: UnreadValues };

export type RedisSharedDependencies = Sealed & {
  readonly redis: Redis;
  /** A separate connection: a subscriber can do nothing else. */
  readonly subscriber: Redis;
  readonly keys: RedisKeys;
  /** Boot id in hex. */
  readonly instance: string;
  readonly log: Logger;
  readonly now: SteadyClock;
};

/** The value that an instance of this pool stored under a name; undefined, and counted, for anything else. */
function readSealed<T>(
  codec: Codec<T>,
  purpose: Purpose,
  name: string,
  bytes: Uint8Array,
  sealed: Sealed,
): T | undefined {
  const opened = sealed.seal.open(purpose, name, bytes);
  if (opened.kind !== 'payload') {
    sealed.unread.note(purpose, opened);
    return undefined;
  }
  try {
    return decode(codec, opened.payload);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    sealed.unread.note(purpose, { kind: 'damaged' });
    return undefined;
  }
}

export class RedisSharedState implements SharedState {
  readonly sessions: SessionShelf;
  readonly #dependencies: RedisSharedDependencies;
  readonly #bans = new KeptBans(BAN_DEFAULTS.capacity);
  readonly #listeners: ((news: News) => void)[] = [];
  readonly #newsWriter: NewsWriter;
  readonly #newsReader: NewsReader;
  #own: InstanceFigures | undefined;

  constructor(options: SessionShelfOptions, dependencies: RedisSharedDependencies) {
    this.#dependencies = dependencies;
    this.#newsWriter = new NewsWriter(dependencies.instance, dependencies.seal);
    this.#newsReader = new NewsReader(dependencies);
    this.sessions = new RedisSessionShelf(options, dependencies);
    const { subscriber, keys, redis } = dependencies;
    subscriber.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
      const news = this.#newsReader.read(message);
      if (news !== undefined) this.#apply(news);
    });
    const restore = () => void this.#restoreBans().catch(() => undefined);
    redis.on('ready', restore);
    if (redis.status === 'ready') restore();
    // What is read once news are heard lacks nothing: a ban of before is in Redis, and one of after is heard.
    const listen = () =>
      void subscriber
        .subscribe(keys.news)
        .then(() => this.#learnBans())
        .catch(() => undefined);
    subscriber.on('ready', listen);
    if (subscriber.status === 'ready') listen();
  }

  #apply(news: News): void {
    if (news.kind === 'ban') this.#bans.set(news.key, news.untilMillis);
    if (news.kind === 'unban') this.#bans.delete(news.key);
    for (const listener of this.#listeners) listener(news);
  }

  /** What Redis holds. Those that are over are removed there. */
  async #readBans(): Promise<ReadonlyMap<string, number>> {
    const { redis, keys, now } = this.#dependencies;
    const bans = new Map<string, number>();
    const over: string[] = [];
    for (const [key, value] of Object.entries(await redis.hgetallBuffer(keys.bans))) {
      const untilMillis = readSealed(count, 'ban', key, value, this.#dependencies);
      if (untilMillis === undefined) continue;
      if (untilMillis > now()) bans.set(key, untilMillis);
      else over.push(key);
    }
    // A call takes so many arguments and no more.
    for (let i = 0; i < over.length; i += AT_ONCE) await redis.hdel(keys.bans, ...over.slice(i, i + AT_ONCE));
    return bans;
  }

  /** Bans of others that were not heard of. */
  async #learnBans(): Promise<ReadonlyMap<string, number>> {
    const theirs = await this.#readBans();
    for (const [key, untilMillis] of theirs)
      if (this.#bans.until(key, this.#dependencies.now()) === undefined) this.#apply({ kind: 'ban', key, untilMillis });
    return theirs;
  }

  /** After a connection: bans are merged in both directions. */
  async #restoreBans(): Promise<void> {
    const theirs = await this.#learnBans();
    for (const ban of this.#bans.list(this.#dependencies.now())) if (!theirs.has(ban.key)) await this.ban(ban);
  }

  async ban({ key, untilMillis }: Ban): Promise<void> {
    const { redis, keys, seal } = this.#dependencies;
    this.#bans.set(key, untilMillis);
    const value = seal.seal('ban', key, encode(count, Math.floor(untilMillis)));
    await redis.hset(keys.bans, key, value).catch(() => undefined);
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
    const held = this.#bans.list(now());
    // Where there were more than fit here, Redis has some that nobody remembers.
    if ((await redis.hlen(keys.bans).catch(() => 0)) > held.length) await this.#readBans().catch(() => undefined);
    return held;
  }

  async report(figures: InstanceFigures): Promise<void> {
    const { redis, keys, seal } = this.#dependencies;
    this.#own = figures;
    const value = seal.seal('instance', figures.instance, encode(instanceFigures, figures));
    await redis.hset(keys.instances, figures.instance, value).catch(() => undefined);
  }

  async instances(): Promise<readonly InstanceFigures[]> {
    const { redis, keys, now } = this.#dependencies;
    const rows = await redis.hgetallBuffer(keys.instances).catch((): Record<string, Buffer> => ({}));
    const others = Object.entries(rows).flatMap(
      ([name, value]) => readSealed(instanceFigures, 'instance', name, value, this.#dependencies) ?? [],
    );
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
    // Received over Redis like those of other instances; while Redis is unavailable it is delivered locally.
    await redis.publish(keys.news, this.#newsWriter.write(news)).catch(() => this.#apply(news));
  }

  subscribe(listener: (news: News) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#dependencies.subscriber.disconnect();
    this.#dependencies.redis.disconnect();
  }
}

type ShelfDependencies = Sealed & { readonly redis: Redis; readonly keys: RedisKeys; readonly now: SteadyClock };

/**
 * A session is stored in one place only, so that no two connections ever get the same: locally if Redis was unavailable
 * before anything was sent, or if the session has done no work yet; otherwise in Redis. If it is unclear whether Redis
 * stored it, it is dropped, and the miner starts a new session. Jobs and judged nonces never leave this process: other
 * instances do not need them, and replaying an older value in Redis must not make a nonce count again.
 */
export class RedisSessionShelf implements SessionShelf {
  readonly #options: SessionShelfOptions;
  readonly #local: LocalSessionShelf;
  /** Sessions that are in Redis and were served here last, for their jobs. */
  readonly #own: LocalSessionShelf;
  readonly #dependencies: ShelfDependencies;

  constructor(options: SessionShelfOptions, dependencies: ShelfDependencies) {
    this.#options = options;
    this.#local = new LocalSessionShelf(options, dependencies.now);
    this.#own = new LocalSessionShelf(options, dependencies.now);
    this.#dependencies = dependencies;
  }

  /** Hides the id from readers of Redis, who could resume the session with it. */
  #name(id: string): string {
    const { seal, keys } = this.#dependencies;
    return `${keys.session}${seal.hiddenName('session', id)}`;
  }

  async put(record: SessionRecord): Promise<'here' | 'shared'> {
    const { redis, seal, now } = this.#dependencies;
    if (redis.status !== 'ready' || !isProven(record)) return this.#local.put(record);
    await this.#own.put(record);
    const value = seal.seal('session', record.id, encode(waitingSession, record));
    const millis = keptMillis(record, this.#options.resumeMillis, now());
    await redis.set(this.#name(record.id), value, 'PX', millis).catch(() => undefined);
    return 'shared';
  }

  async take(id: string): Promise<SessionRecord | null> {
    const { redis } = this.#dependencies;
    const local = await this.#local.take(id);
    const own = await this.#own.take(id);
    if (local !== null || redis.status !== 'ready') return local;
    const value = await redis.getdelBuffer(this.#name(id)).catch(() => null);
    if (value === null) return null;
    const waiting = readSealed(waitingSession, 'session', id, value, this.#dependencies);
    if (waiting === undefined) return null;
    return own !== null && equalBytes(own.bootId, waiting.bootId) ? own : { id, ...waiting, jobs: null };
  }
}

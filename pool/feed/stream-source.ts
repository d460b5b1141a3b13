/**
 * The accountant's end of the share stream: a Redis Stream read through a consumer group. What an earlier accountant read
 * and did not commit is claimed first. A message is acknowledged and deleted only after the books committed it; one that
 * does not join the books' position (Redis lost messages, another accountant holds them, or the database went back) is
 * dropped and reported as a gap with that position, and its front end sends again from there.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ProtocolError } from '../../protocol/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import type { JournalEntry } from '../journal.ts';
import type { RedisKeys } from '../shared/redis.ts';
import { type EntrySource, NOTHING, type Positions, type TakenEntries } from './entry-source.ts';
import { gapReport, unpackEntries } from './stream-message.ts';

const GROUP = 'accountant';
const CLAIM_COUNT = 100;
/** Messages of one read, however small they are: bounds what a batch can grow to. */
const MAX_MESSAGES = 200;
/** Within this time of a (re)connection every front end that lives has told Redis how much its journals hold. */
const REPORT_MILLIS = 3_000;
/** Messages that another reader took and never finished are claimed again after this long. */
const RECLAIM_MILLIS = 15_000;

export type StreamSourceOptions = {
  readonly keys: RedisKeys;
  /** Name of this instance in the group. */
  readonly consumer: string;
  /** Entries in one message, as first guessed; the read asks for as many messages as make up a batch. */
  readonly messageEntries?: number;
  readonly reportMillis?: number;
};

type Message = { readonly id: string; readonly bootId: string; readonly after: number; readonly packed: Buffer };

export class StreamSource implements EntrySource {
  readonly #keys: RedisKeys;
  readonly #consumer: string;
  readonly #redis: Redis;
  readonly #positions: Positions;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #known = new Map<string, number>();
  #claimFrom: string | undefined = '0-0';
  #claimIdleMillis = 0;
  #lastClaim = 0;
  #usualEntries: number;
  readonly #reportMillis: number;
  /** When the connection came about; undefined while there is none. */
  #readySince: number | undefined;
  /** What front ends told of their journals after `begin`, and by which of it the books are caught up. */
  #reports: { readonly atMillis: number; readonly texts: Readonly<Record<string, string>> } | undefined;
  #goals: ReadonlyMap<string, number> | undefined;

  /** `redis` is a connection of its own: reads on it block. */
  constructor(
    options: StreamSourceOptions,
    dependencies: { redis: Redis; positions: Positions; log: Logger; now: () => number },
  ) {
    this.#keys = options.keys;
    this.#consumer = options.consumer;
    this.#usualEntries = options.messageEntries ?? 1_000;
    this.#redis = dependencies.redis;
    this.#positions = dependencies.positions;
    this.#log = dependencies.log;
    this.#now = dependencies.now;
    this.#reportMillis = options.reportMillis ?? REPORT_MILLIS;
    this.#readySince = this.#redis.status === 'ready' ? this.#now() : undefined;
    this.#redis.on('ready', () => {
      this.#readySince = this.#now();
    });
    this.#redis.on('close', () => {
      this.#readySince = undefined;
    });
  }

  async begin(): Promise<void> {
    this.#known.clear();
    this.#reports = undefined;
    this.#goals = undefined;
    this.#claimFrom = '0-0';
    this.#claimIdleMillis = 0;
  }

  async take(maxEntries: number, waitMillis: number): Promise<TakenEntries> {
    try {
      const count = Math.min(MAX_MESSAGES, Math.max(1, Math.floor(maxEntries / this.#usualEntries)));
      const messages = await this.#read(count, waitMillis);
      return messages.length === 0 ? NOTHING : await this.#join(messages);
    } catch (error) {
      if (/NOGROUP/.test((error as Error).message)) await this.#createGroup().catch(() => undefined);
      else {
        this.#log.debug('the share stream cannot be read', { reason: (error as Error).message });
        // What was read and not handed out stays pending in the group: claim it again.
        this.#claimFrom = '0-0';
        this.#claimIdleMillis = 0;
        await sleep(Math.min(waitMillis, 500));
      }
      return NOTHING;
    }
  }

  async #createGroup(): Promise<void> {
    await this.#redis.xgroup('CREATE', this.#keys.feed, GROUP, '0', 'MKSTREAM');
    this.#claimFrom = '0-0';
  }

  async #read(count: number, waitMillis: number): Promise<Message[]> {
    if (this.#claimFrom === undefined && this.#now() - this.#lastClaim >= RECLAIM_MILLIS) {
      this.#claimFrom = '0-0';
      this.#claimIdleMillis = RECLAIM_MILLIS;
    }
    while (this.#claimFrom !== undefined) {
      const [next, rows] = (await this.#redis.callBuffer(
        ...['XAUTOCLAIM', this.#keys.feed, GROUP, this.#consumer, String(this.#claimIdleMillis), this.#claimFrom],
        ...['COUNT', String(CLAIM_COUNT)],
      )) as [Buffer, StreamRow[]];
      const cursor = next.toString();
      this.#claimFrom = cursor === '0-0' ? undefined : cursor;
      this.#lastClaim = this.#now();
      const messages = rows.flatMap(readMessage);
      if (messages.length > 0) return messages;
    }
    const answer = (await this.#redis.callBuffer(
      ...['XREADGROUP', 'GROUP', GROUP, this.#consumer, 'COUNT', String(count), 'BLOCK', String(waitMillis)],
      ...['STREAMS', this.#keys.feed, '>'],
    )) as [Buffer, StreamRow[]][] | null;
    return answer === null ? [] : answer.flatMap(([, rows]) => rows.flatMap(readMessage));
  }

  async #join(messages: readonly Message[]): Promise<TakenEntries> {
    const unknown = [...new Set(messages.map((message) => message.bootId))].filter((boot) => !this.#known.has(boot));
    if (unknown.length > 0)
      for (const [bootId, through] of await this.#positions(unknown)) this.#known.set(bootId, through);
    const reached = new Map<string, number>();
    const gaps = new Map<string, number>();
    const entries: JournalEntry[] = [];
    for (const message of messages) {
      const position = reached.get(message.bootId) ?? this.#known.get(message.bootId) ?? -1;
      if (message.after > position) {
        gaps.set(message.bootId, position);
        continue;
      }
      // Repeated ones too: which of them count is for the books to say, who may stand further back than is remembered here.
      const sent = this.#unpack(message);
      for (const entry of sent) entries.push(entry);
      reached.set(message.bootId, Math.max(position, sent.at(-1)?.sequence ?? -1));
    }
    // Messages are small while the pool is quiet: the next read asks for as many as make up a batch.
    this.#usualEntries = Math.max(1, entries.length / messages.length);
    const ids = messages.map((message) => message.id);
    const finish = () => this.#finish(ids, reached, gaps);
    if (entries.length > 0) return { entries, committed: finish };
    await finish();
    return NOTHING;
  }

  /** A damaged message counts as missing: its front end sends it again. */
  #unpack(message: Message): JournalEntry[] {
    try {
      return unpackEntries(message.bootId, message.after, message.packed);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#log.warn('a message of the share stream is damaged', { bootId: message.bootId, code: error.code });
      return [];
    }
  }

  async #finish(
    ids: readonly string[],
    reached: ReadonlyMap<string, number>,
    gaps: ReadonlyMap<string, number>,
  ): Promise<void> {
    for (const [bootId, through] of reached) this.#known.set(bootId, through);
    const { feed, gaps: gapsKey } = this.#keys;
    const change = this.#redis
      .multi()
      .xack(feed, GROUP, ...ids)
      .xdel(feed, ...ids);
    for (const [bootId, position] of gaps)
      change.hset(gapsKey, bootId, gapReport(position, randomBytes(6).toString('hex')));
    // The books have committed: where Redis is away now, the messages come again and count nothing.
    await change.exec().catch((error: Error) => this.#log.debug('entries not acknowledged', { reason: error.message }));
  }

  async isCaughtUp(): Promise<boolean> {
    this.#goals ??= await this.#findGoals().catch(() => undefined);
    if (this.#goals === undefined) return false;
    const positions = await this.#positions([...this.#goals.keys()]);
    return [...this.#goals].every(([bootId, last]) => (positions.get(bootId) ?? -1) >= last);
  }

  /** Front ends that live tell again and again how much they hold; the journals of those that do not cannot be waited for. */
  async #findGoals(): Promise<ReadonlyMap<string, number> | undefined> {
    const texts = await this.#redis.hgetall(this.#keys.lasts);
    this.#reports ??= { atMillis: this.#now(), texts };
    const { atMillis, texts: earlier } = this.#reports;
    if (!this.#isReported(atMillis)) return undefined;
    const living = Object.entries(texts).filter(([bootId, text]) => earlier[bootId] !== text);
    return new Map(living.map(([bootId, text]) => [bootId, Number.parseInt(text, 10)]));
  }

  async mayTell(bootId: string): Promise<boolean> {
    const text = await this.#redis.hget(this.#keys.lasts, bootId).catch(() => undefined);
    if (text === undefined) return true;
    if (text === null) return !this.#isReported(0);
    return ((await this.#positions([bootId])).get(bootId) ?? -1) < Number.parseInt(text, 10);
  }

  /** Whether enough time has gone by, connected, for every front end to report. */
  #isReported(sinceMillis: number): boolean {
    const now = this.#now();
    return this.#readySince !== undefined && now - Math.max(this.#readySince, sinceMillis) >= this.#reportMillis;
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }
}

type StreamRow = [Buffer, Buffer[] | null] | null;

function readMessage(row: StreamRow): Message[] {
  if (row === null) return [];
  const [id, pairs] = row;
  if (pairs === null) return [];
  const fields = new Map<string, Buffer>();
  for (let i = 0; i + 1 < pairs.length; i += 2) fields.set((pairs[i] as Buffer).toString(), pairs[i + 1] as Buffer);
  const [bootId, after, packed] = [fields.get('boot')?.toString(), fields.get('after'), fields.get('entries')];
  if (bootId === undefined || after === undefined || packed === undefined) return [];
  return [{ id: id.toString(), bootId, after: Number(after.toString()), packed }];
}

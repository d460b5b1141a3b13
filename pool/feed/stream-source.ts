/**
 * The accountant's end of the share stream: a Redis Stream read through a consumer group. Messages that an earlier
 * accountant read but did not commit are claimed first. A message is acknowledged and deleted only after the books
 * committed it; one that does not directly follow the books' position (Redis lost messages, another accountant holds
 * them, or the database went back), or that was sent for an earlier term, is dropped and reported as a gap with that
 * position, and its front end sends again from there. A message that no front end of this pool sealed is removed
 * unread.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { fromUtf8, utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { JournalEntry } from '../journal/journal.ts';
import type { RedisKeys } from '../shared/redis.ts';
import type { Seal } from '../shared/seal.ts';
import type { UnreadValues } from '../shared/unread-values.ts';
import { type EntrySource, NOTHING, type Positions, type Reign, type TakenEntries } from './entry-source.ts';
import { gapReport, type MessageHead, messageName, unpackEntries } from './stream-message.ts';

const GROUP = 'accountant';
const CLAIM_COUNT = 100;
/** Maximum number of messages per read, which bounds the size of a batch. */
const MAX_MESSAGES = 200;
/** Within this time after a (re)connection every running front end has reported the newest sequence of its journals. */
const REPORT_MILLIS = 3_000;
/** Messages that another reader took and never finished are claimed again after this long. */
const RECLAIM_MILLIS = 15_000;

export type StreamSourceOptions = {
  readonly keys: RedisKeys;
  /** Name of this instance in the group. */
  readonly consumer: string;
  /** Initial estimate of entries per message; a read requests enough messages for a batch. */
  readonly messageEntries?: number;
  readonly reportMillis?: number;
};

export type StreamSourceDependencies = {
  readonly redis: Redis;
  readonly positions: Positions;
  readonly reign: Reign;
  readonly seal: Seal;
  readonly unread: UnreadValues;
  readonly log: Logger;
  readonly now: SteadyClock;
};

/** `entries` are null where the message is not authentic or damaged. */
type Message = {
  readonly id: string;
  readonly bootId: string;
  readonly after: number;
  readonly reign: string;
  readonly entries: readonly JournalEntry[] | null;
};

export class StreamSource implements EntrySource {
  readonly #keys: RedisKeys;
  readonly #consumer: string;
  readonly #redis: Redis;
  readonly #positions: Positions;
  readonly #askReign: Reign;
  /** The term that `begin` was called in. */
  #reign = '';
  readonly #seal: Seal;
  readonly #unread: UnreadValues;
  readonly #log: Logger;
  readonly #now: SteadyClock;
  readonly #known = new Map<string, number>();
  #claimFrom: string | undefined = '0-0';
  #claimIdleMillis = 0;
  #lastClaim = 0;
  /** Why the last read failed. */
  #unreadable: string | undefined;
  #usualEntries: number;
  readonly #reportMillis: number;
  /** When the connection was established; undefined while there is none. */
  #readySince: number | undefined;
  /** Reports of front ends about their journals since `begin`, and the journals that the books have caught up with. */
  #reports: { readonly atMillis: number; readonly texts: Readonly<Record<string, string>> } | undefined;
  #goals: ReadonlyMap<string, number> | undefined;

  /** `redis` must be a separate connection: reads on it block. */
  constructor(options: StreamSourceOptions, dependencies: StreamSourceDependencies) {
    this.#keys = options.keys;
    this.#consumer = options.consumer;
    this.#usualEntries = options.messageEntries ?? 1_000;
    this.#redis = dependencies.redis;
    this.#positions = dependencies.positions;
    this.#askReign = dependencies.reign;
    this.#seal = dependencies.seal;
    this.#unread = dependencies.unread;
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
    this.#reign = await this.#askReign();
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
      this.#unreadable = undefined;
      return messages.length === 0 ? NOTHING : await this.#join(messages);
    } catch (error) {
      if (/NOGROUP/.test((error as Error).message)) await this.#createGroup().catch(() => undefined);
      else {
        this.#noteUnreadable((error as Error).message);
        // Messages that were read but not handed out stay pending in the group: claim them again.
        this.#claimFrom = '0-0';
        this.#claimIdleMillis = 0;
        await sleep(Math.min(waitMillis, 500));
      }
      return NOTHING;
    }
  }

  /** An unavailable Redis is logged elsewhere; one that is available and cannot be read is a fault, logged once for each reason. */
  #noteUnreadable(reason: string): void {
    const isNews = this.#redis.status === 'ready' && reason !== this.#unreadable;
    this.#log[isNews ? 'warn' : 'debug']('the share stream cannot be read', { reason });
    this.#unreadable = reason;
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
      const messages = rows.flatMap((row) => this.#message(row));
      if (messages.length > 0) return messages;
    }
    // Uses the client's own method: the answer to a raw call depends on the protocol version, a list in one and a map
    // in the other.
    const answer: [Buffer, StreamRow[]][] | null = await this.#redis.xreadgroupBuffer(
      ...(['GROUP', GROUP, this.#consumer, 'COUNT', count, 'BLOCK', waitMillis] as const),
      ...(['STREAMS', this.#keys.feed, '>'] as const),
    );
    return answer === null ? [] : answer.flatMap(([, rows]) => rows.flatMap((row) => this.#message(row)));
  }

  async #join(messages: readonly Message[]): Promise<TakenEntries> {
    const readable = messages.filter((message) => message.entries !== null);
    const unknown = [...new Set(readable.map((message) => message.bootId))].filter((boot) => !this.#known.has(boot));
    if (unknown.length > 0)
      for (const [bootId, through] of await this.#positions(unknown)) this.#known.set(bootId, through);
    const reached = new Map<string, number>();
    const gaps = new Map<string, number>();
    const entries: JournalEntry[] = [];
    for (const message of readable) {
      const position = reached.get(message.bootId) ?? this.#known.get(message.bootId) ?? -1;
      const sent = message.entries ?? [];
      if (message.after > position || message.reign !== this.#reign) {
        if ((sent.at(-1)?.sequence ?? -1) > position) gaps.set(message.bootId, position);
        continue;
      }
      // Including duplicates: the books decide which of them count, and may be further back than this process
      // remembers.
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

  #message(row: StreamRow): Message[] {
    if (row === null) return [];
    const [id, pairs] = row;
    const fields = new Map<string, Buffer>();
    for (let i = 0; pairs !== null && i + 1 < pairs.length; i += 2)
      fields.set((pairs[i] as Buffer).toString(), pairs[i + 1] as Buffer);
    const bootId = fields.get('boot')?.toString() ?? '';
    const after = Number(fields.get('after')?.toString() ?? Number.NaN);
    const slice = fields.get('slice')?.toString();
    const reign = fields.get('reign')?.toString() ?? '';
    const head = { bootId, after, slice: slice === undefined ? undefined : Number(slice), reign };
    return [{ id: id.toString(), bootId, after, reign, entries: this.#unpack(head, fields.get('entries')) }];
  }

  /** Null, and counted, for a message that no front end of this pool sealed. A damaged message is sent again by its front end. */
  #unpack(head: MessageHead, sealed: Buffer = Buffer.alloc(0)): readonly JournalEntry[] | null {
    const opened = this.#seal.open('entries', messageName(head), sealed);
    if (opened.kind !== 'payload') {
      this.#unread.note('entries', opened);
      return null;
    }
    try {
      return unpackEntries(head, opened.payload);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#unread.note('entries', { kind: 'damaged' });
      return null;
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
    for (const [bootId, position] of gaps) {
      const report = utf8(gapReport(position, randomBytes(6).toString('hex')));
      change.hset(gapsKey, bootId, this.#seal.seal('gap', bootId, report));
    }
    // The books have committed: if Redis is unavailable now, the messages are delivered again and ignored.
    await change.exec().catch((error: Error) => this.#log.debug('entries not acknowledged', { reason: error.message }));
  }

  async isCaughtUp(): Promise<boolean> {
    this.#goals ??= await this.#findGoals().catch(() => undefined);
    if (this.#goals === undefined) return false;
    const positions = await this.#positions([...this.#goals.keys()]);
    return [...this.#goals].every(([bootId, last]) => (positions.get(bootId) ?? -1) >= last);
  }

  /** Running front ends report repeatedly how much they hold; the journals of the others are not waited for. */
  async #findGoals(): Promise<ReadonlyMap<string, number> | undefined> {
    const texts: Record<string, string> = {};
    for (const [bootId, sealed] of Object.entries(await this.#redis.hgetallBuffer(this.#keys.lasts))) {
      const text = this.#last(bootId, sealed);
      if (text !== undefined) texts[bootId] = text;
    }
    this.#reports ??= { atMillis: this.#now(), texts };
    const { atMillis, texts: earlier } = this.#reports;
    if (!this.#isReported(atMillis)) return undefined;
    const living = Object.entries(texts).filter(([bootId, text]) => earlier[bootId] !== text);
    return new Map(living.map(([bootId, text]) => [bootId, Number.parseInt(text, 10)]));
  }

  async mayTell(bootId: string): Promise<boolean> {
    const sealed = await this.#redis.hgetBuffer(this.#keys.lasts, bootId).catch(() => undefined);
    if (sealed === undefined) return true;
    const text = sealed === null ? undefined : this.#last(bootId, sealed);
    if (text === undefined) return !this.#isReported(0);
    return ((await this.#positions([bootId])).get(bootId) ?? -1) < Number.parseInt(text, 10);
  }

  /** The report of a front end about its journal. */
  #last(bootId: string, sealed: Buffer): string | undefined {
    const opened = this.#seal.open('last', bootId, sealed);
    if (opened.kind === 'payload') return fromUtf8(opened.payload);
    this.#unread.note('last', opened);
    return undefined;
  }

  /** Whether the connection has lasted long enough for every front end to report. */
  #isReported(sinceMillis: number): boolean {
    const now = this.#now();
    return this.#readySince !== undefined && now - Math.max(this.#readySince, sinceMillis) >= this.#reportMillis;
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }
}

type StreamRow = [Buffer, Buffer[] | null] | null;

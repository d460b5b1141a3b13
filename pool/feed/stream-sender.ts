/**
 * A front end's end of the share stream: sends what the outbox holds, in order. It reads the books' position from the
 * database, as the accountant does; Redis is only the transport. If Redis lost everything, or the database went back,
 * entries are sent again from the journal. At most `maxAhead` entries of a boot are in flight: while the database is
 * unavailable the journal on disk grows, not Redis.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { fromUtf8, utf8 } from '../../protocol/bytes.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { JournalEntry } from '../journal/journal.ts';
import type { RedisKeys } from '../shared/redis.ts';
import type { Seal } from '../shared/seal.ts';
import type { UnreadValues } from '../shared/unread-values.ts';
import type { Positions, Reign } from './entry-source.ts';
import type { Outbox, OutboxLine } from './outbox.ts';
import { messageName, packEntries, readGap } from './stream-message.ts';

export type StreamSenderOptions = {
  readonly keys: RedisKeys;
  readonly batchEntries?: number;
  readonly maxAhead?: number;
  /** Time between two checks for gap reports of the accountant. */
  readonly pollMillis?: number;
  /** Time between two reads of the books' position. */
  readonly positionMillis?: number;
};

export const STREAM_SENDER_DEFAULTS = {
  batchEntries: 1_000,
  maxAhead: 100_000,
  pollMillis: 100,
  positionMillis: 1_000,
} as const;

const LINGER_MILLIS = 20;
/**
 * Maximum number of checks between two attempts to resend refused entries: an accountant of another release refuses
 * everything until it is replaced.
 */
const AGAIN_LOOKS = 60;

/** The newest message of a boot. As long as it is in the stream, the accountant has not processed it. */
type Sent = { readonly id: string; readonly through: number };

export type StreamSenderDependencies = {
  readonly redis: Redis;
  readonly outbox: Outbox;
  readonly positions: Positions;
  readonly reign: Reign;
  readonly seal: Seal;
  readonly unread: UnreadValues;
  readonly log: Logger;
};

export class StreamSender {
  readonly #options: Required<StreamSenderOptions>;
  readonly #redis: Redis;
  readonly #outbox: Outbox;
  readonly #positions: Positions;
  readonly #askReign: Reign;
  /** The current term; undefined until it was read from the database. */
  #reign: string | undefined;
  readonly #seal: Seal;
  readonly #unread: UnreadValues;
  readonly #log: Logger;
  readonly #gaps = new Map<string, string>();
  readonly #sent = new Map<string, Sent>();
  readonly #again = new Map<string, { readonly notBefore: number; readonly wait: number }>();
  #reported: ReadonlySet<string> = new Set();
  #reports = 0;
  readonly #stop = new AbortController();
  readonly #loops: Promise<void>;

  constructor(options: StreamSenderOptions, dependencies: StreamSenderDependencies) {
    this.#options = { ...STREAM_SENDER_DEFAULTS, ...options };
    this.#redis = dependencies.redis;
    this.#outbox = dependencies.outbox;
    this.#positions = dependencies.positions;
    this.#askReign = dependencies.reign;
    this.#seal = dependencies.seal;
    this.#unread = dependencies.unread;
    this.#log = dependencies.log;
    // A server that lost its data, or was replaced, does not have the sent entries.
    this.#redis.on('ready', () => this.#outbox.rewind());
    const { pollMillis, positionMillis } = this.#options;
    this.#loops = Promise.all([
      this.#sendLoop(),
      this.#every(pollMillis, () => this.#obeyGaps()),
      this.#every(positionMillis, () => this.#lookAtBooks()),
      // Beside it: while the database does not answer, silence would mean that the journal has nothing more.
      this.#every(positionMillis, () => this.#reportLasts()),
    ]).then(() => undefined);
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  async #pause(millis: number): Promise<void> {
    await sleep(millis, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  async #every(millis: number, work: () => Promise<void>): Promise<void> {
    for (; !this.#isStopped; await this.#pause(millis))
      await work().catch((error: Error) => this.#log.debug('the feed could not be checked', { reason: error.message }));
  }

  async #sendLoop(): Promise<void> {
    while (!this.#isStopped)
      try {
        await this.#send();
      } catch (error) {
        this.#log.debug('entries not sent, trying again', { reason: (error as Error).message });
        this.#outbox.rewind();
        await this.#pause(500);
      }
  }

  async #send(): Promise<void> {
    const { keys, batchEntries, maxAhead, pollMillis } = this.#options;
    this.#reign ??= await this.#askReign();
    const reign = this.#reign;
    const batch = await this.#outbox.next(batchEntries, maxAhead);
    if (batch === undefined) return this.#outbox.wait(pollMillis);
    const { bootId, after, slice, entries } = batch;
    const sealed = this.#seal.seal('entries', messageName({ ...batch, reign }), packEntries(entries));
    const place = ['boot', bootId, 'after', String(after), ...(slice === undefined ? [] : ['slice', String(slice)])];
    const id = await this.#redis.xadd(keys.feed, '*', ...place, 'reign', reign, 'entries', sealed);
    if (id !== null) this.#sent.set(bootId, { id, through: (entries.at(-1) as JournalEntry).sequence });
    // A short wait batches entries: few large messages cost the accountant less than many small ones.
    if (entries.length * 4 < batchEntries) await this.#pause(LINGER_MILLIS);
  }

  /** The accountant is missing entries of a boot: they are sent again from the books' position. */
  async #obeyGaps(): Promise<void> {
    const boots = underWay(this.#outbox.lines()).map((line) => line.bootId);
    if (boots.length === 0) return;
    const gaps = await this.#redis.hmgetBuffer(this.#options.keys.gaps, ...boots);
    for (const [i, bootId] of boots.entries()) {
      const sealed = gaps[i] ?? undefined;
      const gap = sealed?.toString('base64');
      if (sealed === undefined || gap === undefined || this.#gaps.get(bootId) === gap) continue;
      this.#gaps.set(bootId, gap);
      const opened = this.#seal.open('gap', bootId, sealed);
      if (opened.kind !== 'payload') {
        this.#unread.note('gap', opened);
        continue;
      }
      const told = readGap(fromUtf8(opened.payload));
      // Perhaps they were refused because another term has begun.
      this.#reign = await this.#askReign().catch(() => this.#reign);
      // The report may be an old one from a restored Redis: the position in the database takes precedence, if it
      // answers.
      const position = await this.#positions([bootId]).then(
        (positions) => positions.get(bootId),
        () => told,
      );
      this.#log.info('the accountant is missing entries, sending again', { bootId, after: position });
      if (position !== undefined) this.#outbox.standAt(bootId, position);
      this.#outbox.rewind(bootId);
    }
  }

  async #lookAtBooks(): Promise<void> {
    // The order matters: a message leaves Redis only after its entries are in the database.
    const gone = await this.#goneFromStream().catch((): [string, Sent][] => []);
    this.#reign = await this.#askReign();
    const positions = await this.#positions(this.#outbox.lines().map((line) => line.bootId));
    for (const [bootId, through] of positions) this.#outbox.standAt(bootId, through);
    for (const [bootId, { through }] of this.#sent)
      if ((positions.get(bootId) ?? through) >= through) this.#again.delete(bootId);
    for (const [bootId, sent] of gone)
      if (sent.through > (positions.get(bootId) ?? sent.through)) this.#sendAgain(bootId);
  }

  async #goneFromStream(): Promise<[string, Sent][]> {
    const gone: [string, Sent][] = [];
    for (const [bootId, sent] of [...this.#sent])
      if ((await this.#redis.xrange(this.#options.keys.feed, sent.id, sent.id)).length === 0) gone.push([bootId, sent]);
    return gone;
  }

  /**
   * The message is no longer in the stream, but its entries are not in the books: it was refused, or removed otherwise.
   */
  #sendAgain(bootId: string): void {
    const now = performance.now();
    const { positionMillis } = this.#options;
    const { notBefore, wait } = this.#again.get(bootId) ?? { notBefore: 0, wait: positionMillis };
    if (now < notBefore) return;
    this.#again.set(bootId, { notBefore: now + wait, wait: Math.min(2 * wait, AGAIN_LOOKS * positionMillis) });
    this.#log.info('entries left the stream without being taken, sending again', { bootId });
    this.#outbox.rewind(bootId);
  }

  /** Sends the accountant the newest sequence, so that it knows whether a journal has more entries. */
  async #reportLasts(): Promise<void> {
    const { keys } = this.#options;
    // The counter shows that the sender is alive.
    const count = ++this.#reports;
    const lasts = new Map(
      this.#outbox
        .lines()
        .map(({ bootId, last }) => [bootId, this.#seal.seal('last', bootId, utf8(`${last} ${count}`))]),
    );
    const gone = [...this.#reported].filter((bootId) => !lasts.has(bootId));
    await this.#redis.hset(keys.lasts, lasts);
    if (gone.length > 0)
      await this.#redis
        .multi()
        .hdel(keys.lasts, ...gone)
        .hdel(keys.gaps, ...gone)
        .exec();
    for (const bootId of gone) for (const map of [this.#gaps, this.#sent, this.#again]) map.delete(bootId);
    this.#reported = new Set(lasts.keys());
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#outbox.rewind();
    await this.#loops;
  }
}

/** Boots with entries sent and not taken. */
const underWay = (lines: readonly OutboxLine[]) => lines.filter((line) => line.sent > line.taken);

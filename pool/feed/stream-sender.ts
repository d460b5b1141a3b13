/**
 * A front end's end of the share stream: sends what the outbox holds, in order, and learns from the accountant how far the
 * books came. At most `maxAhead` entries of a boot are under way, so a database that is away fills the journal on disk and
 * not Redis. After a lost connection, and when the accountant reports a gap, everything not taken is sent again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from '../../runtime/log.ts';
import type { RedisKeys } from '../shared/redis.ts';
import type { Outbox } from './outbox.ts';
import { packEntries } from './stream-message.ts';

export type StreamSenderOptions = {
  readonly keys: RedisKeys;
  readonly batchEntries?: number;
  readonly maxAhead?: number;
  readonly pollMillis?: number;
};

export const STREAM_SENDER_DEFAULTS = { batchEntries: 1_000, maxAhead: 100_000, pollMillis: 100 } as const;

const LINGER_MILLIS = 20;

export class StreamSender {
  readonly #options: Required<StreamSenderOptions>;
  readonly #redis: Redis;
  readonly #outbox: Outbox;
  readonly #log: Logger;
  readonly #gaps = new Map<string, string>();
  #stopped = false;
  readonly #loops: Promise<void>;

  constructor(options: StreamSenderOptions, dependencies: { redis: Redis; outbox: Outbox; log: Logger }) {
    this.#options = { ...STREAM_SENDER_DEFAULTS, ...options };
    this.#redis = dependencies.redis;
    this.#outbox = dependencies.outbox;
    this.#log = dependencies.log;
    // A server that lost its memory, or another one in its place, knows nothing of what was sent.
    this.#redis.on('ready', () => this.#outbox.rewind());
    this.#loops = Promise.all([this.#sendLoop(), this.#pollLoop()]).then(() => undefined);
  }

  async #sendLoop(): Promise<void> {
    const { keys, batchEntries, maxAhead } = this.#options;
    while (!this.#stopped) {
      const batch = await this.#outbox.next(batchEntries, maxAhead);
      if (batch === undefined) {
        await this.#outbox.wait(this.#options.pollMillis);
        continue;
      }
      try {
        const packed = Buffer.from(packEntries(batch.entries));
        await this.#redis.xadd(keys.feed, '*', 'boot', batch.bootId, 'after', String(batch.after), 'entries', packed);
        // A moment's wait gathers what is trickling in: few large messages cost the accountant less than many small ones.
        if (batch.entries.length * 4 < batchEntries) await sleep(LINGER_MILLIS);
      } catch (error) {
        this.#log.debug('entries not sent, trying again', { reason: (error as Error).message });
        this.#outbox.rewind(batch.bootId);
        if (!this.#stopped) await sleep(500);
      }
    }
  }

  async #pollLoop(): Promise<void> {
    while (!this.#stopped) {
      await sleep(this.#options.pollMillis);
      const boots = this.#outbox.underWay().map((line) => line.bootId);
      if (boots.length > 0) await this.#poll(boots).catch(() => undefined);
    }
  }

  async #poll(boots: readonly string[]): Promise<void> {
    const { keys } = this.#options;
    const through = await this.#redis.hmget(keys.through, ...boots);
    const gaps = await this.#redis.hmget(keys.gaps, ...boots);
    for (const [i, bootId] of boots.entries()) {
      const position = through[i];
      if (typeof position === 'string') await this.#outbox.taken(bootId, Number(position));
      if (!this.#outbox.has(bootId)) {
        // The journal of an earlier boot is in the books as a whole: nobody will ask for it again.
        await this.#redis.multi().hdel(keys.through, bootId).hdel(keys.gaps, bootId).exec();
        continue;
      }
      const gap = gaps[i];
      if (typeof gap !== 'string' || this.#gaps.get(bootId) === gap) continue;
      this.#gaps.set(bootId, gap);
      this.#log.info('the accountant misses entries, sending again', { bootId });
      this.#outbox.rewind(bootId);
    }
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.#outbox.rewind();
    await this.#loops;
  }
}

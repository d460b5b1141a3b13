/**
 * Sends miners their news (docs/notices.md, webhooks of miners): events are put into a queue for each miner that has a
 * webhook, and each queue is sent with payments first, then blocks, then workers. Queues are short, each miner has one request at a time, and after a failure
 * it waits longer each time, so that a dead or slow URL does not delay the others.
 */
import type { Channel } from '../../protocol/notices.ts';
import type { SteadyClock, WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql } from '../database/connect.ts';
import { Delivery, retryMillis } from './delivery.ts';
import { HostLimits } from './host-limits.ts';
import { newsOrder } from './news-groups.ts';
import { feedNews, NEWS_KEPT_MILLIS } from './news-queue.ts';
import type { NewsData } from './news-text.ts';
import { FIRST_NEWS, noticeRequest } from './notice-request.ts';
import { postWebhook, type WebhookReach, webhookHost } from './webhook-target.ts';

export type MinerWebhookOptions = {
  readonly reach: WebhookReach;
  readonly pollMillis?: number;
  readonly timeoutMillis?: number;
  /** Minimum time between two requests of one miner. */
  readonly restMillis?: number;
  /** Minimum time between two requests to one host by webhooks that have accepted nothing yet. */
  readonly hostRestMillis?: number;
};

export const MINER_WEBHOOK_DEFAULTS = {
  pollMillis: 1_000,
  timeoutMillis: 10_000,
  restMillis: 1_000,
  hostRestMillis: 5_000,
} as const;

export const MOST_AT_ONCE = 32;
/** Due webhooks handled in one round; those whose host is at its limit wait. */
const MOST_LOOKED_AT = 256;
/**
 * Attempts to send the first news: after these the webhook is removed, because the receiver apparently did not ask for
 * it.
 */
export const FIRST_TRIES = 5;
const WAITS = 'webhooks of miners wait for the database';

type Due = {
  account_id: number;
  channel: Channel;
  address: string;
  url: string;
  secret: string;
  attempts: number;
  dropped: number;
  id: bigint;
  event_id: bigint;
  kind: string;
  data: NewsData;
  millis: string;
};

export class MinerWebhooks {
  readonly #options: Required<MinerWebhookOptions>;
  readonly #sql: Sql;
  readonly #log: Logger;
  readonly #now: SteadyClock;
  readonly #wall: WallClock;
  /** By receiver: `ACCOUNT CHANNEL`. */
  readonly #busy = new Map<string, Promise<void>>();
  readonly #hosts: HostLimits;
  readonly #delivery: Delivery;

  constructor(
    options: MinerWebhookOptions,
    dependencies: { sql: Sql; log: Logger; now: SteadyClock; wall: WallClock },
  ) {
    this.#options = { ...MINER_WEBHOOK_DEFAULTS, ...options };
    this.#sql = dependencies.sql;
    this.#log = dependencies.log;
    this.#now = dependencies.now;
    this.#wall = dependencies.wall;
    this.#hosts = new HostLimits({ restMillis: this.#options.hostRestMillis });
    this.#delivery = new Delivery({ pollMillis: this.#options.pollMillis, log: this.#log, waits: WAITS }, async () => {
      while ((await feedNews(this.#sql, this.#now())) && !this.#delivery.signal.aborted);
      await this.#sendDue();
      return false;
    });
  }

  async #sendDue(): Promise<void> {
    const room = MOST_AT_ONCE - this.#busy.size;
    if (room <= 0) return;
    // From the news: most receivers have none, and to look for that of each takes the longer the more there are.
    const due = await this.#sql<
      Due[]
    >`select h.account_id, h.channel, a.address, h.url, h.secret, h.attempts, h.dropped, n.id, n.event_id, n.kind,
        n.data, (extract(epoch from n.at) * 1000)::bigint::text as millis
      from miner_webhooks h join accounts a on a.id = h.account_id join lateral (
        select * from miner_news n where n.account_id = h.account_id and n.channel = h.channel order by ${newsOrder(this.#sql)} limit 1) n on true
      where (h.account_id, h.channel) in (select account_id, channel from miner_news)
        and h.url is not null and h.next_at <= now() and h.account_id || ' ' || h.channel <> all(${[...this.#busy.keys()]}::text[])
      order by n.kind = ${FIRST_NEWS} and h.attempts > 0, n.kind = ${FIRST_NEWS}, a.paid + a.balance desc, h.next_at
      limit ${MOST_LOOKED_AT}`;
    const waiting: string[] = [];
    for (const one of due) {
      const receiver = `${one.account_id} ${one.channel}`;
      if (this.#busy.size >= MOST_AT_ONCE) break;
      const end = this.#hosts.begin(webhookHost(one.url), one.kind === FIRST_NEWS, this.#now());
      if (end === undefined) {
        waiting.push(receiver);
        continue;
      }
      const sending = this.#send(one)
        .catch((error: Error) => this.#log.debug(WAITS, { reason: error.message }))
        .finally(() => {
          end();
          this.#busy.delete(receiver);
        });
      this.#busy.set(receiver, sending);
    }
    // Moved to the end of the queue, so that the others are tried too, where not all were looked at.
    if (waiting.length > 0 && due.length === MOST_LOOKED_AT)
      await this.#sql`update miner_webhooks set next_at = now() + interval '1 second'
        where account_id || ' ' || channel = any(${waiting}::text[]) and next_at <= now()`;
  }

  async #send(due: Due): Promise<void> {
    const { url, channel, secret, attempts, dropped, account_id: account } = due;
    const { reach, timeoutMillis, restMillis } = this.#options;
    const oldest = new Date(this.#now() - NEWS_KEPT_MILLIS);
    if (Number(due.millis) <= oldest.getTime()) return this.#dropOld(due, oldest);
    const { kind, address, data } = due;
    const notice = { id: Number(due.event_id), kind, atMillis: Number(due.millis), address, data, dropped };
    const failure = await postWebhook(url, reach, {
      ...noticeRequest(channel, notice, { secret, wallMillis: this.#wall() }),
      timeoutMillis,
      signal: this.#delivery.signal,
    });
    if (this.#delivery.signal.aborted && failure !== undefined) return;
    if (failure !== undefined && due.kind === FIRST_NEWS && attempts + 1 >= FIRST_TRIES)
      return this.#takeAway(due, failure);
    const waitMillis = failure === undefined ? restMillis : retryMillis(attempts);
    await this.#sql.begin(async (transaction) => {
      // Locks the webhook first, as the code that changes it does: another order could deadlock.
      await transaction`update miner_webhooks set last_error = ${failure ?? null},
          last_success = case when ${failure === undefined} then now() else last_success end,
          last_failure = case when ${failure === undefined} then last_failure else now() end,
          attempts = ${failure === undefined ? 0 : attempts + 1},
          dropped = dropped - ${failure === undefined ? dropped : 0},
          next_at = now() + make_interval(secs => ${waitMillis / 1000})
        where account_id = ${account} and channel = ${channel} and secret = ${secret}`;
      if (failure === undefined) await transaction`delete from miner_news where id = ${due.id}`;
    });
    if (failure !== undefined)
      this.#log.debug('a webhook of a miner was not accepted', { address: due.address, reason: failure });
  }

  /** News that became too old while waiting, also while webhooks were switched off, are not sent. */
  async #dropOld(due: Due, oldest: Date): Promise<void> {
    if (due.kind === FIRST_NEWS) return this.#takeAway(due, 'not accepted in time');
    const { account_id: account, channel } = due;
    await this.#sql.begin(async (transaction) => {
      const hook = await transaction`select 1 from miner_webhooks
        where account_id = ${account} and channel = ${channel} for update`;
      if (hook.length === 0) return;
      const gone = await transaction`delete from miner_news
        where account_id = ${account} and channel = ${channel} and at <= ${oldest} returning 1`;
      await transaction`update miner_webhooks set dropped = dropped + ${gone.length}
        where account_id = ${account} and channel = ${channel}`;
    });
  }

  /** The miner can set the webhook again. */
  async #takeAway({ account_id: account, channel, secret, address }: Due, reason: string): Promise<void> {
    await this.#sql.begin(async (transaction) => {
      const taken = await transaction`update miner_webhooks set url = null, last_error = ${reason}, last_failure = now()
        where account_id = ${account} and channel = ${channel} and secret = ${secret} returning 1`;
      if (taken.length > 0)
        await transaction`delete from miner_news where account_id = ${account} and channel = ${channel}`;
    });
    this.#log.debug('a webhook of a miner is removed: its first news was never accepted', { address, reason });
  }

  async close(): Promise<void> {
    await this.#delivery.close();
    await Promise.all(this.#busy.values());
  }
}

/**
 * Sends miners their news (docs/pool.md, webhooks of miners): events are put into a queue for each miner that has a
 * webhook, and each queue is sent with payments first, then blocks, then workers. Queues are short, each miner has one request at a time, and after a failure
 * it waits longer each time, so that a dead or slow URL does not delay the others.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../runtime/log.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { HostLimits } from './host-limits.ts';
import type { MinerNews } from './miner-news.ts';
import { feedNews } from './news-feed.ts';
import { newsGroup, newsOrder } from './news-groups.ts';
import { placeOf, type WaitingNews } from './news-queue.ts';
import { retryMillis, SIGNATURE_HEADER, signWebhook } from './webhook-sender.ts';
import { postWebhook, type WebhookReach, webhookHost } from './webhook-target.ts';

export type MinerWebhookOptions = {
  readonly reach: WebhookReach;
  readonly pollMillis?: number;
  readonly timeoutMillis?: number;
  /** Minimum time between two requests of one miner. */
  readonly restMillis?: number;
  /** Minimum time between two requests to one host by webhooks that have accepted nothing yet. */
  readonly hostRestMillis?: number;
  /** News older than this are dropped. */
  readonly giveUpMillis?: number;
};

export const MINER_WEBHOOK_DEFAULTS = {
  pollMillis: 1_000,
  timeoutMillis: 10_000,
  restMillis: 1_000,
  hostRestMillis: 5_000,
  giveUpMillis: 86_400_000,
} as const;

const MOST_AT_ONCE = 32;
/** Due webhooks handled in one round; those whose host is at its limit wait. */
const MOST_LOOKED_AT = 256;
/** The first news sent to a receiver, so that the miner sees that it works. */
export const FIRST_NEWS = 'webhook_set';
/**
 * Attempts to send the first news: after these the webhook is removed, because the receiver apparently did not ask for
 * it.
 */
export const FIRST_TRIES = 5;
const THROUGH = 'miner_news_through';

type Due = {
  account_id: number;
  address: string;
  url: string;
  secret: string;
  attempts: number;
  dropped: number;
  id: bigint;
  event_id: bigint;
  kind: string;
  data: unknown;
  millis: string;
};

/** Queues one news item for its miner, if it has a webhook and chose such news. */
export async function queueNews(
  transaction: Transaction,
  { eventId, address, kind, atMillis, data }: MinerNews,
): Promise<void> {
  const group = newsGroup(kind) ?? null;
  const [hook] = await transaction<{ id: number }[]>`select h.account_id as id
    from miner_webhooks h join accounts a on a.id = h.account_id where a.address = ${address} and h.url is not null
      and (${group}::text is null or ${group} = any(h.events))`;
  if (hook === undefined) return;
  const waiting = await transaction<WaitingNews[]>`select id, kind, data from miner_news
    where account_id = ${hook.id}`;
  const place = placeOf({ kind, data }, waiting);
  if (place.kind === 'drop' || place.kind === 'displace')
    await transaction`update miner_webhooks set dropped = dropped + 1 where account_id = ${hook.id}`;
  if ('instead' in place) await transaction`delete from miner_news where id = ${place.instead}`;
  if (place.kind !== 'drop')
    await transaction`insert into miner_news (account_id, event_id, at, kind, data)
      values (${hook.id}, ${eventId}, ${new Date(atMillis)}, ${kind}, ${transaction.json(data as never)})`;
}

export class MinerWebhooks {
  readonly #options: Required<MinerWebhookOptions>;
  readonly #sql: Sql;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #wall: () => number;
  readonly #stop = new AbortController();
  readonly #busy = new Map<number, Promise<void>>();
  readonly #hosts: HostLimits;
  readonly #loop: Promise<void>;

  /** Only the accountant's instance sends. */
  constructor(
    options: MinerWebhookOptions,
    dependencies: { sql: Sql; log: Logger; now: () => number; wall?: () => number },
  ) {
    this.#options = { ...MINER_WEBHOOK_DEFAULTS, ...options };
    this.#sql = dependencies.sql;
    this.#log = dependencies.log;
    this.#now = dependencies.now;
    this.#wall = dependencies.wall ?? dependencies.now;
    this.#hosts = new HostLimits({ restMillis: this.#options.hostRestMillis });
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        while ((await feedNews(this.#sql, THROUGH, queueNews)) && !this.#stop.signal.aborted);
        await this.#sendDue();
      } catch (error) {
        this.#log.debug('webhooks of miners wait for the database', { reason: (error as Error).message });
      }
      await sleep(this.#options.pollMillis, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
    await Promise.all(this.#busy.values());
  }

  async #sendDue(): Promise<void> {
    const room = MOST_AT_ONCE - this.#busy.size;
    if (room <= 0) return;
    const due = await this.#sql<
      Due[]
    >`select h.account_id, a.address, h.url, h.secret, h.attempts, h.dropped, n.id, n.event_id, n.kind,
        n.data, (extract(epoch from n.at) * 1000)::bigint::text as millis
      from miner_webhooks h join accounts a on a.id = h.account_id join lateral (
        select * from miner_news n where n.account_id = h.account_id order by ${newsOrder(this.#sql)} limit 1) n on true
      where h.url is not null and h.next_at <= now() and h.account_id <> all(${[...this.#busy.keys()]}::int[])
      order by h.next_at limit ${MOST_LOOKED_AT}`;
    const waiting: number[] = [];
    for (const one of due) {
      if (this.#busy.size >= MOST_AT_ONCE) break;
      const end = this.#hosts.begin(webhookHost(one.url), one.kind === FIRST_NEWS, this.#now());
      if (end === undefined) {
        waiting.push(one.account_id);
        continue;
      }
      const sending = this.#send(one)
        .catch((error: Error) => this.#log.debug('webhooks of miners wait for the database', { reason: error.message }))
        .finally(() => {
          end();
          this.#busy.delete(one.account_id);
        });
      this.#busy.set(one.account_id, sending);
    }
    // Moved to the end of the queue, so that the others are tried too.
    if (waiting.length > 0)
      await this.#sql`update miner_webhooks set next_at = now() + interval '1 second'
        where account_id = any(${waiting}::int[]) and next_at <= now()`;
  }

  async #send(due: Due): Promise<void> {
    const { url, secret, attempts, dropped, account_id: account } = due;
    const { reach, timeoutMillis, restMillis, giveUpMillis } = this.#options;
    const oldest = new Date(this.#now() - giveUpMillis);
    if (Number(due.millis) <= oldest.getTime()) return this.#dropOld(due, oldest);
    const body = JSON.stringify({
      id: Number(due.event_id),
      kind: due.kind,
      at_millis: Number(due.millis),
      address: due.address,
      data: due.data,
      dropped,
    });
    const failure = await postWebhook(url, reach, {
      headers: {
        'content-type': 'application/json',
        'svc-pool-event': due.kind,
        [SIGNATURE_HEADER]: signWebhook(secret, this.#wall(), body),
      },
      body,
      timeoutMillis,
      signal: this.#stop.signal,
    });
    if (this.#stop.signal.aborted && failure !== undefined) return;
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
        where account_id = ${account} and secret = ${secret}`;
      if (failure === undefined) await transaction`delete from miner_news where id = ${due.id}`;
    });
    if (failure !== undefined)
      this.#log.debug('a webhook of a miner was not accepted', { address: due.address, reason: failure });
  }

  /** News that became too old while waiting, also while webhooks were switched off, are not sent. */
  async #dropOld(due: Due, oldest: Date): Promise<void> {
    if (due.kind === FIRST_NEWS) return this.#takeAway(due, 'not accepted in time');
    const account = due.account_id;
    await this.#sql.begin(async (transaction) => {
      const hook = await transaction`select 1 from miner_webhooks where account_id = ${account} for update`;
      if (hook.length === 0) return;
      const gone =
        await transaction`delete from miner_news where account_id = ${account} and at <= ${oldest} returning 1`;
      await transaction`update miner_webhooks set dropped = dropped + ${gone.length} where account_id = ${account}`;
    });
  }

  /** The miner can set the webhook again. */
  async #takeAway({ account_id: account, secret, address }: Due, reason: string): Promise<void> {
    await this.#sql.begin(async (transaction) => {
      const taken = await transaction`update miner_webhooks set url = null, last_error = ${reason}, last_failure = now()
        where account_id = ${account} and secret = ${secret} returning 1`;
      if (taken.length > 0) await transaction`delete from miner_news where account_id = ${account}`;
    });
    this.#log.debug('a webhook of a miner is removed: its first news was never accepted', { address, reason });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }
}

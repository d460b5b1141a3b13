/**
 * Sends miners their news (docs/pool.md, webhooks of miners): events are put into a queue for each miner that has a webhook, and each queue is sent in order. Queues
 * are short, one request of a miner is under way at a time, and one that fails waits longer each time, so that nobody's dead or slow URL delays the others.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../runtime/log.ts';
import { eventsAfter } from '../api/event-follower.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { type MinerNews, newsOf } from './miner-news.ts';
import { retryMillis, SIGNATURE_HEADER, signWebhook } from './webhook-sender.ts';
import { postWebhook, type WebhookReach } from './webhook-target.ts';

export type MinerWebhookOptions = {
  readonly reach: WebhookReach;
  readonly pollMillis?: number;
  readonly timeoutMillis?: number;
  /** Least time between two requests to one URL. */
  readonly restMillis?: number;
  /** News older than this are dropped. */
  readonly giveUpMillis?: number;
};

export const MINER_WEBHOOK_DEFAULTS = {
  pollMillis: 1_000,
  timeoutMillis: 10_000,
  restMillis: 1_000,
  giveUpMillis: 86_400_000,
} as const;

/** News of one miner that wait; more are dropped and counted. */
export const MOST_WAITING = 100;
const MOST_AT_ONCE = 32;
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

/** Puts one piece of news into the queue of its miner, if that has a webhook. */
export async function queueNews(
  transaction: Transaction,
  { eventId, address, kind, atMillis, data }: MinerNews,
): Promise<void> {
  const [hook] = await transaction<{ id: number; waiting: number }[]>`select h.account_id as id,
      (select count(*)::int from miner_news n where n.account_id = h.account_id) as waiting
    from miner_webhooks h join accounts a on a.id = h.account_id where a.address = ${address} and h.url is not null`;
  if (hook === undefined) return;
  if (hook.waiting >= MOST_WAITING)
    await transaction`update miner_webhooks set dropped = dropped + 1 where account_id = ${hook.id}`;
  else
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
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        while ((await this.#fill()) && !this.#stop.signal.aborted);
        await this.#sendDue();
      } catch (error) {
        this.#log.debug('webhooks of miners wait for the database', { reason: (error as Error).message });
      }
      await sleep(this.#options.pollMillis, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
    await Promise.all(this.#busy.values());
  }

  /** Events into queues, each once: the position is in the same transaction. True while there may be more. */
  async #fill(): Promise<boolean> {
    const sql = this.#sql;
    const [row] = await sql<{ value: string }[]>`insert into settings values (${THROUGH},
        (select coalesce(max(id), 0)::text from events)) on conflict (name) do update set value = settings.value
      returning value`;
    const events = await eventsAfter(sql, Number(row?.value ?? 0));
    const last = events.at(-1);
    if (last === undefined) return false;
    await sql.begin(async (transaction) => {
      for (const news of events.flatMap(newsOf)) await queueNews(transaction, news);
      await transaction`update settings set value = ${String(last.id)} where name = ${THROUGH}`;
    });
    return true;
  }

  async #sendDue(): Promise<void> {
    const room = MOST_AT_ONCE - this.#busy.size;
    if (room <= 0) return;
    const due = await this.#sql<
      Due[]
    >`select h.account_id, a.address, h.url, h.secret, h.attempts, h.dropped, n.id, n.event_id, n.kind,
        n.data, (extract(epoch from n.at) * 1000)::bigint::text as millis
      from miner_webhooks h join accounts a on a.id = h.account_id join lateral (
        select * from miner_news n where n.account_id = h.account_id order by n.id limit 1) n on true
      where h.url is not null and h.next_at <= now() and h.account_id <> all(${[...this.#busy.keys()]}::int[])
      order by h.next_at limit ${room}`;
    for (const one of due) {
      const sending = this.#send(one)
        .catch((error: Error) => this.#log.debug('webhooks of miners wait for the database', { reason: error.message }))
        .finally(() => this.#busy.delete(one.account_id));
      this.#busy.set(one.account_id, sending);
    }
  }

  async #send(due: Due): Promise<void> {
    const { url, secret, attempts, dropped, account_id: account } = due;
    const { reach, timeoutMillis, restMillis, giveUpMillis } = this.#options;
    const body = JSON.stringify({
      ...{ id: Number(due.event_id), kind: due.kind, at_millis: Number(due.millis), address: due.address },
      ...{ data: due.data, dropped },
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
    const waitMillis = failure === undefined ? restMillis : retryMillis(attempts);
    const isOld = this.#now() - Number(due.millis) >= giveUpMillis;
    await this.#sql.begin(async (transaction) => {
      // The webhook first, as where it is changed: the other way round both could wait for each other.
      await transaction`update miner_webhooks set last_error = ${failure ?? null},
          attempts = ${failure === undefined ? 0 : attempts + 1},
          dropped = dropped ${failure === undefined ? transaction`- ${dropped}` : transaction`+ ${isOld ? 1 : 0}`},
          next_at = now() + make_interval(secs => ${waitMillis / 1000})
        where account_id = ${account} and url = ${url}`;
      if (failure === undefined || isOld) await transaction`delete from miner_news where id = ${due.id}`;
    });
    if (failure !== undefined)
      this.#log.debug('a webhook of a miner was not accepted', { address: due.address, reason: failure });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }
}

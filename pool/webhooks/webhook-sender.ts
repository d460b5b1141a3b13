/**
 * The operator's webhooks (docs/notices.md): each URL gets the events in order, signed, repeated until it answers 2xx. The
 * events table is the outbox: the position of each URL is in the database, so neither a crash nor another instance
 * loses or skips one. Receivers can detect repetitions by the event's id. Workers have a lane of their own: however
 * many fall silent, news of blocks and payments do not wait behind them, and of the workers only the newest are sent.
 */
import { utf8 } from '../../protocol/bytes.ts';
import type { SteadyClock, WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { plainFetch } from '../../runtime/node-client/http-fetch.ts';
import { eventsAfter } from '../api/public/event-follower.ts';
import type { PoolEvent } from '../api/public/live.ts';
import type { Sql } from '../database/connect.ts';
import { Delivery, retryMillis } from './delivery.ts';
import { SIGNATURE_HEADER, signWebhook } from './notice-request.ts';
import { webhookHost } from './webhook-target.ts';

/** The news that each lane sends. */
export const LANES = {
  pool: ['block_found', 'block_paid', 'block_held', 'payout_sent', 'payout_needs_person'],
  workers: ['worker_silent'],
} as const;
type Lane = keyof typeof LANES;

/** News of workers that wait for a URL; older ones are passed over. */
const MOST_WORKERS = 100;

export type WebhookOptions = {
  readonly urls: readonly string[];
  readonly secret: string;
  readonly timeoutMillis?: number;
  readonly pollMillis?: number;
  /** An event that could not be delivered for this long is given up, so that one dead URL does not keep all history. */
  readonly giveUpMillis?: number;
};

export const WEBHOOK_DEFAULTS = { timeoutMillis: 10_000, pollMillis: 1_000, giveUpMillis: 3 * 86_400_000 } as const;

export class WebhookSender {
  readonly #options: Required<WebhookOptions>;
  readonly #sql: Sql;
  readonly #log: Logger;
  readonly #now: SteadyClock;
  readonly #wall: WallClock;
  readonly #deliveries: readonly Delivery[];

  constructor(options: WebhookOptions, dependencies: { sql: Sql; log: Logger; now: SteadyClock; wall: WallClock }) {
    this.#options = { ...WEBHOOK_DEFAULTS, ...options };
    this.#sql = dependencies.sql;
    this.#log = dependencies.log;
    this.#now = dependencies.now;
    this.#wall = dependencies.wall;
    const how = { pollMillis: this.#options.pollMillis, log: this.#log, waits: 'webhooks wait for the database' };
    this.#deliveries = options.urls.flatMap((url) =>
      (Object.keys(LANES) as Lane[]).map((lane) => {
        const delivery: Delivery = new Delivery(how, () => this.#step(url, lane, delivery.signal));
        return delivery;
      }),
    );
  }

  /** True when there may be more to do at once. */
  async #step(url: string, lane: Lane, signal: AbortSignal): Promise<boolean> {
    const sql = this.#sql;
    const kinds: readonly string[] = LANES[lane];
    const [hook] = await sql<{ told: bigint; attempts: number; due: boolean }[]>`insert into webhooks (url, lane, told)
      values (${url}, ${lane}, coalesce((select max(id) from events), 0))
      on conflict (url, lane) do update set url = excluded.url returning told, attempts, next_at <= now() as due`;
    if (hook === undefined || !hook.due) return false;
    const [passed] =
      lane === 'pool'
        ? []
        : await sql<
            { id: bigint }[]
          >`select id from events where id > ${hook.told} and kind = any(${[...kinds]}::text[])
            order by id desc offset ${MOST_WORKERS} limit 1`;
    const events = await eventsAfter(sql, Number(passed?.id ?? hook.told), 100);
    const move = (told: number) => sql`update webhooks set told = ${told}, attempts = 0, last_error = null,
      next_at = now() where url = ${url} and lane = ${lane}`;
    for (const event of events.filter(({ kind }) => kinds.includes(kind))) {
      const failure = await this.#deliver(url, event, signal);
      if (failure !== undefined && this.#now() - event.atMillis < this.#options.giveUpMillis) {
        await sql`update webhooks set attempts = attempts + 1, last_error = ${failure},
          next_at = now() + make_interval(secs => ${retryMillis(hook.attempts) / 1000})
          where url = ${url} and lane = ${lane}`;
        this.#log.warn('a webhook was not accepted', { host: webhookHost(url), event: event.id, reason: failure });
        return false;
      }
      if (failure !== undefined)
        this.#log.error('a webhook is dropped after its last attempt', {
          host: webhookHost(url),
          event: event.id,
          reason: failure,
        });
      await move(event.id);
      if (signal.aborted) return false;
    }
    const last = events.at(-1);
    if (last !== undefined) await move(last.id);
    return events.length > 0;
  }

  async #deliver(url: string, event: PoolEvent, signal: AbortSignal): Promise<string | undefined> {
    const body = JSON.stringify({ id: event.id, kind: event.kind, at_millis: event.atMillis, data: event.data });
    try {
      const response = await plainFetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'svc-pool-event': event.kind,
          [SIGNATURE_HEADER]: signWebhook(this.#options.secret, this.#wall(), body),
        },
        body: utf8(body),
        signal: AbortSignal.any([AbortSignal.timeout(this.#options.timeoutMillis), signal]),
      });
      await response.arrayBuffer();
      return response.status >= 200 && response.status < 300 ? undefined : `status ${response.status}`;
    } catch (error) {
      return (error as Error).message;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#deliveries.map((delivery) => delivery.close()));
  }
}

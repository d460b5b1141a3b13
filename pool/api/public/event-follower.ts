/** Follows the events table: by notifications of PostgreSQL, and by polling in case one was lost, or had to wait. */
import type { Logger } from '../../../runtime/log/log.ts';
import type { Sql, Transaction } from '../../database/connect.ts';
import type { PoolEvent } from './live.ts';

const LOOK_MILLIS = 1_000;
const BATCH = 500;

type EventRow = { id: bigint; millis: string; kind: string; data: unknown; is_settled: boolean };

const eventOf = (row: EventRow): PoolEvent => ({
  id: Number(row.id),
  atMillis: Number(row.millis),
  kind: row.kind,
  data: row.data,
});

/**
 * In order, up to the first that may not be the next one: transactions run side by side, and one that has not ended may
 * still bring an event with a lower number. One that hangs holds up the others for a minute.
 */
export async function eventsAfter(sql: Sql | Transaction, after: number, limit = BATCH): Promise<PoolEvent[]> {
  const rows = await sql<EventRow[]>`select id, (extract(epoch from at) * 1000)::bigint::text as millis, kind, data,
      at < now() - interval '1 minute' or age(xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid) as is_settled
    from events where id > ${after} order by id limit ${limit}`;
  const end = rows.findIndex((row) => !row.is_settled);
  return rows.slice(0, end === -1 ? rows.length : end).map(eventOf);
}

export class EventFollower {
  readonly #sql: Sql;
  readonly #log: Logger;
  readonly #onEvent: (event: PoolEvent) => void;
  #last: number | undefined;
  #reading: Promise<void> | undefined;
  #again = false;
  #timer: NodeJS.Timeout | undefined;
  #listening: { unlisten: () => Promise<void> } | undefined;

  constructor(dependencies: { sql: Sql; log: Logger; onEvent: (event: PoolEvent) => void }) {
    this.#sql = dependencies.sql;
    this.#log = dependencies.log;
    this.#onEvent = dependencies.onEvent;
  }

  async start(): Promise<void> {
    const [row] = await this.#sql<{ last: bigint | null }[]>`select max(id) as last from events`;
    this.#last = Number(row?.last ?? 0);
    // The driver subscribes again after a lost connection.
    this.#listening = await this.#sql.listen(
      'svc_pool_events',
      () => this.look(),
      () => this.look(),
    );
    this.#timer = setInterval(() => this.look(), LOOK_MILLIS);
  }

  /** The database was replaced by an older copy: event numbers are used again. */
  async goBack(): Promise<void> {
    const [row] = await this.#sql<{ last: bigint | null }[]>`select max(id) as last from events`;
    this.#last = Math.min(this.#last ?? 0, Number(row?.last ?? 0));
    this.look();
  }

  look(): void {
    this.#again = true;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
  }

  async #read(): Promise<void> {
    try {
      while (this.#again) {
        this.#again = false;
        const events = await eventsAfter(this.#sql, this.#last ?? 0);
        for (const event of events) {
          this.#last = event.id;
          this.#onEvent(event);
        }
        if (events.length === BATCH) this.#again = true;
      }
    } catch (error) {
      this.#log.debug('events cannot be read', { reason: (error as Error).message });
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#listening?.unlisten().catch(() => undefined);
    await this.#reading;
  }
}

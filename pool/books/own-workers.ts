/**
 * Which workers have figures of their own. Anybody can invent workers, also of somebody else's address: a name becomes
 * a row, and with it an entry of boards, charts and news, when some work in proportion to the pool's was done under it,
 * or a block was found, or when the key of the account names it (pool/api/miner/named-workers.ts). All other work of an account counts under one worker, OTHERS. This is display only:
 * credits are made per account, and every share is booked for its account either way.
 */
import { OTHERS, OWN_RECEIPTS } from '../../protocol/books/receipt.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { Transaction } from '../database/connect.ts';
import { type MinerRecord, SERVICES } from '../journal/journal-record.ts';
import { typicalShareWork } from '../stats/typical-share.ts';

/** The part of a typical share of the pool that a name has to do: a rig a hundred times slower takes two minutes. */
export const TYPICAL_PART = 8n;
/** Workers of an account in a service that have figures of their own. */
export const MAX_OWN_WORKERS = OWN_RECEIPTS;
/** A worker without a share for this long leaves its place to another; its row stays for what it found. */
const PLACE_DAYS = 30;

const CACHED = 200_000;
/** Names without a row whose work is remembered. Who is forgotten begins again. */
const CANDIDATES = 100_000;

type Named = { readonly key: string; readonly account: number; readonly service: number; readonly name: string };

export class OwnWorkers {
  readonly #ids = new BoundedMap<string, number>(CACHED);
  readonly #candidates = new BoundedMap<string, bigint>(CANDIDATES);

  /** After `resolve`. */
  idOf(account: number, record: MinerRecord): number {
    const { key, service } = named(account, record);
    return (this.#ids.get(key) ?? this.#ids.get(`${account}/${service}/${OTHERS}`)) as number;
  }

  /** Ids may have been rolled back. */
  forget(): void {
    this.#ids.clear();
  }

  /** Makes the rows that these records need. */
  async resolve(
    transaction: Transaction,
    records: readonly MinerRecord[],
    accountOf: (record: MinerRecord) => number,
  ): Promise<void> {
    const unknown = new Map<string, Named & { work: bigint; atMillis: number }>();
    for (const record of records) {
      const one = named(accountOf(record), record);
      if (this.#ids.use(one.key) !== undefined) continue;
      const before = unknown.get(one.key) ?? { ...one, work: 0n, atMillis: 0 };
      const atMillis = record.kind === 'ownership' ? 0 : record.atMillis;
      unknown.set(one.key, {
        ...before,
        work: before.work + workOf(record),
        atMillis: Math.max(before.atMillis, atMillis),
      });
    }
    if (unknown.size === 0) return;
    await this.#find(transaction, [...unknown.values()]);
    const rest = [...unknown.values()].filter(({ key }) => !this.#ids.has(key));
    if (rest.length === 0) return;
    const rows = await this.#admitted(transaction, rest);
    await transaction`insert into workers (account_id, service, name)
      select * from unnest(${rows.map(({ account }) => account)}::int[],
        ${rows.map(({ service }) => service)}::smallint[], ${rows.map(({ name }) => name)}::text[])
      on conflict do nothing`;
    await this.#find(transaction, rows);
  }

  async #find(transaction: Transaction, wanted: readonly Named[]): Promise<void> {
    const rows = await transaction<{ id: number; account_id: number; service: number; name: string }[]>`
      select w.id, w.account_id, w.service, w.name from workers w
      join unnest(${wanted.map(({ account }) => account)}::int[], ${wanted.map(({ service }) => service)}::smallint[],
        ${wanted.map(({ name }) => name)}::text[]) as k(a, s, n) on w.account_id = k.a and w.service = k.s and w.name = k.n`;
    for (const row of rows) this.#ids.set(`${row.account_id}/${row.service}/${row.name}`, row.id);
  }

  /** The rows to make: those that have earned one, and OTHERS where somebody has not. */
  async #admitted(
    transaction: Transaction,
    rest: readonly (Named & { readonly work: bigint; readonly atMillis: number })[],
  ): Promise<Named[]> {
    const least = (await typicalShareWork(transaction)) / TYPICAL_PART;
    const newest = rest.reduce((most, { atMillis }) => Math.max(most, atMillis), 0);
    const counts = await transaction<{ account_id: number; service: number; count: number }[]>`select account_id,
        service, count(*)::int as count from workers
      where account_id = any(${[...new Set(rest.map(({ account }) => account))]}::int[]) and name <> ${OTHERS}
        and (last_share_at is null or last_share_at > ${new Date(newest - PLACE_DAYS * 86_400_000)})
      group by account_id, service`;
    const taken = new Map(counts.map((row) => [`${row.account_id}/${row.service}`, row.count]));
    const names = await transaction<{ account_id: number; name: string }[]>`select account_id, name from named_workers
      where is_named and account_id = any(${[...taken.keys()].map((place) => Number.parseInt(place, 10))}::int[])`;
    const isNamed = new Set(names.map((row) => `${row.account_id}/${row.name}`));
    const rows = new Map<string, Named>();
    for (const one of rest) {
      const { key, account, service } = one;
      const place = `${account}/${service}`;
      const count = taken.get(place) ?? 0;
      const work = (this.#candidates.use(key) ?? 0n) + one.work;
      // The account itself is a row by now: its first worker costs no more than that.
      const isTrusted = isNamed.has(`${account}/${one.name}`);
      if (count === 0 || isTrusted || (work >= least && count < MAX_OWN_WORKERS)) {
        rows.set(key, one);
        taken.set(place, count + 1);
        this.#candidates.delete(key);
        continue;
      }
      this.#candidates.set(key, work);
      const others = `${place}/${OTHERS}`;
      if (!this.#ids.has(others)) rows.set(others, { key: others, account, service, name: OTHERS });
    }
    return [...rows.values()];
  }
}

const named = (account: number, record: MinerRecord): Named => {
  const service = SERVICES.indexOf(record.service);
  return { key: `${account}/${service}/${record.worker}`, account, service, name: record.worker };
};

const workOf = (record: MinerRecord): bigint => {
  if (record.kind === 'share') return record.work;
  return record.kind === 'block' ? workOfTarget(record.target) : 0n;
};

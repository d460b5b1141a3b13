/**
 * The pool as a whole, as its front page shows it: rates, blocks, effort and luck. Refreshed in the background, so a
 * request reads only memory; while the database is unavailable the last figures stay, with their age.
 */
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import type { FeeChange, TermsNow } from '../../edits/edits.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import type { LedgerDate } from '../../payout/earlier-minimums.ts';
import type { RateBoard, Rates } from '../../stats/rates.ts';
import type { PoolDocument, RatesDocument, ServiceDocument } from '../documents.ts';
import { payoutsPaused, payoutsResumed } from '../operator/payout-pause.ts';

export type PoolTerms = {
  readonly name: string;
  readonly network: string;
  readonly address: string;
  readonly feePpm: Readonly<Record<(typeof SERVICES)[number], number>>;
  readonly payoutMin: bigint;
  readonly payoutIntervalMillis: number;
  /** W in expected blocks, in thousandths. */
  readonly windowThousandths: bigint;
  readonly sliceCuts: number;
};

export type ChainView = LedgerDate & {
  readonly height: number;
  readonly targetWork: bigint;
  readonly hashesPerSecond: bigint;
  /** How far back that reaches. */
  readonly rateMillis: number;
  readonly synced: boolean;
  /** When the figures were read. */
  readonly atMillis: number;
};

export type PoolViewDependencies = {
  readonly sql: Sql;
  readonly rates: RateBoard;
  /** Current values of the settings that an operator can change. */
  readonly edited: () => TermsNow;
  readonly now: SteadyClock;
  readonly chain: () => ChainView | undefined;
};

type BlockFigures = {
  service: number;
  found: number;
  paid: number;
  day_luck: string | null;
  last_millis: string | null;
};

export const rateDocument = (rates: Rates): RatesDocument => ({
  ten_minutes: Math.round(rates.tenMinutes),
  hour: Math.round(rates.hour),
  day: Math.round(rates.day),
});

export class PoolView {
  readonly #terms: PoolTerms;
  readonly #dependencies: PoolViewDependencies;
  #document: PoolDocument | undefined;
  /** Estimated income of the miners from PPLNS blocks that are not credited yet. */
  #uncredited = 0n;

  constructor(terms: PoolTerms, dependencies: PoolViewDependencies) {
    this.#terms = terms;
    this.#dependencies = dependencies;
  }

  get document(): PoolDocument | undefined {
    return this.#document;
  }

  /** An account's estimated part of the blocks not credited yet, by its part of a day's work. For display only. */
  pendingEstimate(rates: Rates): bigint {
    const all = this.#dependencies.rates.service(0).day;
    if (all <= 0) return 0n;
    return (this.#uncredited * BigInt(Math.round((Math.min(rates.day, all) / all) * 1e9))) / 1_000_000_000n;
  }

  async refresh(): Promise<void> {
    const { sql, rates, now, chain } = this.#dependencies;
    const edited = this.#dependencies.edited();
    await rates.refresh();
    const blocks = await this.#blocks();
    const hundred = await this.#luckOfHundred();
    const efforts = await sql<{ service: number; work: string }[]>`select service, work from effort`;
    const [totals] = await sql<{ paid: string }[]>`select coalesce(sum(paid), 0)::text as paid from accounts`;
    const [pending] = await sql<{ open: string }[]>`select (count(*) * coalesce((select avg(reward) from
        (select reward from blocks where service = 0 and state = 'paid' order by found_at desc limit 100) r), 0))::bigint::text
        as open from blocks where service = 0 and credit_list is null and state in ('found', 'accepted', 'registered', 'paid')`;
    this.#uncredited = (BigInt(pending?.open ?? 0) * BigInt(1_000_000 - edited.feePpm.pplns)) / 1_000_000n;
    const isPaused = await payoutsPaused(sql);
    const resumedMillis = await payoutsResumed(sql);
    const view = chain();
    const { network, address, payoutIntervalMillis, sliceCuts } = this.#terms;
    const { name, feePpm, feeChanges, windows, windowChanges, payoutMin, minimumChanges, notice, pauseNote } = edited;
    this.#document = {
      api_version: 1,
      name,
      network,
      pool_address: address,
      services: SERVICES.map((service, id): ServiceDocument => {
        const figures = blocks.find((row) => row.service === id);
        const { workers, accounts, ...own } = rates.service(id);
        const effort = BigInt(efforts.find((row) => row.service === id)?.work ?? 0);
        return {
          service,
          fee_ppm: feePpm[service],
          fee_changes: feeChanges[service].map(feeChangeDocument),
          ...(windows[service] === undefined ? {} : { window_thousandths: windows[service] }),
          window_changes: windowChanges[service].map(({ thousandths, fromSlice, fromHeight }) => ({
            window_thousandths: thousandths,
            from_slice: fromSlice,
            from_height: fromHeight,
          })),
          miners: accounts,
          workers,
          hash_rate: rateDocument(own),
          blocks_found: figures?.found ?? 0,
          blocks_paid: figures?.paid ?? 0,
          effort: view === undefined ? 0 : ratio(effort, view.targetWork),
          luck: { hundred: hundred.get(id) ?? null, day: numberOrNull(figures?.day_luck) },
          last_block_millis: numberOrNull(figures?.last_millis),
        };
      }),
      network_figures: {
        height: view?.height ?? 0,
        hash_rate: Number(view?.hashesPerSecond ?? 0n),
        hash_rate_millis: view?.rateMillis ?? 0,
        block_work: String(view?.targetWork ?? 0n),
        synced: view?.synced ?? false,
      },
      payouts: {
        minimum: String(payoutMin),
        minimum_changes: minimumChanges.map(({ atoms, fromMillis }) => ({
          minimum: String(atoms),
          from_millis: fromMillis,
        })),
        interval_seconds: payoutIntervalMillis / 1000,
        paused: isPaused,
        resumed_millis: resumedMillis,
        pause_note: isPaused ? pauseNote : null,
      },
      notice,
      paid_atoms: totals?.paid ?? '0',
      since_millis: rates.since === undefined ? null : Math.round(rates.since * 1000),
      cuts_until_paid: await this.#cutsUntilPaid(),
      slice_cuts: sliceCuts,
      now_millis: now(),
    };
  }

  async #blocks(): Promise<BlockFigures[]> {
    const since = new Date(this.#dependencies.now() - 86_400_000);
    return this.#dependencies.sql<BlockFigures[]>`select t.service, t.found, t.paid, d.luck as day_luck,
        (select (extract(epoch from max(found_at)) * 1000)::bigint::text from blocks b where b.service = t.service)
          as last_millis
      from (select service, sum(count)::int as found,
          coalesce(sum(count) filter (where state = 'paid'), 0)::int as paid from block_totals group by service) t
      left join (select service, round(sum(target_work) / nullif(sum(effort_work), 0), 4)::text as luck from blocks
        where found_at > ${since} group by service) d on d.service = t.service`;
  }

  async #cutsUntilPaid(): Promise<number | null> {
    const [row] = await this.#dependencies.sql<{ cuts: number | null }[]>`select
      percentile_cont(0.5) within group (order by settled_height - anchor_height) as cuts from
      (select settled_height, anchor_height from blocks where state = 'paid' order by found_at desc limit 100) b`;
    return row?.cuts ?? null;
  }

  async #luckOfHundred(): Promise<Map<number, number>> {
    const luck = new Map<number, number>();
    for (const service of SERVICES.keys()) {
      const [row] = await this.#dependencies.sql<{ luck: string | null }[]>`select
        round(sum(target_work) / nullif(sum(effort_work), 0), 4)::text as luck from
        (select target_work, effort_work from blocks where service = ${service} order by found_at desc limit 100) b`;
      if (row?.luck != null) luck.set(service, Number(row.luck));
    }
    return luck;
  }
}

const feeChangeDocument = ({ ppm, fromSlice, fromHeight }: FeeChange): ServiceDocument['fee_changes'][number] => ({
  fee_ppm: ppm,
  from_slice: fromSlice,
  from_height: fromHeight,
});

const numberOrNull = (text: string | null | undefined): number | null => (text == null ? null : Number(text));

/** Rounded to four decimals; integers up to the last step. */
export const ratio = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number((part * 10_000n) / whole) / 10_000;

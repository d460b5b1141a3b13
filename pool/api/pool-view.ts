/**
 * The pool as a whole, as its front page shows it: rates, blocks, effort and luck. Refreshed in the background, so a
 * request reads memory alone; while the database is away the last figures stay and say how old they are.
 */
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';
import type { InstanceFigures } from '../shared/shared-state.ts';
import type { RateBoard, Rates } from '../stats/rates.ts';

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

export type ChainView = {
  readonly height: number;
  readonly targetWork: bigint;
  readonly hashesPerSecond: bigint | null;
};

export type PoolViewDependencies = {
  readonly sql: Sql;
  readonly rates: RateBoard;
  readonly now: () => number;
  readonly chain: () => ChainView | undefined;
  readonly instances: () => Promise<readonly InstanceFigures[]>;
};

type BlockFigures = {
  service: number;
  found: number;
  paid: number;
  expired: number;
  pending: number;
  luck: string | null;
  last_millis: string | null;
};

export const rateDocument = (rates: Rates) => ({
  ten_minutes: Math.round(rates.tenMinutes),
  hour: Math.round(rates.hour),
  day: Math.round(rates.day),
});

export class PoolView {
  readonly #terms: PoolTerms;
  readonly #dependencies: PoolViewDependencies;
  #document: Record<string, unknown> | undefined;

  constructor(terms: PoolTerms, dependencies: PoolViewDependencies) {
    this.#terms = terms;
    this.#dependencies = dependencies;
  }

  get document(): Record<string, unknown> | undefined {
    return this.#document;
  }

  async refresh(): Promise<void> {
    const { sql, rates, now, chain, instances } = this.#dependencies;
    await rates.refresh();
    const since = new Date(now() - 86_400_000);
    const blocks = await sql<BlockFigures[]>`select service,
        count(*) filter (where found_at > ${since})::int as found,
        count(*) filter (where found_at > ${since} and state = 'paid')::int as paid,
        count(*) filter (where found_at > ${since} and state = 'expired')::int as expired,
        count(*) filter (where state in ('found', 'accepted', 'registered'))::int as pending,
        round(sum(target_work) filter (where found_at > ${since})
          / nullif(sum(effort_work) filter (where found_at > ${since}), 0), 4)::text as luck,
        (extract(epoch from max(found_at)) * 1000)::bigint::text as last_millis
      from blocks where found_at > ${since} or state in ('found', 'accepted', 'registered') group by service`;
    const efforts = await sql<{ service: number; work: string }[]>`select service, work from effort`;
    const [totals] = await sql<{ paid: string; owed: string }[]>`select coalesce(sum(paid), 0)::text as paid,
      coalesce(sum(balance + in_flight), 0)::text as owed from accounts`;
    const connected = await instances();
    const view = chain();
    this.#document = {
      ...this.#termsDocument(),
      at_millis: now(),
      height: view?.height ?? null,
      network_work: view === undefined ? null : String(view.targetWork),
      network_rate: view?.hashesPerSecond == null ? null : String(view.hashesPerSecond),
      connections: connected.reduce((sum, each) => sum + total(each.connections), 0),
      paid_atoms: totals?.paid ?? '0',
      owed_atoms: totals?.owed ?? '0',
      services: Object.fromEntries(
        SERVICES.map((name, service) => {
          const figures = blocks.find((row) => row.service === service);
          const { workers, accounts, ...own } = rates.service(service);
          const effort = BigInt(efforts.find((row) => row.service === service)?.work ?? 0);
          return [
            name,
            {
              hash_rate: rateDocument(own),
              workers,
              miners: accounts,
              connections: connected.reduce((sum, each) => sum + (each.connections[name] ?? 0), 0),
              current_effort: view === undefined ? null : ratio(effort, view.targetWork),
              blocks_24h: {
                found: figures?.found ?? 0,
                paid: figures?.paid ?? 0,
                expired: figures?.expired ?? 0,
                luck: figures?.luck == null ? null : Number(figures.luck),
              },
              blocks_pending: figures?.pending ?? 0,
              last_block_millis: figures?.last_millis == null ? null : Number(figures.last_millis),
            },
          ];
        }),
      ),
    };
  }

  #termsDocument() {
    const { name, network, address, feePpm, payoutMin, payoutIntervalMillis, windowThousandths, sliceCuts } =
      this.#terms;
    return {
      name,
      network,
      address,
      fee_ppm: feePpm,
      payout_min_atoms: String(payoutMin),
      payout_interval_millis: payoutIntervalMillis,
      window_blocks: Number(windowThousandths) / 1000,
      slice_cuts: sliceCuts,
    };
  }
}

const total = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

/** To four decimals, without leaving integers before the last step. */
export const ratio = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number((part * 10_000n) / whole) / 10_000;

/** Public routes. Answers are JSON; worker names in them are untrusted text that a page must escape. */
import { described, object, oneOf, optional } from '../../../protocol/api/schema.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { ApiRefusal } from '../api-error.ts';
import * as b from '../books/books-documents.ts';
import type { LedgerView } from '../books/ledger-view.ts';
import type { ProofMaker } from '../books/proofs.ts';
import * as d from '../documents.ts';
import type { MinerView } from '../miner/miner-view.ts';
import {
  COSTS,
  FIELDS,
  ofSlice,
  PAGE_FIELDS,
  paged,
  pageOfQuery,
  type Route,
  readMinerAddress,
  route,
  serviceNumber,
} from '../route.ts';
import { CHART_HOURS, type ChartView } from './chart-view.ts';
import { HISTORY_SECONDS, type HistoryHours, type HistoryView } from './history-view.ts';
import type { PoolView } from './pool-view.ts';

export type PublicDependencies = {
  readonly pool: PoolView;
  readonly ledger: LedgerView;
  readonly miners: MinerView;
  readonly charts: ChartView;
  readonly history: HistoryView;
  readonly proofs: ProofMaker;
  readonly connect: () => d.ConnectDocument;
  readonly now: SteadyClock;
};

const FIGURES_MILLIS = 5_000;
const CHART_MILLIS = 10_000;
const HISTORY_MILLIS = 60_000;
const DAY_MILLIS = 86_400_000;

const ofAddress = object({ address: FIELDS.address });
const hours = object({ hours: FIELDS.hours });

export function publicRoutes(dependencies: PublicDependencies): Route[] {
  return [...poolRoutes(dependencies), ...minerRoutes(dependencies), ...proofRoutes(dependencies)];
}

const numberOrAll = (name: d.ServiceName | undefined): number | undefined =>
  name === undefined ? undefined : serviceNumber(name);

function poolRoutes({ pool, charts, history, connect, ledger }: PublicDependencies): Route[] {
  return [
    route({
      method: 'GET',
      path: '/pool',
      group: 'Pool',
      summary: 'The pool: its terms, hash rates, blocks, effort and luck',
      answer: d.pool,
      keep: 1_000,
      handle: async () => {
        if (pool.document === undefined) throw new ApiRefusal('unavailable', 'figures are being gathered', 2_000);
        return pool.document;
      },
    }),
    route({
      method: 'GET',
      path: '/pool/chart',
      group: 'Pool',
      summary: 'Hash rate, workers and shares over time',
      query: object({ hours: FIELDS.hours, service: FIELDS.serviceQuery }),
      answer: d.chart,
      cost: COSTS.chart,
      keep: CHART_MILLIS,
      handle: ({ query }) => charts.pool(query.hours ?? CHART_HOURS.default, numberOrAll(query.service)),
    }),
    route({
      method: 'GET',
      path: '/pool/history',
      group: 'Pool',
      summary: "Blocks, luck, the network's difficulty and payments over time",
      query: object({ hours: optional(oneOf(Object.keys(HISTORY_SECONDS) as HistoryHours[], 'how far back')) }),
      answer: d.history,
      cost: COSTS.chart,
      isDear: true,
      keep: HISTORY_MILLIS,
      handle: ({ query }) => history.history(query.hours ?? '24'),
    }),
    route({
      method: 'GET',
      path: '/connect',
      group: 'Pool',
      summary: 'Where miners connect',
      answer: d.connect,
      keep: FIGURES_MILLIS,
      handle: async () => connect(),
    }),
    route({
      method: 'GET',
      path: '/blocks',
      group: 'Blocks',
      summary: 'Blocks, newest first',
      query: object({
        service: FIELDS.serviceQuery,
        state: optional(described(d.blockState, 'only blocks in this state')),
        finder: FIELDS.finder,
        ...PAGE_FIELDS,
      }),
      answer: d.blocks,
      cost: COSTS.search,
      keep: FIGURES_MILLIS,
      handle: ({ query }) =>
        ledger.blocks(pageOfQuery(query), {
          service: numberOrAll(query.service),
          state: query.state,
          finder: query.finder,
        }),
    }),
    route({
      method: 'GET',
      path: '/blocks/:id',
      group: 'Blocks',
      summary: 'One block',
      params: object({ id: FIELDS.blockId }),
      answer: d.block,
      keep: FIGURES_MILLIS,
      handle: async ({ params }) => {
        const block = await ledger.block(params.id);
        if (block === undefined) throw new ApiRefusal('not_found', 'the pool has no such block');
        return block;
      },
    }),
    route({
      method: 'GET',
      path: '/payments',
      group: 'Payments',
      summary: 'Payments, newest first; all, or those to one address',
      query: object({ address: FIELDS.addressQuery, ...PAGE_FIELDS }),
      answer: d.payments,
      cost: COSTS.search,
      keep: FIGURES_MILLIS,
      handle: ({ query }) => ledger.payments(pageOfQuery(query), query.address),
    }),
  ];
}

function minerRoutes({ miners, charts, ledger, now }: PublicDependencies): Route[] {
  return [
    route({
      method: 'GET',
      path: '/miners',
      group: 'Miners',
      summary: 'Miners by hash rate of the last hour',
      query: paged,
      answer: d.miners,
      cost: COSTS.search,
      keep: FIGURES_MILLIS,
      handle: ({ query }) => miners.miners(pageOfQuery(query)),
    }),
    route({
      method: 'GET',
      path: '/leaders',
      group: 'Miners',
      summary: 'Miners that found most blocks in a day',
      answer: d.leaders,
      cost: COSTS.search,
      keep: HISTORY_MILLIS,
      handle: () => ledger.leaders(now() - DAY_MILLIS),
    }),
    route({
      method: 'GET',
      path: '/best-shares',
      group: 'Miners',
      summary: 'Miners with the best shares of all time',
      answer: d.bestShares,
      cost: COSTS.search,
      keep: HISTORY_MILLIS,
      handle: () => miners.bestShares(),
    }),
    route({
      method: 'GET',
      path: '/miners/:address',
      group: 'Miners',
      summary: 'Balances, hash rates and settings of a miner',
      params: ofAddress,
      answer: d.miner,
      keep: FIGURES_MILLIS,
      handle: ({ params }) => miners.miner(params.address),
    }),
    route({
      method: 'GET',
      path: '/miners/:address/workers',
      group: 'Miners',
      summary: "A miner's workers",
      params: ofAddress,
      query: paged,
      answer: d.workers,
      keep: FIGURES_MILLIS,
      handle: ({ params, query }) => miners.workers(params.address, pageOfQuery(query)),
    }),
    route({
      method: 'GET',
      path: '/miners/:address/credits',
      group: 'Miners',
      summary: 'The credit of a miner in each list; each can be proven',
      params: ofAddress,
      query: paged,
      answer: d.credits,
      cost: COSTS.search,
      isDear: true,
      keep: FIGURES_MILLIS,
      handle: ({ params, query }, { charge }) =>
        miners.credits(params.address, pageOfQuery(query), (rows) => charge(rows / COSTS.rows)),
    }),
    route({
      method: 'GET',
      path: '/miners/:address/earnings',
      group: 'Miners',
      summary: 'What a miner was credited, day by day',
      params: ofAddress,
      answer: d.earnings,
      cost: COSTS.chart,
      keep: HISTORY_MILLIS,
      handle: ({ params }) => miners.earnings(params.address),
    }),
    route({
      method: 'GET',
      path: '/miners/:address/chart',
      group: 'Miners',
      summary: "A miner's hash rate over time",
      params: ofAddress,
      query: hours,
      answer: d.chart,
      cost: COSTS.chart,
      keep: CHART_MILLIS,
      handle: async ({ params, query }) => {
        const account = await miners.account(params.address);
        return charts.account(account.id, account.sinceMillis / 1000, query.hours ?? CHART_HOURS.default);
      },
    }),
    route({
      method: 'GET',
      path: '/miners/:address/workers/:service/:worker/chart',
      group: 'Miners',
      summary: "A worker's hash rate over time",
      params: object({ address: FIELDS.address, service: FIELDS.service, worker: FIELDS.worker }),
      query: hours,
      answer: d.chart,
      cost: COSTS.chart,
      keep: CHART_MILLIS,
      handle: async ({ params: { address, service, worker }, query }) => {
        const account = await miners.account(address);
        const id = await miners.workerId(account, serviceNumber(service), worker === '-' ? '' : worker);
        return charts.worker(id, account.sinceMillis / 1000, query.hours ?? CHART_HOURS.default);
      },
    }),
  ];
}

function proofRoutes({ proofs, miners }: PublicDependencies): Route[] {
  const noList = () => new ApiRefusal('not_found', 'this slice has no credit list yet');
  return [
    route({
      method: 'GET',
      path: '/proofs/:service/:slice',
      group: 'Proofs',
      summary: "The proof of a miner's credit of a slice's rewards (protocol/books/pool-proof.ts checks it)",
      params: ofSlice,
      query: object({ address: described(FIELDS.address, 'whose proof') }),
      answer: b.proof,
      cost: COSTS.proof,
      isDear: true,
      keep: 'forever',
      handle: async ({ params: { service, slice }, query: { address } }, { charge }) => {
        // An address that has not mined here gets proofs of absence.
        const { payload } = readMinerAddress(address, miners.network);
        const proof = await proofs.proof(serviceNumber(service), slice, payload, address, (leaves) =>
          charge(leaves / COSTS.leaves),
        );
        if (proof === undefined) throw noList();
        return proof;
      },
    }),
    route({
      method: 'GET',
      path: '/proofs/:service/:slice/list',
      group: 'Proofs',
      summary: "Everybody's credits of a slice's rewards, page by page, with the roots of its window",
      params: ofSlice,
      query: paged,
      answer: b.creditList,
      cost: COSTS.search,
      keep: 'forever',
      handle: async ({ params, query }) => {
        const list = await proofs.list(serviceNumber(params.service), params.slice, pageOfQuery(query));
        if (list === undefined) throw noList();
        return list;
      },
    }),
  ];
}

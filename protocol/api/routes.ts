/**
 * The routes of the public API (specification: Endpoints, Limits): method, path, parameters, body and answer of each.
 * The node's server, the client, docs/api.md and docs/openapi.json are all made from this table.
 */
import * as d from './documents.ts';
import type { ApiErrorCode } from './error-codes.ts';
import { type Infer, integer, object, optional, type Schema } from './schema.ts';

export type RouteSpec = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly summary: string;
  readonly params: Schema<unknown>;
  readonly query: Schema<unknown>;
  readonly body: Schema<unknown> | undefined;
  readonly answer: Schema<unknown>;
  /** Codes beyond those every route can answer. */
  readonly errors: readonly ApiErrorCode[];
  /** False for the one route that changes something: a submission is never repeated after a lost answer. */
  readonly read: boolean;
  /** Minimum cost of a call, in units of a plain read. */
  readonly cost: number;
  /** Entries of a page (`limit`) per unit. Without it every page costs the same. */
  readonly entriesPerUnit: number | undefined;
};

/**
 * What a call costs. A unit is at most about half a millisecond of the node's main thread (`npm run bench -- bursts`),
 * whatever the page: an answer with thousands of entries must not cost the same as a small one.
 */
export const callCost = ({ cost, entriesPerUnit }: RouteSpec, limit: number | undefined): number =>
  entriesPerUnit === undefined || limit === undefined ? cost : Math.max(cost, Math.ceil(limit / entriesPerUnit));

const nothing = object({});
type Nothing = Infer<typeof nothing>;

type Definition<P, Q, B, A> = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly summary: string;
  readonly params?: Schema<P>;
  readonly query?: Schema<Q>;
  readonly body?: Schema<B>;
  readonly answer: Schema<A>;
  readonly errors?: readonly ApiErrorCode[];
  readonly read?: boolean;
  readonly cost?: number;
  readonly entriesPerUnit?: number;
};

type Route<P, Q, B, A> = RouteSpec & {
  readonly params: Schema<P>;
  readonly query: Schema<Q>;
  readonly body: Schema<B> | undefined;
  readonly answer: Schema<A>;
};

const route = <A, P = Nothing, Q = Nothing, B = Nothing>(spec: Definition<P, Q, B, A>): Route<P, Q, B, A> => ({
  ...spec,
  params: spec.params ?? (nothing as Schema<P>),
  query: spec.query ?? (nothing as Schema<Q>),
  body: spec.body,
  errors: spec.errors ?? [],
  read: spec.read ?? true,
  cost: spec.cost ?? 1,
  entriesPerUnit: spec.entriesPerUnit,
});

const page = (standard: number, maximum: number) =>
  object({
    cursor: optional(d.cursor),
    limit: optional(integer({ minimum: 1, maximum, default: standard })),
  });
const newest = object({ limit: optional(integer({ minimum: 1, maximum: 500, default: 50 })) });
const byAddress = object({ address: d.address });
const byHeight = object({ height: d.height });
const byTransaction = object({ id: d.identifier });

export const ROUTES = {
  addressBalance: route({
    method: 'GET',
    path: '/v1/address/{address}/balance',
    summary: 'Balance and number of unspent outputs of an address',
    params: byAddress,
    answer: d.addressBalance,
    errors: ['bad_address'],
  }),
  addressUtxos: route({
    method: 'GET',
    path: '/v1/address/{address}/utxos',
    summary: 'Unspent outputs of an address, in the order of their outpoints',
    params: byAddress,
    query: page(100, 512),
    answer: d.addressUtxos,
    errors: ['bad_address', 'bad_cursor'],
    cost: 4,
    entriesPerUnit: 32,
  }),
  addressHistory: route({
    method: 'GET',
    path: '/v1/address/{address}/history',
    summary: 'What an address received and spent, newest first',
    params: byAddress,
    query: page(100, 256),
    answer: d.addressHistory,
    errors: ['bad_address', 'bad_cursor'],
    cost: 4,
  }),
  cuts: route({
    method: 'GET',
    path: '/v1/cuts',
    summary: 'Finalized cuts, newest first',
    query: object({
      before: optional(d.height),
      limit: optional(integer({ minimum: 1, maximum: 100, default: 20 })),
    }),
    answer: d.cutList,
    // 20 without a limit.
    cost: 3,
    entriesPerUnit: 8,
  }),
  cutTransactions: route({
    method: 'GET',
    path: '/v1/cuts/{height}/transactions',
    summary: 'Transactions a cut executed, in order',
    params: byHeight,
    query: page(20, 64),
    answer: d.cutTransactions,
    errors: ['cut_unknown', 'cut_pruned', 'bad_cursor'],
    cost: 8,
  }),
  cutChanges: route({
    method: 'GET',
    path: '/v1/cuts/{height}/changes',
    summary: 'Outputs a cut made and spent',
    params: byHeight,
    query: page(1024, 4096),
    answer: d.cutChanges,
    errors: ['cut_unknown', 'cut_pruned', 'bad_cursor'],
    // 1,024 without a limit.
    cost: 32,
    entriesPerUnit: 32,
  }),
  cutRewards: route({
    method: 'GET',
    path: '/v1/cuts/{height}/rewards',
    summary: 'Blocks that a cut paid, and what (beyond the specification)',
    params: byHeight,
    query: page(256, 1024),
    answer: d.cutRewards,
    errors: ['cut_unknown', 'cut_pruned', 'bad_cursor'],
    // 256 without a limit.
    cost: 4,
    entriesPerUnit: 64,
  }),
  recentTransactions: route({
    method: 'GET',
    path: '/v1/transactions/recent',
    summary: 'Transactions of the newest cuts',
    query: newest,
    answer: d.recentTransactions,
    cost: 4,
    entriesPerUnit: 64,
  }),
  recentBlocks: route({
    method: 'GET',
    path: '/v1/blocks/recent',
    summary: 'Work blocks registered by the newest cuts',
    query: newest,
    answer: d.recentBlocks,
    // 50 without a limit.
    cost: 7,
    entriesPerUnit: 8,
  }),
  addressBalances: route({
    method: 'POST',
    path: '/v1/address/balances',
    summary: 'Balances of up to 64 addresses',
    body: d.addressesBody,
    answer: d.addressBalances,
    errors: ['bad_address'],
    cost: 4,
  }),
  addressesUtxos: route({
    method: 'POST',
    path: '/v1/address/utxos',
    summary: 'Unspent outputs of up to 64 addresses',
    body: d.addressUtxosBody,
    answer: d.addressesUtxos,
    errors: ['bad_address', 'bad_cursor'],
    // 512 without a limit.
    cost: 16,
  }),
  addressChanges: route({
    method: 'POST',
    path: '/v1/address/changes',
    summary: 'What up to 64 addresses received and spent after a height, oldest first: the way to catch up',
    body: d.addressChangesBody,
    answer: d.addressChanges,
    errors: ['cut_pruned', 'bad_address', 'bad_cursor'],
    // 1,024 without a limit.
    cost: 32,
    entriesPerUnit: 32,
  }),
  mempoolPending: route({
    method: 'POST',
    path: '/v1/mempool/pending',
    summary: 'Payments of up to 64 addresses that are not final yet',
    body: d.mempoolPendingBody,
    answer: d.mempoolPending,
    errors: ['bad_address', 'bad_cursor'],
    // All that waits is looked through.
    cost: 16,
  }),
  stakingPositions: route({
    method: 'POST',
    path: '/v1/staking/positions',
    summary: 'Staking positions owned by up to 64 addresses',
    body: d.stakingPositionsBody,
    answer: d.stakingPositions,
    errors: ['bad_address', 'bad_cursor'],
    // 256 without a limit.
    cost: 32,
  }),
  registeredKeys: route({
    method: 'POST',
    path: '/v1/keys/registered',
    summary: 'Which of up to 64 addresses have their key in the registry, and since which cut',
    body: d.addressesBody,
    answer: d.registeredKeys,
    errors: ['bad_address'],
    cost: 4,
  }),
  transactionStatuses: route({
    method: 'POST',
    path: '/v1/transactions/status',
    summary: 'Status of up to 1,024 transactions',
    body: d.transactionIdsBody,
    answer: d.transactionStatuses,
    cost: 16,
  }),
  utxoProofs: route({
    method: 'POST',
    path: '/v1/proofs/utxos',
    summary: 'Proofs that up to 8 outputs are, or are not, in the output set of the finalized cut',
    body: d.outpointsBody,
    answer: d.utxoProofs,
    cost: 8,
  }),
  stakingProofs: route({
    method: 'POST',
    path: '/v1/proofs/staking',
    summary: 'Proofs that up to 8 positions and 8 validators are, or are not, in the sets of the finalized cut',
    body: d.stakingProofsBody,
    answer: d.stakingProofs,
    cost: 16,
  }),
  submitTransaction: route({
    method: 'POST',
    path: '/v1/transactions',
    summary: 'Submits a signed transaction. Never repeat it after a lost answer: ask for its status',
    body: d.submissionBody,
    answer: d.submissionResult,
    read: false,
    cost: 4,
  }),
  manifest: route({
    method: 'GET',
    path: '/v1/transactions/manifest',
    summary: 'Rules a transaction is bound to: chain, versions, limits, minimum fee',
    answer: d.manifest,
  }),
  transactionStatus: route({
    method: 'GET',
    path: '/v1/transactions/{id}/status',
    summary: 'Status of a transaction',
    params: byTransaction,
    answer: d.transactionStatus,
    errors: ['transaction_unknown'],
  }),
  block: route({
    method: 'GET',
    path: '/v1/blocks/{id}',
    summary: 'A work block, its payout, extranonce, tag and reward',
    params: byTransaction,
    answer: d.block,
    errors: ['block_unknown'],
    // Its body is hashed for the names of its transactions.
    cost: 4,
  }),
  chainHead: route({
    method: 'GET',
    path: '/v1/chain/head',
    summary: 'The finalized head; ask with x-svc-request-nonce for a signed answer',
    answer: d.chainHead,
  }),
  chainRates: route({
    method: 'GET',
    path: '/v1/chain/rates',
    summary: 'Hash rate, pace of cuts and target',
    answer: d.chainRates,
  }),
  mempool: route({
    method: 'GET',
    path: '/v1/mempool',
    summary: 'Size of the mempool and the minimum fee',
    answer: d.mempool,
  }),
  nodeIdentity: route({
    method: 'GET',
    path: '/v1/node/identity',
    summary: 'The public key signed answers are checked with',
    answer: d.nodeIdentity,
  }),
  nodeSync: route({
    method: 'GET',
    path: '/v1/node/sync',
    summary: 'Whether the node is up to date',
    answer: d.nodeSync,
  }),
  nodeStatus: route({
    method: 'GET',
    path: '/v1/node/status',
    summary: 'State of the node',
    answer: d.nodeStatus,
  }),
  supply: route({
    method: 'GET',
    path: '/v1/economics/supply',
    summary: 'Supply at the finalized head',
    answer: d.supply,
  }),
  emission: route({
    method: 'GET',
    path: '/v1/economics/emission',
    summary: 'Current subsidy and the next reduction',
    answer: d.emission,
  }),
  stakingEstimate: route({
    method: 'GET',
    path: '/v1/economics/estimate/staking',
    summary: 'Expected reward per day for an amount of stake',
    query: object({ amount: d.amount }),
    answer: d.stakingEstimate,
  }),
  stakingValidators: route({
    method: 'GET',
    path: '/v1/staking/validators',
    summary: 'Validators and their state, in the order of their identifiers (beyond the specification)',
    query: object({
      state: optional(d.validatorState),
      cursor: optional(d.cursor),
      limit: optional(integer({ minimum: 1, maximum: 256, default: 64 })),
    }),
    answer: d.stakingValidators,
    errors: ['bad_cursor'],
    // All that a page looks at are read, also those in another state.
    cost: 32,
  }),
  stakingValidator: route({
    method: 'GET',
    path: '/v1/staking/validators/{id}',
    summary: 'One validator (beyond the specification)',
    params: byTransaction,
    answer: d.stakingValidator,
    errors: ['validator_unknown'],
  }),
} as const;

export type RouteName = keyof typeof ROUTES;
export const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[];

type BodyOf<S> = [S] extends [Schema<infer B> | undefined] ? B : never;
/** What a client gives to call a route: path parameters, query and body fields in one object. */
export type RouteInput<N extends RouteName> = Infer<(typeof ROUTES)[N]['params']> &
  Infer<(typeof ROUTES)[N]['query']> &
  BodyOf<(typeof ROUTES)[N]['body']>;
export type RouteAnswer<N extends RouteName> = Infer<(typeof ROUTES)[N]['answer']>;

/** Limits of the specification's table that hold for every request. */
export const MAX_REQUEST_BODY = 128 * 1024;
export const MAX_TARGET = 2048;

export const SOCKETS = {
  events: {
    path: '/v1/events',
    subprotocol: 'svc.node-events.v1',
    summary: 'Every finalized cut, in order, resumable with after_height',
  },
  live: {
    path: '/v1/ws',
    subprotocol: 'svc.node-api.v1',
    summary: 'Subscriptions by topic, and read requests',
  },
  transactionStatus: {
    path: '/v1/transactions/{id}/status/stream',
    subprotocol: 'svc.transaction-status.v1',
    summary: 'One transaction until its status is final',
  },
} as const;

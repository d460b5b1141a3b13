/**
 * Frames of the node's WebSockets (specification: Events, Node sockets): JSON text `{type, data}`, both ways. The mining
 * listener's /v1/events speaks the frames of `eventsFrame`.
 */
import { MAX_CUT_BLOCKS } from '../ledger/cut.ts';
import { REGISTRATION_WINDOW } from '../network.ts';
import * as d from './documents.ts';
import { type Infer, integer, list, nullable, object, oneOf, optional, type Schema, text } from './schema.ts';

export const REPLAY_MILLIS = 3_600_000;
export const RESYNC_REASONS = ['stream_lagged', 'stream_restarted', 'history_unavailable'] as const;
export type ResyncReason = (typeof RESYNC_REASONS)[number];

/** A cut pays one anchor, for which every cut of its window may have registered a full number of blocks. */
const MAX_CUT_REWARDS = MAX_CUT_BLOCKS * REGISTRATION_WINDOW;

export const stakePayout = object(
  {
    position_id: d.identifier,
    transaction_id: d.identifier,
    output_index: integer(),
    reward_address: d.address,
    amount: d.amount,
  },
  'StakePayout',
);

// --- /v1/events -------------------------------------------------------------------------------------------------------

export const checkpoint = object(
  { api_version: d.version, finalized_height: d.height, cut: d.cutReference },
  'Checkpoint',
);
export const cutFinalized = object(
  {
    api_version: d.version,
    cut: d.cutReference,
    registered_work: integer(),
    executed_work: integer(),
    rewards: list(d.workReward, { maxItems: MAX_CUT_REWARDS }),
    stake_rewards: d.amount,
    stake_payouts: list(stakePayout),
  },
  'CutFinalized',
);
export type Checkpoint = Infer<typeof checkpoint>;
export type CutFinalized = Infer<typeof cutFinalized>;

export type EventsFrame =
  | { readonly type: 'checkpoint'; readonly data: Checkpoint }
  | { readonly type: 'cut_finalized'; readonly data: CutFinalized }
  | { readonly type: 'resync_required'; readonly data: { readonly reason: ResyncReason } };

// --- /v1/ws: client to server ------------------------------------------------------------------------------------------

export const TOPICS = [
  'cuts',
  'blocks',
  'mempool',
  'rates',
  'sync',
  'transaction',
  'addresses',
  'mempool_transactions',
] as const;
export type Topic = (typeof TOPICS)[number];

/** A number or a string of the client's choice, answered under the same value. */
const frameId = { anyOf: [integer(), text({ maxLength: 64 })] } as Schema<number | string>;
const subscription = integer();

export const MAX_REQUEST_PATH = 1024;

export const CLIENT_FRAMES = {
  subscribe: object({
    id: frameId,
    topic: text({ maxLength: 64 }),
    addresses: optional(list(d.address, { minItems: 1, maxItems: d.MAX_BATCH_ADDRESSES })),
    transaction_id: optional(d.identifier),
  }),
  request: object({ id: frameId, path: text({ minLength: 1, maxLength: MAX_REQUEST_PATH }) }),
  unsubscribe: object({ id: frameId, subscription }),
  ping: object({ id: frameId }),
} as const;
export type ClientFrameType = keyof typeof CLIENT_FRAMES;
export type ClientFrame = {
  [T in ClientFrameType]: { readonly type: T; readonly data: Infer<(typeof CLIENT_FRAMES)[T]> };
}[ClientFrameType];

// --- /v1/ws: server to client ------------------------------------------------------------------------------------------

export const liveCut = object(
  {
    cut: d.cutReference,
    registered_blocks: integer(),
    executed_blocks: integer(),
    rewards: list(d.workReward),
    stake_rewards: d.amount,
    finalized_at_millis: d.millis,
  },
  'LiveCut',
);
export const blockAccepted = object(
  {
    block_id: d.identifier,
    anchor_height: d.height,
    parents: list(d.identifier),
    transactions: list(d.identifier),
    reward_address: d.address,
    miner_tag: text(),
    accepted_at_millis: d.millis,
  },
  'BlockAccepted',
);
export const addressChanged = object(
  {
    address: d.address,
    finalized_height: d.height,
    received: list(d.historyEvent),
    spent: list(d.historyEvent),
    balance: d.amount,
    utxos: integer(),
  },
  'AddressChanged',
);
export const REMOVAL_REASONS = ['finalized', 'expired', 'evicted', 'conflict', 'rejected', 'unknown'] as const;
export const mempoolTxSeen = object(
  { transaction_id: d.identifier, payments: list(d.pendingPayment) },
  'MempoolTransactionSeen',
);
export const mempoolTxRemoved = object(
  { transaction_id: d.identifier, addresses: list(d.address), reason: oneOf(REMOVAL_REASONS) },
  'MempoolTransactionRemovedForAddresses',
);
export const mempoolTransaction = object(
  {
    transaction_id: d.identifier,
    fee: d.amount,
    mass: integer(),
    inputs: list(d.outpoint),
    outputs: list(object({ address: d.address, amount: d.amount })),
    first_seen_millis: d.millis,
  },
  'MempoolTransaction',
);
export const mempoolTransactionRemoved = object(
  { transaction_id: d.identifier, reason: oneOf(REMOVAL_REASONS) },
  'MempoolTransactionRemoved',
);

/** Events by the type in a notification. */
export const LIVE_EVENTS = {
  cut_finalized: liveCut,
  block_accepted: blockAccepted,
  mempool: d.mempool,
  rates: d.chainRates,
  sync: d.nodeSync,
  transaction_status: d.transactionStatus,
  address_changed: addressChanged,
  mempool_tx_seen: mempoolTxSeen,
  mempool_tx_removed: mempoolTxRemoved,
  mempool_transaction: mempoolTransaction,
  mempool_transaction_removed: mempoolTransactionRemoved,
} as const;
export type LiveEventType = keyof typeof LIVE_EVENTS;
export type LiveEvent = {
  [T in LiveEventType]: { readonly type: T; readonly data: Infer<(typeof LIVE_EVENTS)[T]> };
}[LiveEventType];

export const frameError = object(
  { id: nullable(frameId), code: text(), message: text(), retry_after_millis: optional(integer()) },
  'FrameError',
);
export type FrameError = Infer<typeof frameError>;

/** Why a server ended a socket: RFC 6455 codes and what each means here. */
export const CLOSE_CODES = {
  /** The stream is complete, or the server is going away in order. */
  done: 1000,
  goingAway: 1001,
  /** A binary frame, or a client frame on a socket that takes none. */
  wrongFrame: 1003,
  policy: 1008,
  tooLarge: 1009,
  /** The reader fell behind. */
  tryAgain: 1013,
} as const;

/** Limits of the API (specification: Limits, Socket limits per connection): a node's own, and those of a public service. */
import { NO_RATE_LIMIT, PUBLIC_NOTICE_LIMIT, PUBLIC_RATE_LIMIT, type RateLimits } from './rate-limit.ts';

export type SocketLimits = {
  readonly subscriptions: number;
  readonly watchedAddresses: number;
  /** Bytes of a frame sent by the client, and of an answer to its request. */
  readonly frameBytes: number;
  readonly answerBytes: number;
  readonly framesPerSecond: number;
  readonly requestsInFlight: number;
};

export type ApiLimits = {
  readonly socket: SocketLimits;
  readonly rate: RateLimits;
  /** Notifications to one client: whoever may subscribe decides how many one transaction makes. */
  readonly notices: RateLimits;
  /** TCP connections in all, and from one client. */
  readonly connections: number;
  readonly connectionsPerClient: number;
  /** Addresses that all connections watch together. */
  readonly watchedAddresses: number;
  /** Of unfinished requests, and of answers that clients have not taken yet, all together. */
  readonly heldBytes: number;
  /** Whether `mempool_transactions` is offered. */
  readonly everyMempoolTransaction: boolean;
};

const CONNECTIONS = 16_384;
const HELD_BYTES = 128 * 1024 * 1024;

export const NODE_LIMITS: ApiLimits = {
  socket: {
    subscriptions: 64,
    watchedAddresses: 512,
    frameBytes: 64 * 1024,
    answerBytes: 256 * 1024,
    framesPerSecond: 100,
    requestsInFlight: 8,
  },
  rate: NO_RATE_LIMIT,
  notices: NO_RATE_LIMIT,
  connections: CONNECTIONS,
  connectionsPerClient: CONNECTIONS,
  watchedAddresses: Number.POSITIVE_INFINITY,
  heldBytes: HELD_BYTES,
  everyMempoolTransaction: true,
};

export const PUBLIC_LIMITS: ApiLimits = {
  socket: {
    subscriptions: 64,
    watchedAddresses: 512,
    frameBytes: 16 * 1024,
    answerBytes: 1024 * 1024,
    framesPerSecond: 10,
    requestsInFlight: 4,
  },
  rate: PUBLIC_RATE_LIMIT,
  notices: PUBLIC_NOTICE_LIMIT,
  connections: CONNECTIONS,
  connectionsPerClient: 256,
  watchedAddresses: 524_288,
  heldBytes: HELD_BYTES,
  everyMempoolTransaction: false,
};

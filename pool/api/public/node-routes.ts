/**
 * Reads of the chain for pages: the public API of the pool's node below `/node`, with the node's own paths. These answers are
 * unverified; readers who need proof use their own node. The number of reads is limited, concurrent and in total: they come from
 * the pool's own address and must not use up its allowance at the node.
 */
import { type ApiClient, ApiError } from '../../../protocol/api/client.ts';
import { callCost, ROUTES, type RouteSpec } from '../../../protocol/api/routes.ts';
import { clientNetwork } from '../../../runtime/clients/client-address.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import { type MonotonicClock, monotonicMillis } from '../../../runtime/clock/clock.ts';
import { ApiRefusal } from '../api-error.ts';
import { type Exchange, type Input, type Route, route } from '../route.ts';
import { Turns } from '../turns.ts';

const OFFERED = [
  'chainHead',
  'chainRates',
  'cuts',
  'cutTransactions',
  'cutRewards',
  'recentTransactions',
  'transactionStatus',
  'recentBlocks',
  'block',
  'mempool',
  'supply',
  'emission',
  'addressBalance',
  'addressHistory',
  'stakingEstimate',
  'stakingPositions',
  'stakingValidators',
  'stakingValidator',
  'nodeStatus',
] as const;
type Offered = (typeof OFFERED)[number];

/** The part of a node client that the routes use. */
export type NodeReads = Pick<ApiClient, Offered>;

const AT_ONCE = 8;
const WAITING = 64;
/** Concurrent reads of one client; a page makes some dozens at once. */
const CLIENT_AT_ONCE = 4;
const CLIENT_WAITING = 32;
/**
 * Limit for all visitors together, in fair shares: less than half of a node's limit for one reader (PUBLIC_RATE_LIMIT), so that the
 * pool has the rest.
 */
const ALLOWANCE = { perSecond: 20, burst: 200 } as const;
/** Pause after the node has rate-limited the pool: as long as it may block a reader. */
const PAUSE_MILLIS = 60_000;
const RETRY_MILLIS = 2_000;
/**
 * About the time of one cut: reads of the chain's head, for any number of pages, then take a third of the limit at
 * most.
 */
const KEEP_MILLIS = 2_500;

const tooMuch = (millis = RETRY_MILLIS) => new ApiRefusal('unavailable', 'the node has too much to answer', millis);

/** `now` in milliseconds; never goes back. */
export function nodeRoutes(node: NodeReads, now: MonotonicClock = monotonicMillis): Route[] {
  const turns = new Turns({ most: WAITING, holders: AT_ONCE });
  const ofClient = new Turns({ most: CLIENT_WAITING, holders: CLIENT_AT_ONCE });
  const clients = new FairShare(ALLOWANCE, now());
  const networks = new FairShare(ALLOWANCE, now());
  let pausedUntil = Number.NEGATIVE_INFINITY;
  const pay = (client: string, cost: number) => {
    const at = now();
    if (at < pausedUntil) throw tooMuch(pausedUntil - at);
    const network = clientNetwork(client);
    // A client counts beside its network: neighbours have equal parts, and whoever owns a whole network has no more than any other client.
    if (!networks.has(network, at, clients.taken(client, at) + cost)) throw tooMuch();
    clients.charge(client, at, cost);
    networks.charge(network, at, cost);
  };
  /** The limit is shared by all clients; each client first waits for its own requests. */
  const inTurn = async <T>(client: string, work: () => Promise<T>): Promise<T> => {
    const endOwn = await ofClient.take(client);
    if (endOwn === undefined) throw tooMuch();
    try {
      const end = await turns.take('node');
      if (end === undefined) throw tooMuch();
      try {
        return await work();
      } finally {
        end();
      }
    } finally {
      endOwn();
    }
  };
  const read = async (name: Offered, { params, query, body }: Input, cost: number, { request, client }: Exchange) => {
    // The client has disconnected. Others that joined the same read have to retry.
    if (request.raw.socket.destroyed) throw new ApiRefusal('unavailable', 'the client is gone', RETRY_MILLIS);
    pay(client, cost);
    try {
      const call = node[name] as (input: object) => Promise<unknown>;
      return await call({ ...(params as object), ...(query as object), ...(body as object | undefined) });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 429) pausedUntil = now() + PAUSE_MILLIS;
      throw refusalOf(error);
    }
  };
  return OFFERED.map((name) => {
    const spec: RouteSpec = ROUTES[name];
    return route<unknown, unknown, unknown, unknown>({
      method: spec.method,
      path: `/node${spec.path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
      group: 'Chain',
      summary: spec.summary,
      params: spec.params,
      query: spec.query,
      ...(spec.body === undefined ? {} : { body: spec.body }),
      answer: spec.answer,
      cost: spec.cost,
      // The cache key is path and query only.
      ...(spec.method === 'GET' ? { keep: KEEP_MILLIS } : {}),
      handle: (input, exchange) => {
        const cost = callCost(spec, (input.query as { limit?: number }).limit);
        exchange.charge(cost - spec.cost);
        return inTurn(exchange.client, () => read(name, input, cost, exchange));
      },
    });
  });
}

/** A refusal of the node is passed on; after a failure the client may retry. */
function refusalOf({ status, message }: ApiError): ApiRefusal {
  if (status === 400) return new ApiRefusal('bad_request', message);
  if (status >= 400 && status < 500 && status !== 429) return new ApiRefusal('not_found', message);
  return new ApiRefusal('unavailable', 'the node does not answer now', RETRY_MILLIS);
}

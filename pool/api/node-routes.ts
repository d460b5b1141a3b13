/**
 * The chain as the pool's node tells it, for pages: reads of the node's public API below `/node`, with the node's own paths. A reader who
 * needs proof asks a node of his own; a visitor who looks something up needs none. Few reads go to the node at a time, so that pages
 * never keep it from the pool's own work.
 */
import { type ApiClient, ApiError } from '../../protocol/api/client.ts';
import { callCost, ROUTES, type RouteSpec } from '../../protocol/api/routes.ts';
import { ApiRefusal } from './api-error.ts';
import { type Input, type Route, route } from './route.ts';
import { Turns } from './turns.ts';

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
] as const;
type Offered = (typeof OFFERED)[number];

/** What the routes need of the client of a node. */
export type NodeReads = Pick<ApiClient, Offered>;

const AT_ONCE = 8;
const WAITING = 64;
const RETRY_MILLIS = 2_000;
/** Cuts come every 2.5 s: an answer of a second ago is as good as a new one. */
const KEEP_MILLIS = 1_000;

export function nodeRoutes(node: NodeReads): Route[] {
  const turns = new Turns({ most: WAITING, holders: AT_ONCE });
  const read = async (name: Offered, { params, query, body }: Input): Promise<unknown> => {
    const end = await turns.take('node');
    if (end === undefined) throw new ApiRefusal('unavailable', 'the node has too much to answer', RETRY_MILLIS);
    try {
      const call = node[name] as (input: object) => Promise<unknown>;
      return await call({ ...(params as object), ...(query as object), ...(body as object | undefined) });
    } catch (error) {
      throw error instanceof ApiError ? refusalOf(error) : error;
    } finally {
      end();
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
      // A kept answer is named by path and query alone.
      ...(spec.method === 'GET' ? { keep: KEEP_MILLIS } : {}),
      handle: (input, { charge }) => {
        charge(callCost(spec, (input.query as { limit?: number }).limit) - spec.cost);
        return read(name, input);
      },
    });
  });
}

/** What the node refuses is refused with its words; what it could not do may be asked again. */
function refusalOf({ status, message }: ApiError): ApiRefusal {
  if (status === 400) return new ApiRefusal('bad_request', message);
  if (status >= 400 && status < 500 && status !== 429) return new ApiRefusal('not_found', message);
  return new ApiRefusal('unavailable', 'the node does not answer now', RETRY_MILLIS);
}

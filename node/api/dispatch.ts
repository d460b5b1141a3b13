/**
 * Handles a read or a submission, without HTTP: shared by the HTTP server and the socket's `request` frames. Every
 * error becomes an error document. An error that is not a refusal is a bug: it is logged and answered with `internal`.
 */
import { callCost, type RouteName } from '../../protocol/api/routes.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { IndexUnavailable } from '../index/index-reader.ts';
import { addressRoutes } from './address-routes.ts';
import { type ApiContext, type Handler, type Handlers, JsonText } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';
import { chainRoutes } from './chain-routes.ts';
import { cutRoutes } from './cut-routes.ts';
import { proofRoutes } from './proof-routes.ts';
import { matchRoute, readBody, readParams, readQuery } from './route-match.ts';
import { stakingRoutes } from './staking-routes.ts';
import { transactionRoutes } from './transaction-routes.ts';

const HANDLERS: Handlers = {
  ...addressRoutes,
  ...cutRoutes,
  ...transactionRoutes,
  ...proofRoutes,
  ...chainRoutes,
  ...stakingRoutes,
};

export type ApiAnswer = {
  readonly status: number;
  /** As bytes it is ASCII. */
  readonly json: string | Buffer;
  readonly waitMillis?: number;
  /** Without it the answer is JSON; `json` is then the text itself. */
  readonly contentType?: string;
  readonly headers?: readonly string[];
  /** The client is blocked: it gets this answer and nothing else. */
  readonly isBlocked?: boolean;
};

export type ApiRequest = {
  readonly method: string;
  readonly target: string;
  readonly body: Uint8Array;
};

export type DispatchDependencies = {
  /** Undefined while the node is not ready. */
  readonly context: () => ApiContext | undefined;
  readonly log: Logger;
};

export const NOT_READY_MILLIS = 1_000;

export const refusalAnswer = (refused: Refusal): ApiAnswer => ({
  status: refused.status,
  json: JSON.stringify(refused.document),
  ...(refused.document.error.code === 'client_blocked' ? { isBlocked: true } : {}),
  ...(refused.document.retry_after_millis === undefined ? {} : { waitMillis: refused.document.retry_after_millis }),
});

const notReady = (): Refusal => refusal('not_ready', 'the node is not ready to answer yet', {}, NOT_READY_MILLIS);

async function answerOf(
  handler: Handler<RouteName>,
  request: Parameters<typeof handler>[1],
  { context }: DispatchDependencies,
): Promise<ApiAnswer> {
  const node = context();
  if (node === undefined) throw notReady();
  const answer = await handler(node, request);
  return { status: 200, json: answer instanceof JsonText ? answer.text : JSON.stringify(answer) };
}

/** The client: its allowance, and the scheduling of its reads. */
export type Caller = {
  /** Takes a cost from its allowance, or throws a refusal. */
  allow(cost: number): void;
  /** Calls `work` when it is this client's turn. */
  turn<T>(cost: number, work: () => T | Promise<T>): Promise<T>;
};

export async function dispatch(
  request: ApiRequest,
  caller: Caller,
  dependencies: DispatchDependencies,
): Promise<ApiAnswer> {
  try {
    const mark = request.target.indexOf('?');
    const path = mark < 0 ? request.target : request.target.slice(0, mark);
    const match = matchRoute(request.method, path);
    caller.allow(match.route.cost);
    const params = readParams(match);
    const query = readQuery(match.route.query, mark < 0 ? '' : request.target.slice(mark + 1));
    const body = match.route.body === undefined ? {} : readBody(match.route.body, request.body);
    const { limit } = { ...(query as object), ...(body as object) } as { readonly limit?: number };
    const cost = callCost(match.route, limit);
    if (cost > match.route.cost) caller.allow(cost - match.route.cost);
    const handler = HANDLERS[match.name] as unknown as Handler<RouteName>;
    const make = (): Promise<ApiAnswer> =>
      answerOf(handler, { params, query, body } as Parameters<typeof handler>[1], dependencies);
    // A submission waits for its signatures to be checked, in other threads: reads do not wait for that.
    return await (match.route.read ? caller.turn(cost, make) : make());
  } catch (error) {
    if (error instanceof Refusal) return refusalAnswer(error);
    if (error instanceof IndexUnavailable) return refusalAnswer(notReady());
    clientFaults.report('api', error, dependencies.log);
    return refusalAnswer(refusal('internal', 'the node could not answer; nothing was wrong with the request'));
  }
}

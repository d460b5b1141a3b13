/**
 * A read or a submission from request to answer, without HTTP: what the HTTP server and the socket's `request` frames share. Every
 * fault ends as an error document; what is not a refusal is a bug, is logged, and is answered with `internal`.
 */
import { callCost, type RouteName } from '../../protocol/api/routes.ts';
import { clientFaults } from '../../runtime/client-fault.ts';
import type { Logger } from '../../runtime/log.ts';
import { IndexUnavailable } from '../index/index-reader.ts';
import { addressRoutes } from './address-routes.ts';
import { type ApiContext, type Handler, type Handlers, JsonText } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';
import { chainRoutes } from './chain-routes.ts';
import { cutRoutes } from './cut-routes.ts';
import { matchRoute, readBody, readParams, readQuery } from './route-match.ts';
import { stakingRoutes } from './staking-routes.ts';
import { transactionRoutes } from './transaction-routes.ts';

const HANDLERS: Handlers = { ...addressRoutes, ...cutRoutes, ...transactionRoutes, ...chainRoutes, ...stakingRoutes };

/** `json` as bytes is ASCII. */
export type ApiAnswer = { readonly status: number; readonly json: string | Buffer; readonly waitMillis?: number };

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
  ...(refused.document.retry_after_millis === undefined ? {} : { waitMillis: refused.document.retry_after_millis }),
});

const notReady = (): Refusal => refusal('not_ready', 'the node is not ready to answer yet', {}, NOT_READY_MILLIS);

export async function dispatch(
  request: ApiRequest,
  allow: (cost: number) => void,
  dependencies: DispatchDependencies,
): Promise<ApiAnswer> {
  try {
    const mark = request.target.indexOf('?');
    const path = mark < 0 ? request.target : request.target.slice(0, mark);
    const match = matchRoute(request.method, path);
    allow(match.route.cost);
    const params = readParams(match);
    const query = readQuery(match.route.query, mark < 0 ? '' : request.target.slice(mark + 1));
    const body = match.route.body === undefined ? {} : readBody(match.route.body, request.body);
    const { limit } = { ...(query as object), ...(body as object) } as { readonly limit?: number };
    const rest = callCost(match.route, limit) - match.route.cost;
    if (rest > 0) allow(rest);
    const context = dependencies.context();
    if (context === undefined) throw notReady();
    const handler = HANDLERS[match.name] as unknown as Handler<RouteName>;
    const answer = await handler(context, { params, query, body } as Parameters<typeof handler>[1]);
    return { status: 200, json: answer instanceof JsonText ? answer.text : JSON.stringify(answer) };
  } catch (error) {
    if (error instanceof Refusal) return refusalAnswer(error);
    if (error instanceof IndexUnavailable) return refusalAnswer(notReady());
    clientFaults.report('api', error, dependencies.log);
    return refusalAnswer(refusal('internal', 'the node could not answer; nothing was wrong with the request'));
  }
}

/** Reads of the explorer: often enough to follow the chain. */
import type { RouteAnswer, RouteName } from '../../protocol/api/routes.ts';
import { nodeCall } from '../data/node.ts';
import { type NodeLoaded, useNodeDocument } from '../data/node-document.ts';
import { explorerNode } from './explorer-node.ts';

/** As the list of cuts has it. */
export type ListedCut = RouteAnswer<'cuts'>['cuts'][number];
/** As the cut that executed it lists it. */
export type ExecutedTransaction = RouteAnswer<'cutTransactions'>['transactions'][number];

/** A cut comes every 2.5 s. */
export const LIVE_MILLIS = 3_000;
/** Final data is read again only if the answer was lost. */
export const FINAL_MILLIS = 60_000;

export const useChain = <N extends RouteName>(
  path: string | undefined,
  everyMillis: number = LIVE_MILLIS,
): NodeLoaded<RouteAnswer<N>> =>
  useNodeDocument<RouteAnswer<N>>(explorerNode(), path === undefined ? undefined : { path: `/v1/${path}` }, {
    everyMillis,
    settleMillis: 0,
  });

export const readChain = <N extends RouteName>(path: string): Promise<RouteAnswer<N>> =>
  nodeCall<RouteAnswer<N>>(explorerNode(), `/v1/${path}`);

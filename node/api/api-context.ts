/** The context of the routes, and their type: one function per route of protocol/api/routes.ts. */
import { parseAddress } from '../../protocol/address.ts';
import type { ROUTES, RouteAnswer, RouteName } from '../../protocol/api/routes.ts';
import type { Infer, Schema } from '../../protocol/api/schema.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { FullNode } from '../full-node.ts';
import type { IndexReader } from '../index/index-reader.ts';
import { refusal } from './api-error.ts';

export type NodeState = 'starting' | 'syncing' | 'ready' | 'stopped';

export type ApiContext = {
  readonly node: FullNode;
  readonly index: IndexReader;
  readonly version: string;
  readonly startedMillis: number;
  readonly state: () => NodeState;
  readonly identity: { readonly identity: Bytes; readonly publicKey: Bytes };
  readonly now: SteadyClock;
};

/** JSON that a route wrote itself, where building objects first would cost too much. */
export class JsonText {
  /** Bytes are ASCII. */
  readonly text: string | Buffer;

  constructor(text: string | Buffer) {
    this.text = text;
  }
}

type BodyOf<S> = [S] extends [Schema<infer B> | undefined] ? B : never;
export type RouteRequest<N extends RouteName> = {
  readonly params: Infer<(typeof ROUTES)[N]['params']>;
  readonly query: Infer<(typeof ROUTES)[N]['query']>;
  readonly body: BodyOf<(typeof ROUTES)[N]['body']>;
};
type Answer<N extends RouteName> = RouteAnswer<N> | JsonText;
export type Handler<N extends RouteName> = (
  context: ApiContext,
  request: RouteRequest<N>,
) => Answer<N> | Promise<Answer<N>>;
export type Handlers = { readonly [N in RouteName]: Handler<N> };

export function readAddress(context: ApiContext, text: string, field: string): Bytes {
  const address = attempt(() => parseAddress(text, context.node.chain.network.name));
  if (!address.ok) throw refusal('bad_address', address.error.message, { field, reason: address.error.code });
  return address.value.payload;
}

/** Addresses of a batch in the order of the request, each once. */
export function readAddresses(context: ApiContext, texts: readonly string[]): { text: string; payload: Bytes }[] {
  return [...new Set(texts)].map((text) => ({
    text,
    payload: readAddress(context, text, `addresses[${texts.indexOf(text)}]`),
  }));
}

/**
 * A listener for a few programs of the operator, or a person: figures, metrics, a page. It serves a table of paths, each with
 * one method, and refuses everything else; web pages of others are refused by the door.
 */
import type { IncomingMessage } from 'node:http';
import type { ListenAddress } from '../command-line/command-line.ts';
import type { Logger } from '../log/log.ts';
import { Door, SMALL_DOOR } from './door.ts';

type Headers = Readonly<Record<string, string>>;
/** An object is sent as JSON. */
type SmallAnswer = { readonly status: number; readonly body: string | object; readonly headers?: Headers };
export type SmallRoute = {
  /** GET without it. */
  readonly method?: 'POST';
  answer(request: IncomingMessage): SmallAnswer | Promise<SmallAnswer>;
};

export type SmallListenerOptions = {
  /** In log lines; and in the error if the address is in use. */
  readonly name: string;
  readonly what: string;
  /** By path. */
  readonly routes: Readonly<Record<string, SmallRoute>>;
  /** What is here, for a client that asks for something else. */
  readonly offers: string;
  readonly isJson?: boolean;
  /** Of every answer, unless it has its own. */
  readonly headers?: Headers;
};

export type SmallListenerDependencies = {
  readonly log: Pick<Logger, 'error'>;
  /** Host names it accepts, besides addresses and local names. */
  readonly hosts?: readonly string[];
};

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' };

/** Rejects with listen_failed when the address cannot be listened on. A client that sends slowly is cut off after a few seconds. */
export async function listenSmall(
  address: ListenAddress,
  { name, what, routes, offers, isJson = false, headers = isJson ? JSON_HEADERS : {} }: SmallListenerOptions,
  { log, hosts = [] }: SmallListenerDependencies,
): Promise<{ readonly address: ListenAddress; close(): Promise<void> }> {
  const refusal = (status: number, error: string, more: Headers = {}): SmallAnswer => ({
    status,
    body: isJson ? { error } : `${error}\n`,
    headers: more,
  });
  const answerTo = (request: IncomingMessage, path: string): SmallAnswer | Promise<SmallAnswer> => {
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) return refusal(404, offers);
    const { method = 'GET' } = route;
    const isTaken = request.method === method || (method === 'GET' && request.method === 'HEAD');
    if (isTaken) return route.answer(request);
    return refusal(405, `use ${method}`, { allow: method === 'GET' ? 'GET, HEAD' : method });
  };
  const door = new Door(
    { name, limits: SMALL_DOOR, hosts, origins: [] },
    {
      async request(request, response, { path }) {
        const { status, body, headers: own } = await answerTo(request, path);
        response.writeHead(status, { ...headers, ...own });
        response.end(typeof body === 'string' ? body : `${JSON.stringify(body)}\n`);
      },
    },
    { log },
  );
  return { address: await door.listen(address, { what }), close: () => door.close() };
}

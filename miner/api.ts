/**
 * The miner's HTTP interface (docs/miner.md): GET /v1/stats for everyone on this machine, POST /v1/pause and /v1/resume
 * for clients that have the token. Web pages are refused: by their origin, and by a host name that is not local (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { Door, SMALL_DOOR } from '../runtime/door/door.ts';
import type { Logger } from '../runtime/log/log.ts';

export type ApiActions = {
  stats(): Record<string, unknown>;
  pause(): void;
  resume(): void;
};

export type Api = { readonly address: ListenAddress; close(): Promise<void> };

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

function isAllowed(request: IncomingMessage, token: string | undefined): boolean {
  const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  return token !== undefined && given !== undefined && timingSafeEqual(digest(given), digest(token));
}

function answer(
  response: ServerResponse,
  status: number,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers });
  response.end(`${JSON.stringify(body)}\n`);
}

export type ApiDependencies = {
  readonly actions: ApiActions;
  readonly log: Pick<Logger, 'error'>;
  /** Host names it accepts, besides addresses and local names. */
  readonly hosts?: readonly string[];
};

export async function listenForApi(
  address: ListenAddress,
  token: string | undefined,
  { actions, log, hosts = [] }: ApiDependencies,
): Promise<Api> {
  const door = new Door(
    { name: 'miner', limits: SMALL_DOOR, hosts, origins: [] },
    {
      request(request, response, { path }) {
        const isRead = request.method === 'GET' || request.method === 'HEAD';
        if (path === '/v1/stats') {
          if (isRead) answer(response, 200, actions.stats());
          else answer(response, 405, { error: 'use GET' }, { allow: 'GET, HEAD' });
        } else if (path === '/v1/pause' || path === '/v1/resume') {
          if (request.method !== 'POST') answer(response, 405, { error: 'use POST' }, { allow: 'POST' });
          else if (token === undefined) answer(response, 403, { error: 'the miner was started without --api-token' });
          else if (!isAllowed(request, token))
            answer(response, 401, { error: 'wrong token' }, { 'www-authenticate': 'Bearer' });
          else {
            if (path === '/v1/pause') actions.pause();
            else actions.resume();
            answer(response, 200, { paused: path === '/v1/pause' });
          }
        } else answer(response, 404, { error: 'only /v1/stats, /v1/pause and /v1/resume are here' });
      },
    },
    { log },
  );
  return { address: await door.listen(address, { what: 'the API' }), close: () => door.close() };
}

/**
 * The miner's HTTP interface (docs/miner.md): GET /v1/stats for everyone on this machine, POST /v1/pause and /v1/resume
 * for whoever has the token. No CORS headers are sent: pages cannot read it.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ListenAddress } from '../protocol/command-line.ts';

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

export function listenForApi(address: ListenAddress, token: string | undefined, actions: ApiActions): Promise<Api> {
  const server = createServer(
    { requestTimeout: 5_000, headersTimeout: 5_000, maxHeaderSize: 8_192 },
    (request, response) => {
      request.resume();
      const [path] = (request.url ?? '').split('?');
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
  );
  server.maxConnections = 64;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      resolve({
        address: { host: address.host, port: (server.address() as AddressInfo).port },
        close: () =>
          new Promise((done) => {
            server.close(() => done());
            server.closeAllConnections();
          }),
      });
    });
  });
}

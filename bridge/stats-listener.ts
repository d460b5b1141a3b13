/** `GET /v1/stats` of the bridge: its figures as JSON. No CORS headers are sent: pages cannot read it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ListenAddress } from '../protocol/command-line.ts';
import { listenError } from '../runtime/runtime-error.ts';

export interface StatsListener {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

export function listenForStats(address: ListenAddress, stats: () => Promise<unknown>): Promise<StatsListener> {
  const server = createServer(
    { requestTimeout: 5_000, headersTimeout: 5_000, maxHeaderSize: 8_192 },
    (request, response) => {
      request.resume();
      const [path] = (request.url ?? '').split('?');
      const send = (status: number, document: unknown): void => {
        response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
        response.end(`${JSON.stringify(document)}\n`);
      };
      if (path !== '/v1/stats') send(404, { error: 'only /v1/stats is here' });
      else if (request.method !== 'GET' && request.method !== 'HEAD') send(405, { error: 'use GET' });
      else
        stats().then(
          (document) => send(200, document),
          () => send(503, { error: 'the figures could not be had' }),
        );
    },
  );
  server.maxConnections = 64;
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenError('statistics', address, error)));
    server.listen(address.port, address.host, () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        address: { host: address.host, port },
        close: () =>
          new Promise((done) => {
            server.close(() => done());
            server.closeAllConnections();
          }),
      });
    });
  });
}

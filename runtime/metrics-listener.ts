/** `GET /metrics` and nothing else, for programs that have no other HTTP listener. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ListenAddress } from '../protocol/command-line.ts';
import type { Metrics } from './metrics.ts';
import { listenError } from './runtime-error.ts';

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface MetricsListener {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

/** Rejects with listen_failed when the address cannot be listened on. A scraper that sends slowly is cut off after a few seconds. */
export function listenForMetrics(metrics: Metrics, address: ListenAddress): Promise<MetricsListener> {
  const server = createServer(
    { requestTimeout: 5_000, headersTimeout: 5_000, maxHeaderSize: 8_192 },
    (request, response) => {
      const [path] = (request.url ?? '').split('?');
      if (path !== '/metrics') response.writeHead(404).end('only /metrics is here\n');
      else if (request.method !== 'GET' && request.method !== 'HEAD')
        response.writeHead(405, { allow: 'GET, HEAD' }).end('use GET\n');
      else response.writeHead(200, { 'content-type': METRICS_CONTENT_TYPE }).end(metrics.text());
    },
  );
  server.maxConnections = 64;
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => reject(listenError('metrics', address, error));
    server.once('error', refuse);
    server.listen(address.port, address.host, () => {
      server.off('error', refuse);
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

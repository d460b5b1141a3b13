/** `GET /metrics` and nothing else, for programs that have no other HTTP listener. */
import type { ServerResponse } from 'node:http';
import { sharedInFlight } from '../clients/in-flight.ts';
import type { ListenAddress } from '../command-line/command-line.ts';
import { Door, SMALL_DOOR } from '../door/door.ts';
import type { Logger } from '../log/log.ts';
import type { Metrics } from './metrics.ts';

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface MetricsListener {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

export type MetricsListenerDependencies = {
  readonly metrics: Metrics;
  readonly log: Pick<Logger, 'error'>;
  /** Host names it accepts, besides addresses and local names. */
  readonly hosts?: readonly string[];
};

/** Rejects with listen_failed when the address cannot be listened on. A scraper that sends slowly is cut off after a few seconds. */
export async function listenForMetrics(
  address: ListenAddress,
  { metrics, log, hosts = [] }: MetricsListenerDependencies,
): Promise<MetricsListener> {
  const text = sharedInFlight(() => metrics.text());
  const door = new Door(
    { name: 'metrics', limits: SMALL_DOOR, hosts, origins: [] },
    {
      request(request, response, { path }) {
        if (path !== '/metrics') response.writeHead(404).end('only /metrics is here\n');
        else if (request.method !== 'GET' && request.method !== 'HEAD')
          response.writeHead(405, { allow: 'GET, HEAD' }).end('use GET\n');
        else void answer(text, response, log);
      },
    },
    { log },
  );
  return { address: await door.listen(address, { what: 'metrics' }), close: () => door.close() };
}

async function answer(
  gather: () => Promise<string>,
  response: ServerResponse,
  log: Pick<Logger, 'error'>,
): Promise<void> {
  try {
    const text = await gather();
    response.writeHead(200, { 'content-type': METRICS_CONTENT_TYPE }).end(text);
  } catch (error) {
    log.error('metrics could not be gathered', { error });
    response.writeHead(500).end('metrics could not be gathered\n');
  }
}

/** `GET /v1/stats` of the bridge: its figures as JSON, for programs of the operator. Web pages are not served. */

import { sharedInFlight } from '../runtime/clients/in-flight.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { Door, SMALL_DOOR } from '../runtime/door/door.ts';
import type { Logger } from '../runtime/log/log.ts';

export interface StatsListener {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

export type StatsListenerDependencies = {
  readonly stats: () => Promise<unknown>;
  readonly log: Pick<Logger, 'error'>;
  /** Host names it accepts, besides addresses and local names. */
  readonly hosts?: readonly string[];
};

export async function listenForStats(
  address: ListenAddress,
  { stats, log, hosts = [] }: StatsListenerDependencies,
): Promise<StatsListener> {
  const gather = sharedInFlight(stats);
  const door = new Door(
    { name: 'statistics', limits: SMALL_DOOR, hosts, origins: [] },
    {
      async request(request, response, { path }) {
        const send = (status: number, document: unknown): void => {
          response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
          response.end(`${JSON.stringify(document)}\n`);
        };
        if (path !== '/v1/stats') send(404, { error: 'only /v1/stats is here' });
        else if (request.method !== 'GET' && request.method !== 'HEAD') send(405, { error: 'use GET' });
        else
          await gather().then(
            (document) => send(200, document),
            () => send(503, { error: 'the statistics could not be read' }),
          );
      },
    },
    { log },
  );
  return { address: await door.listen(address, { what: 'statistics' }), close: () => door.close() };
}

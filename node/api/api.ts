/**
 * Assembles the public API of a node: HTTP server, sockets, limits, identity. It may be started before the node is
 * ready, and answers 503 until it is.
 */

import type { NetworkName } from '../../protocol/network.ts';
import { TrustedProxies } from '../../runtime/clients/client-address.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { FullNode } from '../full-node.ts';
import { INDEX_NAME } from '../index/index-keys.ts';
import { IndexReader, IndexUnavailable } from '../index/index-reader.ts';
import type { ApiContext, NodeState } from './api-context.ts';
import { type ApiLimits, NODE_LIMITS, PUBLIC_LIMITS } from './api-limits.ts';
import { ApiHttp } from './http-server.ts';
import type { NodeIdentity } from './identity.ts';
import { RateLimiter } from './rate-limit.ts';
import { ApiSockets } from './sockets.ts';

export type ApiOptions = {
  readonly bind: ListenAddress;
  readonly version: string;
  readonly network: NetworkName;
  readonly browserOrigins?: readonly string[];
  readonly trustedProxies?: readonly string[];
  /** Host names it accepts, besides addresses and local names; a public service accepts any name. */
  readonly hosts?: readonly string[];
  /** The limits of a public service instead of those of a node of one's own. */
  readonly public?: boolean;
  /** Replaces both; for tests. */
  readonly limits?: ApiLimits;
  readonly pingMillis?: number;
  readonly replayMillis?: number;
};

export type ApiDependencies = {
  readonly identity: NodeIdentity;
  readonly now: SteadyClock;
  readonly log: Logger;
};

export type PublicApi = {
  readonly address: ListenAddress;
  /** Sockets that are open. */
  readonly sockets: () => number;
  /** Sets the node that answers; undefined removes it. */
  serve(node: FullNode | undefined): void;
  close(): Promise<void>;
};

function isIndexed(index: IndexReader): boolean {
  try {
    return index.height() >= 0;
  } catch (error) {
    if (error instanceof IndexUnavailable) return false;
    throw error;
  }
}

export async function startApi(options: ApiOptions, dependencies: ApiDependencies): Promise<PublicApi> {
  const { identity, now, log } = dependencies;
  const limits = options.limits ?? (options.public === true ? PUBLIC_LIMITS : NODE_LIMITS);
  const startedMillis = now();
  let context: ApiContext | undefined;
  let state: NodeState = 'starting';
  const shared = { context: () => context, now, log };
  const sockets = new ApiSockets(
    {
      limits,
      ...(options.pingMillis === undefined ? {} : { pingMillis: options.pingMillis }),
      ...(options.replayMillis === undefined ? {} : { replayMillis: options.replayMillis }),
    },
    shared,
  );
  const http: ApiHttp = new ApiHttp(
    {
      version: options.version,
      network: options.network,
      browserOrigins: options.browserOrigins ?? [],
      // A public service shows all clients the same.
      hosts: options.public === true ? null : (options.hosts ?? []),
      limits,
    },
    {
      ...shared,
      identity,
      rate: new RateLimiter(limits.rate),
      proxies: new TrustedProxies(options.trustedProxies ?? [], {
        option: '--trusted-proxy',
        warn: (message, fields) => log.warn(message, fields),
      }),
    },
    (request, socket, head, target) => sockets.upgrade(http, request, socket, head, target),
  );
  const address = await http.listen(options.bind);
  let stopWatching: (() => void) | undefined;
  return {
    address,
    sockets: () => sockets.open,
    serve(node) {
      stopWatching?.();
      stopWatching = node?.on('fault', () => {
        state = 'stopped';
      });
      state = node === undefined ? 'starting' : 'ready';
      context =
        node === undefined
          ? undefined
          : {
              node,
              index: new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height),
              version: options.version,
              startedMillis,
              state: () => (state === 'ready' && !node.chain.sync().synced ? 'syncing' : state),
              identity,
              now,
            };
      sockets.restarted();
      if (context !== undefined && !isIndexed(context.index))
        log.warn('the address index is missing or behind: stop the node and run svcd rebuild-index');
    },
    async close() {
      stopWatching?.();
      sockets.close();
      await http.close();
    },
  };
}

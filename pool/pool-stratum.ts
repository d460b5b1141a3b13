/**
 * The pool's stratum server: the bridge's, with a port for PPLNS and one for solo, and a sink that writes the journal.
 */

import type { NodeSource } from '../bridge/nodes/upstream.ts';
import type { StratumService } from '../bridge/service.ts';
import { startStratum } from '../bridge/start-stratum.ts';
import type { StratumServer } from '../bridge/stratum-server.ts';
import type { Verifier } from '../kernels/verifier.ts';
import { SOLO_MARK } from '../protocol/books/block-service.ts';
import type { Bytes } from '../protocol/bytes.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { SERVICES, type Service } from './journal/journal-record.ts';
import type { PoolSink } from './journal/share-sink.ts';
import type { PoolValues } from './options.ts';
import type { SharedState } from './shared/shared-state.ts';
import type { PoolDependencies } from './start/pool-dependencies.ts';

export type PoolOffer = Pick<StratumService, 'pool' | 'receipts'>;

export type PoolStratumDependencies = Pick<PoolDependencies, 'log' | 'started'> & {
  readonly bootId: Bytes;
  readonly verifier: Verifier;
  readonly sources: readonly NodeSource[];
  readonly sink: PoolSink;
  readonly shared: SharedState;
};

export async function startPoolStratum(
  values: PoolValues,
  offer: PoolOffer,
  { log, started, bootId, verifier, sources, sink, shared }: PoolStratumDependencies,
): Promise<StratumServer> {
  const service = (name: Service, tcp: ListenAddress | 'off', ws: ListenAddress | 'off'): StratumService => ({
    name,
    ...(tcp === 'off' ? {} : { listen: tcp }),
    ...(ws === 'off' ? {} : { listenWs: ws }),
    ...(tcp === 'off'
      ? {}
      : {
          fixed: values.fixedWork
            .filter((fixed) => fixed.service === name)
            .map(({ port, work }) => ({ listen: { host: tcp.host, port }, work })),
        }),
    ...offer,
    tag: { otherwise: values.poolName },
    mark: name === 'solo' ? SOLO_MARK : 0,
  });
  const listeners = {
    pplns: service('pplns', values.pplnsListen, values.pplnsListenWs),
    solo: service('solo', values.soloListen, values.soloListenWs),
  };
  const server = await startStratum(
    {
      network: values.network,
      server: 'svc-pool',
      services: SERVICES.map((name) => listeners[name]),
      values,
      dataDir: values.dataDir,
      bootId,
    },
    {
      sources,
      sink,
      verifier,
      log,
      started,
      sessions: shared.sessions,
      onBan: (key, untilMillis) => void shared.ban({ key, untilMillis }),
    },
  );
  // Those of before this start.
  for (const { key, untilMillis } of await shared.bans()) server.ban(key, untilMillis);
  shared.subscribe((news) => {
    if (news.kind === 'ban') server.ban(news.key, news.untilMillis);
    if (news.kind === 'unban') server.unban(news.key);
  });
  return server;
}

/** The pool's node: those named by --node, or one embedded in this process with its API on a loopback port. */
import { openNodeSources } from '../../bridge/nodes/node-sources.ts';
import type { NodeSource } from '../../bridge/nodes/upstream.ts';
import { threadsOf } from '../../bridge/options.ts';
import type { Verifier } from '../../kernels/verifier.ts';
import { type LedgerClock, steadyMillis } from '../../runtime/clock/clock.ts';
import { pinOf } from '../../runtime/node-client/node-identity.ts';
import type { PoolValues } from '../options.ts';
import type { PoolDependencies } from './pool-dependencies.ts';

export type PoolNode = {
  readonly sources: readonly NodeSource[];
  readonly apiUrl: string;
  /** Public APIs of other nodes. */
  readonly otherApis: readonly string[];
  /** It runs in this process, so it is trusted. */
  readonly isEmbedded: boolean;
};

export async function openPoolNode(
  values: PoolValues,
  dependencies: PoolDependencies & { readonly verifier: Verifier; readonly now: LedgerClock },
): Promise<PoolNode> {
  const { log, started, version, fault } = dependencies;
  const { sources, embedded } = await openNodeSources(
    {
      network: values.network,
      urls: values.node,
      pin: pinOf(values.nodeIdentity),
      anchors: values.anchors,
      dataDir: values.dataDir,
      threads: threadsOf(values),
    },
    { ...dependencies, fault: (reason) => fault(`node: ${reason}`) },
  );
  if (embedded === undefined) {
    const [apiUrl = '', ...otherApis] = values.nodeApi;
    return { sources, apiUrl, otherApis, isEmbedded: false };
  }
  const { startApi } = await import('../../node/api/api.ts');
  const { loadIdentity } = await import('../../node/api/identity.ts');
  const api = await startApi(
    { bind: { host: '127.0.0.1', port: 0 }, version, network: values.network },
    { identity: await loadIdentity(embedded.directory), now: steadyMillis, log: log.child('node.api') },
  );
  started("the node's API", () => api.close());
  api.serve(embedded.node);
  return { sources, apiUrl: `http://127.0.0.1:${api.address.port}`, otherApis: [], isEmbedded: true };
}

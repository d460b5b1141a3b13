/**
 * The nodes of --node and --node-api must follow one chain: templates come from the first and rewards are read from the
 * second, so with two chains all miners would work for nothing. Nodes that do not answer yet are waited for; they may
 * start after the pool.
 */
import { createApiClient } from '../../protocol/api/client.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { NodeTransport } from '../../runtime/node-client/node-transport.ts';
import { PoolError } from '../pool-error.ts';

export type NamedNode = { readonly option: '--node' | '--node-api'; readonly url: string };
export type NodeChain = NamedNode & { readonly chainId: string };

const SHOWN_CHARACTERS = 16;
const ASK_MILLIS = 3_000;

/** Why these nodes do not follow one chain; undefined if they do. */
export function chainConflict(nodes: readonly NodeChain[]): string | undefined {
  const [first, ...others] = nodes;
  const other = others.find(({ chainId }) => chainId !== first?.chainId);
  if (first === undefined || other === undefined) return undefined;
  const shown = ({ option, url, chainId }: NodeChain) =>
    `${option} ${url} follows chain ${chainId.slice(0, SHOWN_CHARACTERS)}…`;
  return `${shown(first)} and ${shown(other)}: name listeners of the same node, or of nodes that are peers`;
}

export type NodeChainsDependencies = {
  readonly transport: NodeTransport;
  readonly log: Logger;
  /** Throws if the data directory is of another chain. */
  readonly claim: (chainId: string) => Promise<void>;
};

export class NodeChains {
  readonly #unasked: NamedNode[];
  readonly #known: NodeChain[] = [];
  readonly #told = new Set<string>();
  readonly #dependencies: NodeChainsDependencies;
  #isClaimed = false;

  constructor(nodes: readonly NamedNode[], dependencies: NodeChainsDependencies) {
    this.#unasked = [...nodes];
    this.#dependencies = dependencies;
  }

  /** Queries the nodes that have not answered yet. Throws when two are on different chains, or the directory is of another. */
  async look(): Promise<void> {
    const asked = this.#unasked.splice(0);
    await Promise.all(asked.map((node) => this.#ask(node)));
    const conflict = chainConflict(this.#known);
    if (conflict !== undefined) throw new PoolError('nodes_differ', conflict);
    const [first] = this.#known;
    if (first === undefined || this.#isClaimed) return;
    await this.#dependencies.claim(first.chainId);
    this.#isClaimed = true;
  }

  async #ask(node: NamedNode): Promise<void> {
    const { transport, log } = this.#dependencies;
    try {
      const client = createApiClient({ baseUrl: node.url, attempts: 1, timeoutMillis: ASK_MILLIS }, transport);
      const { chain_id: chainId } = await client.nodeIdentity();
      this.#known.push({ ...node, chainId });
    } catch (error) {
      this.#unasked.push(node);
      if (this.#told.has(node.url)) return;
      this.#told.add(node.url);
      log.warn('a node does not answer: the pool waits for it', {
        ...node,
        reason: (error as Error).message,
        remedy:
          node.option === '--node' ? 'start svcd, or name its --mining-bind' : 'start svcd, or name its --api-bind',
      });
    }
  }
}

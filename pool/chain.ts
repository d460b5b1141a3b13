/** What the accountant reads of the chain, and how it gets it from a node's public API. */
import type { ApiClient } from '../protocol/api/client.ts';
import { ApiError } from '../protocol/api/client.ts';
import type { CutStreamItem } from '../protocol/api/client-events.ts';
import { followCuts } from '../protocol/api/client-events.ts';
import type { StreamDependencies } from '../protocol/api/client-socket.ts';
import type { BlockDocument } from '../protocol/api/documents.ts';
import { fromHex } from '../protocol/bytes.ts';
import { targetFromBytes } from '../protocol/target.ts';

export interface Chain {
  /** Every finalized cut above a height, once and in order; a range that cannot be replayed is named instead. */
  cuts(afterHeight: number | undefined, signal: AbortSignal): AsyncIterable<CutStreamItem>;
  /** The target of work on a cut. */
  targetAt(height: number): Promise<bigint>;
  headHeight(): Promise<number>;
  block(blockId: string): Promise<BlockDocument | undefined>;
}

export function chainOfApi(client: ApiClient, dependencies: StreamDependencies): Chain {
  return {
    cuts: (afterHeight, signal) => followCuts({ baseUrl: client.baseUrl, afterHeight, signal }, dependencies),
    async targetAt(height) {
      const [cut] = (await client.cuts({ before: height + 1, limit: 1 })).cuts;
      if (cut?.height !== height) throw new ApiError('client_bad_answer', 200, `the node does not show cut ${height}`);
      return targetFromBytes(fromHex(cut.target));
    },
    async headHeight() {
      return (await client.nodeSync()).finalized_height;
    },
    async block(blockId) {
      try {
        return await client.block({ id: blockId });
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    },
  };
}

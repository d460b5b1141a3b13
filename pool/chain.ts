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
  /** The target of work on the head. */
  target(): Promise<bigint>;
  headHeight(): Promise<number>;
  block(blockId: string): Promise<BlockDocument | undefined>;
}

export function chainOfApi(client: ApiClient, dependencies: StreamDependencies): Chain {
  return {
    cuts: (afterHeight, signal) => followCuts({ baseUrl: client.baseUrl, afterHeight, signal }, dependencies),
    async target() {
      const { cuts } = await client.cuts({ limit: 1 });
      const [head] = cuts;
      if (head === undefined) throw new ApiError('client_bad_answer', 200, 'the node lists no cut');
      return targetFromBytes(fromHex(head.target));
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

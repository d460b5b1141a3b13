/** The accountant's view of the chain, read from a node's public API. */
import type { ApiClient } from '../../protocol/api/client.ts';
import { ApiError } from '../../protocol/api/client.ts';
import type { CutStreamItem } from '../../protocol/api/client-events.ts';
import { followCuts } from '../../protocol/api/client-events.ts';
import type { StreamDependencies } from '../../protocol/api/client-socket.ts';
import type { BlockDocument } from '../../protocol/api/documents.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { targetFromBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { type CutRange, cutsThatPaid, type PaidCut } from './missed-cuts.ts';
import type { BlockSource, Witness } from './reward-statements.ts';

/** The most cuts of one answer. */
const CUTS_PAGE = 100;

export interface Chain {
  /**
   * Every finalized cut above a height, once and in order; a range that cannot be replayed is reported instead. Fails
   * when the connection is lost: after that, an older copy of the node may answer.
   */
  cuts(afterHeight: number | undefined, signal: AbortSignal): AsyncIterable<CutStreamItem>;
  /** The cuts of a missed range that paid an address, in order. */
  cutsThatPaid?(address: string, range: CutRange): AsyncIterable<PaidCut>;
  /** The target of work on a cut. */
  targetAt(height: number): Promise<bigint>;
  /** Work of a block on each cut of a range, as far as the node still has them. */
  blockWorks?(first: number, last: number): Promise<ReadonlyMap<number, bigint>>;
  headHeight(): Promise<number>;
  block(blockId: string): Promise<BlockDocument | undefined>;
  /** Which chain the node follows. */
  chainId?(): Promise<string>;
  /** Cuts of an interval, which a development chain chooses. */
  intervalCuts?(): Promise<number>;
  /** The cut of a height; undefined if the node has not reached it. */
  cutIdAt?(height: number): Promise<string | undefined>;
  /** Other nodes that are asked about rewards too. */
  readonly others?: readonly Witness[];
}

const blockSource = (client: ApiClient): BlockSource => ({
  async headHeight() {
    return (await client.nodeSync()).finalized_height;
  },
  async block(blockId) {
    try {
      return await client.block({ id: blockId });
    } catch (error) {
      // Checked by code: an unproven answer is ignored, whatever its status.
      if (error instanceof ApiError && error.code === 'block_unknown') return undefined;
      throw error;
    }
  },
});

/** The first client is the node that is followed. */
export function chainOfApi(
  client: ApiClient,
  dependencies: StreamDependencies,
  others: readonly ApiClient[] = [],
): Chain {
  return {
    ...blockSource(client),
    others: others.map((other) => ({ ...blockSource(other), name: other.baseUrl })),
    cuts: (afterHeight, signal) =>
      followCuts({ baseUrl: client.baseUrl, afterHeight, signal, failsWhenLost: true }, dependencies),
    cutsThatPaid: (address, range) => cutsThatPaid(client, address, range),
    async targetAt(height) {
      const [cut] = (await client.cuts({ before: height + 1, limit: 1 })).cuts;
      if (cut?.height !== height) throw new ApiError('client_bad_answer', 200, `the node does not show cut ${height}`);
      return targetFromBytes(fromHex(cut.target));
    },
    async blockWorks(first, last) {
      const works = new Map<number, bigint>();
      for (let before: number | undefined = last + 1; before !== undefined && before > first; ) {
        const page = await client.cuts({ before, limit: Math.min(CUTS_PAGE, before - first) });
        for (const cut of page.cuts) works.set(cut.height, workOfTarget(targetFromBytes(fromHex(cut.target))));
        before = page.next_before;
      }
      return works;
    },
    async chainId() {
      return (await client.chainHead()).chain_id;
    },
    async intervalCuts() {
      return (await client.emission()).interval_cuts;
    },
    async cutIdAt(height) {
      const [cut] = (await client.cuts({ before: height + 1, limit: 1 })).cuts;
      return cut?.height === height ? cut.cut_id : undefined;
    },
  };
}

/**
 * Cuts that are too old for the event stream. Those that paid the pool are read over HTTP, for the whole range: a block
 * that is in no journal is known only by its reward.
 */
import type { ApiClient } from '../../protocol/api/client.ts';
import { ApiError } from '../../protocol/api/client.ts';
import type { CutFinalized } from '../../protocol/api/frames.ts';

export type PaidCut = Pick<CutFinalized, 'cut' | 'rewards'>;
export type CutRange = { readonly from: number; readonly to: number };

const PAGE = 1024;
/** Ten million changes of one address, and ten times the rewards that a cut can pay: a node must not keep the books reading for ever. */
const MAX_PAGES = 10_000;

type Node = Pick<ApiClient, 'addressChanges' | 'cutRewards'>;

const refused = (why: string): ApiError => new ApiError('client_bad_answer', 200, why);

/** In the order of heights, each with all its rewards. Fails if the node does not have all of them. */
export async function* cutsThatPaid(node: Node, address: string, { from, to }: CutRange): AsyncGenerator<PaidCut> {
  let last = from - 1;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { changes, indexed_height, next_cursor } = await node.addressChanges({
      addresses: [address],
      after_height: Math.max(0, from - 1),
      limit: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const { kind, source, finalized_height: height } of changes) {
      if (height > to) return;
      if (kind !== 'received' || source !== 'work_reward' || height <= last) continue;
      last = height;
      yield await cutAt(node, height);
    }
    if (next_cursor === undefined) {
      if (indexed_height < to) throw refused(`the node has indexed up to cut ${indexed_height}, not to ${to}`);
      return;
    }
    cursor = next_cursor;
  }
  throw refused('the changes of the pool’s address do not end');
}

async function cutAt(node: Node, height: number): Promise<PaidCut> {
  const rewards: PaidCut['rewards'][number][] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await node.cutRewards({ height, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
    rewards.push(...answer.rewards);
    if (answer.next_cursor === undefined) return { cut: answer.cut, rewards };
    cursor = answer.next_cursor;
  }
  throw refused(`the rewards of cut ${height} do not end`);
}

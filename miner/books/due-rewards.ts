/**
 * Whether the rewards of a slice are in credit lists when they must be (books rule 24), for a miner: a pool that publishes no list shows nothing that could be
 * false. With a node all rewards of the pool's address are looked for; without one, those that the pool itself names.
 */
import { bookedService } from '../../protocol/block-service.ts';
import { type BooksSources, readBlocks, readRewards } from '../../protocol/books-evidence.ts';
import type { BooksService } from '../../protocol/books-slice.ts';
import { type PublishedTerms, rewardTransaction, termsAt } from '../../protocol/books-verdict.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

/** A list waits for rewards, and as long again for one that is held; then some cuts for a pool that is late. */
const DUE_CUTS = 2 * REGISTRATION_WINDOW + 16;
const SERVICES = ['pplns', 'solo'] as const;
const PAGE = 50;
/** Blocks that a node is asked for in one slice. */
const MAX_BLOCKS = 1_000;

export type MissingReward = {
  /** `not_named`: the pool says nothing of it. `no_list`: the list is not there. `other_service`: the block is of this service, and the pool says of the other. */
  readonly why: 'not_named' | 'no_list' | 'other_service';
  /** A block, or the transaction of its reward. */
  readonly reward: string;
};

/** The node did not answer, or has not read that far. */
export class NodeSilence extends Error {}

const ofNode = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch((error: Error) => {
    throw new NodeSilence(error.message);
  });

type Terms = PublishedTerms & { readonly height?: unknown };
type Sources = Pick<BooksSources, 'pool' | 'node'>;
type Named = { readonly block: string; readonly service: BooksService; readonly list: number | null };

/** The newest slice whose lists are due, by the node or else by what the pool says; undefined before the first. */
export async function dueSlice(terms: Terms, service: BooksService, { node }: Sources): Promise<number | undefined> {
  const own = termsAt(terms.terms[service], Number.MAX_SAFE_INTEGER);
  const first = terms.terms[service][0];
  if (own === undefined || first === undefined || !(own.slice_cuts > 0)) return undefined;
  const asked = { addresses: [terms.address], after_height: 0, limit: 1 };
  const height = node === null ? terms.height : (await ofNode(node.addressChanges(asked))).indexed_height;
  if (!Number.isSafeInteger(height)) return undefined;
  const slice = Math.floor(((height as number) - DUE_CUTS) / own.slice_cuts) - 1;
  return slice < first.from_slice ? undefined : slice;
}

/** What of a slice's rewards is missing, for a miner of a service. The first one is enough. */
export async function missingReward(
  { service, slice }: { readonly service: BooksService; readonly slice: number },
  { address, terms }: Terms,
  sources: Sources,
): Promise<MissingReward | undefined> {
  const named = new Map<string, Named>();
  for (const each of SERVICES)
    for (const { block_id: block, credited_with: list } of await readBlocks(each, slice, sources))
      named.set(rewardTransaction(block), { block, service: each, list });
  const { node } = sources;
  const cuts = termsAt(terms[service], slice)?.slice_cuts ?? 0;
  const first = slice * cuts + REGISTRATION_WINDOW;
  const rewards = node === null ? named : await ofNode(readRewards(address, first, first + cuts - 1, node));
  const own: Named[] = [];
  const others: Named[] = [];
  for (const transaction of rewards.keys()) {
    const found = named.get(transaction);
    if (found === undefined) return { why: 'not_named', reward: transaction };
    (found.service === service ? own : others).push(found);
  }
  const lists = new Map(own.flatMap((each) => (each.list === null ? [] : [[each.list, each.block] as const])));
  for (const [list, block] of lists)
    if (list <= slice && !(await isListed(service, list, sources)) && (await hasWork(service, slice, sources)))
      return { why: 'no_list', reward: block };
  // Where this service has a list, the verdict over it looks at the blocks of the other.
  if (node === null || lists.size > 0 || others.length > MAX_BLOCKS) return undefined;
  for (const { block } of others) {
    const { extranonce } = await ofNode(node.block({ id: block }));
    if (bookedService(fromHex(extranonce)) === service) return { why: 'other_service', reward: block };
  }
  return undefined;
}

type Slices = { readonly slices: readonly { slice: number; credits: unknown; total_work: string }[] };

async function isListed(service: BooksService, list: number, { pool }: Sources): Promise<boolean> {
  const { slices } = (await pool(`slices/${service}?limit=1&cursor=${list + 1}-0`)) as Slices;
  return slices.some(({ slice, credits }) => slice === list && credits !== null && credits !== undefined);
}

/** A new pool's first blocks wait for the first slice that has work (rule 4). */
async function hasWork(service: BooksService, due: number, { pool }: Sources): Promise<boolean> {
  if (service === 'solo') return true;
  const { slices } = (await pool(`slices/${service}?limit=${PAGE}&cursor=${due + 1}-0`)) as Slices;
  return slices.some(({ total_work: work }) => work !== '0');
}

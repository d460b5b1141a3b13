/**
 * Whether the rewards of a slice are in credit lists when they must be (books rule 24), for a miner: a pool that publishes no list shows nothing that could be
 * false. With a node all rewards of the pool's address are looked for; without one, those that the pool itself names.
 */
import { bookedService } from '../../protocol/block-service.ts';
import { type BooksSources, readBlocks, readRewards } from '../../protocol/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books-slice.ts';
import { rewardTransaction, termsAt } from '../../protocol/books-verdict.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { Terms } from './pool-reads.ts';

/** A list waits for rewards, and as long again for one that is held; then some cuts for a pool that is late. */
const DUE_CUTS = 2 * REGISTRATION_WINDOW + 16;
const SERVICES = ['pplns', 'solo'] as const;
const PAGE = 50;
/** Blocks that a node is asked for in one slice. */
const MAX_BLOCKS = 1_000;
/** Lists that the pool is asked for in one look at a slice; the others have their turn in the next. */
const MAX_LISTS = 8;

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

type Sources = Pick<BooksSources, 'pool' | 'node'>;
/** `list` as the pool says it: of any form. */
type Named = { readonly block: string; readonly service: BooksService; readonly list: number | null };

/** `again`: the first list that could not be asked for yet. */
export type Looked = { readonly missing?: MissingReward | undefined; readonly again?: number | undefined };

/** The newest slice whose lists are due, and the one that the books are in; undefined before the first is due. */
export function dueSlices(
  { terms }: Terms,
  service: BooksService,
  { height, said }: { readonly height: number; readonly said: number },
): { readonly due: number; readonly open: number } | undefined {
  const own = termsAt(terms[service], Number.MAX_SAFE_INTEGER);
  const first = terms[service][0];
  if (own === undefined || first === undefined || own.slice_cuts === 0) return undefined;
  if (height === Number.MAX_SAFE_INTEGER) return undefined;
  const due = Math.floor((height - DUE_CUTS) / own.slice_cuts) - 1;
  return due < first.from_slice ? undefined : { due, open: Math.floor(said / own.slice_cuts) };
}

export async function indexedHeight(address: string, node: NonNullable<BooksSources['node']>): Promise<number> {
  return (await ofNode(node.addressChanges({ addresses: [address], after_height: 0, limit: 1 }))).indexed_height;
}

type Asked = {
  readonly service: BooksService;
  readonly slice: number;
  /** The first list that is asked for; those before it were there. */
  readonly from: number;
  readonly due: number;
  readonly open: number;
};

/** What of a slice's rewards is missing, for a miner of a service. The first one is enough. */
export async function lookForRewards(asked: Asked, { address, terms }: Terms, sources: Sources): Promise<Looked> {
  const { service, slice } = asked;
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
    if (found === undefined) return { missing: { why: 'not_named', reward: transaction } };
    (found.service === service ? own : others).push(found);
  }
  const { missing, again } = await missingList(asked, own, sources);
  // Where this service has a list, the verdict over it looks at the blocks of the other.
  const hasList = own.some(({ list }) => list !== null);
  if (missing !== undefined || node === null || hasList || others.length > MAX_BLOCKS) return { missing, again };
  for (const { block } of others) {
    const { extranonce } = await ofNode(node.block({ id: block }));
    if (bookedService(fromHex(extranonce)) === service) return { missing: { why: 'other_service', reward: block } };
  }
  return {};
}

/** Blocks count with the list of their slice or a later one, up to that of the slice that is open now; those that are due must be there. */
async function missingList(
  { service, slice, from, due, open }: Asked,
  own: readonly Named[],
  sources: Sources,
): Promise<Looked> {
  const lists = new Map<number, string>();
  for (const { list, block } of own) {
    if (list === null) continue;
    if (!isWhole(list) || list < slice || list > open) return { missing: { why: 'no_list', reward: block } };
    if (list >= from) lists.set(list, block);
  }
  const ascending = [...lists].sort(([a], [b]) => a - b);
  const ready = ascending.filter(([list]) => list <= due).slice(0, MAX_LISTS);
  for (const [list, block] of ready)
    if (!(await isListed(service, list, sources)) && (await hasWork(service, list, sources)))
      return { missing: { why: 'no_list', reward: block } };
  return { again: ascending[ready.length]?.[0] };
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

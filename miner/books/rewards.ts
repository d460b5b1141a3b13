/**
 * Checks that the rewards of each slice are in credit lists in time (books rule 24): a pool that publishes no list shows
 * nothing that could be false. With a node all rewards of the pool's address are checked; without one, those that the
 * pool itself names.
 */
import { bookedService } from '../../protocol/books/block-service.ts';
import { type BooksSources, readBlocks, readRewards, TooManyChanges } from '../../protocol/books/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { sliceCutsOf } from '../../protocol/books/books-terms.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { PoolOmission } from '../../protocol/books/pool-silence.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { Finding, Suspicions } from './books-alarms.ts';
import type { Heights } from './heights.ts';
import { judged, type Terms } from './pool-reads.ts';

/** Slices that are looked at in one round, of new ones and of those that wait for a later list. */
const MAX_SLICES = 8;
/** A miner that was offline for longer starts with this many slices. */
const MAX_MISSED = 1_024;
/** Limit of slices to be checked again; beyond it, newer slices wait until the oldest are done. */
const MAX_AGAIN = 1_024;
/** A list waits for rewards, and as long again for one that is held; then some cuts for a pool that is late. */
const DUE_CUTS = 2 * REGISTRATION_WINDOW + 16;
/** A reward in no list this long (four hours) after its slice's lists were due counts as withheld (rule 27). */
const WITHHELD_CUTS = 5_760;
const SERVICES = ['pplns', 'solo'] as const;
const PAGE = 50;
/** Blocks queried at a node per slice. */
const MAX_BLOCKS = 1_000;
/** Lists requested per check of a slice; the others follow in the next. */
const MAX_LISTS = 8;

type MissingReward = {
  /**
   * `not_named`: the pool does not list it. `no_list`: the list is missing. `not_in_list`: the list does not contain
   * it. `other_service`: the block is of this service, but the pool books it under the other.
   */
  readonly why: 'not_named' | 'no_list' | 'not_in_list' | 'other_service';
  /** A block, or the transaction of its reward. */
  readonly reward: string;
};

/** The node did not answer, or has not read that far. */
class NodeSilence extends Error {}

const ofNode = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch((error: Error) => {
    throw error instanceof TooManyChanges ? error : new NodeSilence(error.message);
  });

type Sources = Pick<BooksSources, 'pool' | 'node'>;
type RewardSources = Sources & {
  /** Blocks in a list; none if the list is false. */
  readonly blocksOf: (service: BooksService, slice: number) => Promise<ReadonlySet<string>>;
  /** Reports an existing list. False if too many wait to be judged; then it must be reported again. */
  readonly onList: (service: BooksService, slice: number) => boolean;
};

/** `list` as given by the pool, unchecked. */
type Named = { readonly block: string; readonly service: BooksService; readonly list: number | null };

/** Check again when the lists of slice `at` are due, from list `from` on. */
type Again = { readonly at: number; readonly from: number };

/** `withheld`: rewards that the pool holds, or defers to a missing list, for too long. */
type Looked = {
  readonly missing?: MissingReward | undefined;
  readonly again?: Again | undefined;
  readonly withheld?: number | undefined;
  /** The pool's address received too many outputs to read all: only rewards named by the pool were checked. */
  readonly isCrowded?: boolean;
};

/** The newest slice whose lists are due, and the one that the books are in; undefined before the first is due. */
export function dueSlices(
  { terms }: Terms,
  service: BooksService,
  { height, said }: { readonly height: number; readonly said: number },
): { readonly due: number; readonly open: number } | undefined {
  const cuts = sliceCutsOf(terms);
  const first = terms[service][0];
  if (cuts === undefined || first === undefined || height === Number.MAX_SAFE_INTEGER) return undefined;
  const due = Math.floor((height - DUE_CUTS) / cuts) - 1;
  return due < first.from_slice ? undefined : { due, open: Math.floor(said / cuts) };
}

const MALFORMED: Looked = { missing: { why: 'not_named', reward: 'malformed' } };

/** What a round of the check looks at, and by. */
type Round = {
  readonly service: BooksService;
  readonly terms: Terms;
  readonly due: number;
  readonly open: number;
  readonly sources: RewardSources;
  readonly suspicions: Suspicions;
};

/**
 * Rewards are checked slice by slice, so that none is skipped. A suspicious slice is checked until it is cleared or
 * confirmed; one whose blocks are in a later list is checked again when that list is due.
 */
export class DueRewards {
  /** By service: the newest slice whose rewards were checked. */
  readonly #through = new Map<BooksService, number>();
  /** Services with due slices that were not checked yet. */
  readonly #behind = new Set<BooksService>();
  /** By `service/slice`: when a slice is checked again. */
  readonly #again = new Map<string, Again>();

  /** More is due than was checked: the next round follows soon. */
  get isBehind(): boolean {
    return this.#behind.size > 0;
  }

  async *check(
    service: BooksService,
    terms: Terms,
    { said, known, isApart }: Heights,
    sources: RewardSources,
    suspicions: Suspicions,
  ): AsyncGenerator<Finding> {
    // The miner's own node does not answer: not the pool's fault.
    if (sources.node !== null && known === undefined) return;
    // Books that are some minutes behind the ledger do not have the newest lists yet.
    const height = Math.min(said ?? Number.MAX_SAFE_INTEGER, known ?? Number.MAX_SAFE_INTEGER);
    const found = dueSlices(terms, service, { height, said: said ?? height });
    if (found === undefined) return;
    const slices = isApart ? { ...found, open: Number.MAX_SAFE_INTEGER } : found;
    const round = { service, terms, ...slices, sources, suspicions };
    try {
      yield* this.#new(round);
      yield* this.#later(round);
    } catch (error) {
      if (!(error instanceof NodeSilence)) throw error;
    }
  }

  async *#new(round: Round): AsyncGenerator<Finding> {
    const { service, due } = round;
    // Capped at what is due now: a false height must not prevent the check of later slices.
    const through = Math.max(Math.min(this.#through.get(service) ?? due - 1, due), due - MAX_MISSED);
    this.#through.set(service, through);
    if (due > through + MAX_SLICES) this.#behind.add(service);
    else this.#behind.delete(service);
    for (let slice = through + 1; slice <= Math.min(due, through + MAX_SLICES); slice++) {
      if (!(yield* this.#slice(slice, slice, round))) return;
      this.#through.set(service, slice);
    }
  }

  async *#later(round: Round): AsyncGenerator<Finding> {
    const { service, due } = round;
    const ready = [...this.#again].filter(([name, { at }]) => name.startsWith(`${service}/`) && at <= due);
    for (const [name, { from }] of ready.slice(0, MAX_SLICES))
      yield* this.#slice(Number(name.split('/')[1]), from, round);
  }

  /** False if it looks wrong and must be checked again. */
  async *#slice(slice: number, from: number, round: Round): AsyncGenerator<Finding, boolean> {
    const { service, due, open, terms, sources, suspicions } = round;
    const what = `${service}/${slice}`;
    const look = () => lookForRewards({ service, slice, from, due, open }, terms, sources);
    const { missing, again, withheld, isCrowded } = await judged(look, MALFORMED);
    if (!suspicions.isSure(`rewards ${what}`, missing !== undefined || withheld !== undefined)) return false;
    if (missing !== undefined) yield ['rewards_hidden', what, { service, slice, ...missing }];
    if (withheld !== undefined) yield ['rewards_withheld', what, { service, slice, rewards: withheld }];
    if (isCrowded) yield ['rewards_crowded', what, { service, slice }];
    if (again === undefined) this.#again.delete(what);
    else if (this.#again.has(what) || this.#again.size < MAX_AGAIN) this.#again.set(what, again);
    else return false;
    return true;
  }

  save(): { readonly due: unknown; readonly again: unknown } {
    return { due: [...this.#through], again: [...this.#again] };
  }

  /** A malformed state is ignored. */
  restore({ due, again }: { readonly due?: unknown; readonly again?: unknown }): void {
    for (const [service, slice] of Array.isArray(due) ? due : [])
      if (isWhole(slice)) this.#through.set(service as BooksService, slice);
    for (const [name, list] of Array.isArray(again) ? again.slice(-MAX_AGAIN) : [])
      if (typeof name === 'string' && isWhole(list?.at) && isWhole(list.from))
        this.#again.set(name, { at: list.at, from: list.from });
  }
}

type Asked = {
  readonly service: BooksService;
  readonly slice: number;
  /** The first list to request; earlier ones were found. */
  readonly from: number;
  readonly due: number;
  readonly open: number;
};

/**
 * The missing rewards of a slice, for a miner of a service. A slice with many dust outputs must not block the check of
 * later ones.
 */
async function lookForRewards(asked: Asked, terms: Terms, sources: RewardSources): Promise<Looked> {
  try {
    return await lookByLedger(asked, terms, sources);
  } catch (error) {
    if (!(error instanceof TooManyChanges)) throw error;
    return { ...(await lookByLedger(asked, terms, { ...sources, node: null })), isCrowded: true };
  }
}

/** The first one that is missing is enough. */
async function lookByLedger(asked: Asked, { address, terms }: Terms, sources: RewardSources): Promise<Looked> {
  const { service, slice } = asked;
  const named = new Map<string, Named>();
  for (const each of SERVICES)
    for (const { block_id: block, credited_with: list } of await readBlocks(each, slice, sources))
      named.set(rewardTransaction(block), { block, service: each, list });
  const { node } = sources;
  const cuts = sliceCutsOf(terms) ?? 0;
  const first = slice * cuts + REGISTRATION_WINDOW;
  const rewards = node === null ? named : await ofNode(readRewards(address, first, first + cuts - 1, node));
  const own: Named[] = [];
  const others: Named[] = [];
  for (const transaction of rewards.keys()) {
    const found = named.get(transaction);
    if (found === undefined) return { missing: { why: 'not_named', reward: transaction } };
    (found.service === service ? own : others).push(found);
  }
  const looked = await missingList(asked, own, { ...sources, cuts });
  // If this service has a list, its verdict covers the blocks of the other.
  const hasList = own.some(({ list }) => list !== null);
  if (looked.missing !== undefined || node === null || hasList || others.length > MAX_BLOCKS) return looked;
  for (const { block } of others) {
    const { extranonce } = await ofNode(node.block({ id: block }));
    if (bookedService(fromHex(extranonce)) === service) return { missing: { why: 'other_service', reward: block } };
  }
  return looked;
}

/**
 * Blocks count with the list of their slice or a later one, up to that of the slice that is open now; those that are
 * due must be there. Whether the slice's own list contains them is part of that list's verdict; the verdict of a later
 * list does not cover them, so it is checked here.
 */
async function missingList(
  { service, slice, from, due, open }: Asked,
  own: readonly Named[],
  { cuts, ...sources }: RewardSources & { readonly cuts: number },
): Promise<Looked> {
  const lists = new Map<number, string[]>();
  let [held, later] = [0, 0];
  for (const { list, block } of own) {
    if (list === null) {
      held++;
      continue;
    }
    if (!isWhole(list) || list < slice || list > open) return { missing: { why: 'no_list', reward: block } };
    const beside = lists.get(list);
    if (beside !== undefined) beside.push(block);
    else if (list >= from) lists.set(list, [block]);
    if (list > due) later++;
  }
  const ascending = [...lists].sort(([a], [b]) => a - b);
  const ready = ascending.filter(([list]) => list <= due).slice(0, MAX_LISTS);
  for (const [list, blocks] of ready) {
    if (!(await isListed(service, list, { ...sources, isClosed: true }))) {
      if (await hasWork(service, list, sources)) return { missing: { why: 'no_list', reward: blocks[0] as string } };
      continue;
    }
    if (!sources.onList(service, list)) return { again: { at: list, from: list } };
    if (list !== slice) {
      const listed = await sources.blocksOf(service, list);
      const reward = blocks.find((block) => !listed.has(block));
      if (reward !== undefined) return { missing: { why: 'not_in_list', reward } };
    }
  }
  const overdue = slice + Math.ceil(WITHHELD_CUTS / Math.max(1, cuts));
  if (held + later > 0 && due >= overdue) return { withheld: held + later };
  const next = ascending[ready.length]?.[0];
  if (next !== undefined && next <= due) return { again: { at: next, from: next } };
  // By then the pool may name any list: one requested before, or an even later one. Finally it must be in one.
  return held + later === 0 ? {} : { again: { at: Math.min(next ?? overdue, overdue), from: slice } };
}

type Slices = { readonly slices: readonly { slice: number; credits: unknown; total_work: string }[] };

/** A closed slice missing on its page is an error: a list cannot be hidden together with its slice. */
function insistShown(slice: number, { slices }: Slices): void {
  if (slices[0]?.slice !== slice) throw new PoolOmission(`the pool does not show its slice ${slice}`);
}

/** Whether a slice's list exists. */
export async function isListed(
  service: BooksService,
  list: number,
  { pool, isClosed = false }: Pick<Sources, 'pool'> & { readonly isClosed?: boolean },
): Promise<boolean> {
  const page = (await pool(`slices/${service}?limit=1&cursor=${list + 1}-0`)) as Slices;
  if (isClosed) insistShown(list, page);
  const { slices } = page;
  return slices.some(({ slice, credits }) => slice === list && credits !== null && credits !== undefined);
}

/** A new pool's first blocks wait for the first slice that has work (rule 4). */
async function hasWork(service: BooksService, due: number, { pool }: Sources): Promise<boolean> {
  if (service === 'solo') return true;
  const page = (await pool(`slices/${service}?limit=${PAGE}&cursor=${due + 1}-0`)) as Slices;
  insistShown(due, page);
  const { slices } = page;
  return slices.some(({ total_work: work }) => work !== '0');
}

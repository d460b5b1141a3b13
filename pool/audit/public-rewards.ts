/**
 * Every reward of the pool's address is in one credit list, and in no other (books rule 7). Each list is checked
 * separately elsewhere; here they are checked together: a block in two lists credits the same money twice, and rewards
 * that never enter a list are withheld from the miners.
 */

import { type BooksSources, insistReadable } from '../../protocol/books/books-evidence.ts';
import { type BooksService, readWork, type SliceRecord } from '../../protocol/books/books-slice.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { type Findings, REMEDIES } from './findings.ts';
import type { AddressMoney, LedgerReward } from './public-money.ts';
import { type BlockPlace, fieldsOf, listOf, type PublishedRecord, readBlockPlace } from './public-rows.ts';

/** A list is made when all rewards of its slice are known, and waits as long again for one that is held (rules 7 and 15). */
const LIST_CUTS = 2 * REGISTRATION_WINDOW;
/** This long after the cut that paid it (four hours), a reward in no list is considered withheld (rule 27). */
const WITHHELD_CUTS = 5_760;

type Listed = Pick<SliceRecord, 'service' | 'slice' | 'slice_cuts'>;

/** The list of each block. */
export class CreditedBlocks {
  readonly #lists = new Map<string, Listed>();
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  add(list: Listed, blocks: readonly { readonly transaction_id: string; readonly block_id: string }[]): void {
    const nameOf = ({ slice, service }: Listed) => `slice ${slice} of ${service}`;
    for (const { transaction_id: transaction, block_id: block } of blocks) {
      const before = this.#lists.get(transaction);
      if (before !== undefined)
        this.#findings.add(
          `block ${block}`,
          `in the list of ${nameOf(list)}`,
          `in that of ${nameOf(before)} too`,
          REMEDIES.published,
        );
      this.#lists.set(transaction, list);
    }
  }

  listOf(transaction: string): Listed | undefined {
    return this.#lists.get(transaction);
  }
}

export type RewardReads = {
  readonly pool: BooksSources['pool'];
  readonly records: ReadonlyMap<BooksService, readonly PublishedRecord[]>;
  readonly credited: CreditedBlocks;
  /** The first slice of the terms, and the length of slices: used while there is no record. */
  readonly opening: { readonly from_slice: number; readonly slice_cuts: number } | undefined;
  /** Rewards due by this cut are in the records: pool and node had both reached it before the records were read. */
  readonly height: number;
  /** The node's current cut. The list that credits a block is looked up last, perhaps hours after the records. */
  readonly now: () => Promise<number>;
};

type Named = BlockPlace & { readonly service: BooksService };
type Sum = { readonly rewards: number; readonly amount: string };

/**
 * Rewards of the ledger in no list yet, those of them that cannot be checked, and those in a later list than their own.
 */
export type OpenRewards = Sum & { readonly moved: Sum; readonly withheld: Sum; readonly notChecked: readonly string[] };

const sumOf = (rewards: readonly LedgerReward[]): Sum => ({
  rewards: rewards.length,
  amount: String(rewards.reduce((sum, { amount }) => sum + amount, 0n)),
});

const listName = ({ credited_with: slice, service }: Named): string => `credited with slice ${slice} of ${service}`;

const anchorOf = ({ height }: LedgerReward): number => height - REGISTRATION_WINDOW;

/** Finds rewards that are in no list and should be. */
export async function auditRewards(
  money: Pick<AddressMoney, 'rewards'>,
  reads: RewardReads,
  findings: Findings,
): Promise<OpenRewards> {
  const open = money.rewards.filter(({ transaction }) => reads.credited.listOf(transaction) === undefined);
  const moved = money.rewards.filter((reward) => {
    const list = reads.credited.listOf(reward.transaction);
    return list !== undefined && list.slice > Math.floor(anchorOf(reward) / list.slice_cuts);
  });
  const { first, cuts, newest } = slicing(reads);
  const isOpen = async (slice: number) => slice <= newest + 1 || slice <= Math.floor((await reads.now()) / cuts);
  const places = new Places(reads.pool);
  const isLong = ({ height }: LedgerReward) => height + WITHHELD_CUTS <= reads.height;
  let [early, held, later, untold] = [0, 0, 0, 0];
  const withheld: LedgerReward[] = [];
  for (const reward of open) {
    const anchor = anchorOf(reward);
    if (anchor < first) {
      early++;
      continue;
    }
    if (anchor + cuts + LIST_CUTS > reads.height) {
      // Independent of the slice length: rule 27 counts from the cut that paid.
      if (isLong(reward)) withheld.push(reward);
      continue;
    }
    const named = await places.of(Math.floor(anchor / cuts), reward.transaction);
    if (named === 'untold') {
      untold++;
      continue;
    }
    const name = `reward ${reward.transaction} of cut ${reward.height}`;
    const paid = `${reward.amount} atoms paid to the pool`;
    if (named === undefined) findings.add(name, 'in no list', paid, REMEDIES.published);
    else if (named.credited_with === null) {
      held++;
      if (isLong(reward)) withheld.push(reward);
    } else if (!(await isOpen(named.credited_with)))
      findings.add(name, listName(named), `${paid}; that slice is not open yet`, REMEDIES.published);
    else if (isOverdue(named.service, named.credited_with, cuts, reads))
      findings.add(name, listName(named), `${paid} that are not in that list`, REMEDIES.published);
    else {
      later++;
      if (isLong(reward)) withheld.push(reward);
    }
  }
  const notChecked: string[] = [];
  if (early > 0) notChecked.push(`${early} rewards of the pool’s address for work before its first slice`);
  if (held > 0) notChecked.push(`${held} rewards that the pool holds and credits to nobody yet`);
  if (later > 0)
    notChecked.push(`${later} rewards that, according to the pool, will be in a list that does not exist yet`);
  if (untold > 0) notChecked.push(`${untold} rewards that are in no list: the pool does not answer where they are`);
  return { ...sumOf(open), moved: sumOf(moved), withheld: sumOf(withheld), notChecked };
}

/**
 * The first cut of the books, how long slices are, and the newest closed slice. From the records, which the payouts
 * commit. S never changes (rule 3): records of another length are reported elsewhere and change no deadline here.
 */
function slicing({ records, opening }: RewardReads) {
  const firsts = SERVICES.flatMap((service) => records.get(service)?.[0] ?? []);
  const cuts = Math.max(1, firsts[0]?.slice_cuts ?? opening?.slice_cuts ?? 1);
  const starts = firsts.length > 0 ? firsts.map(({ slice }) => slice) : [opening?.from_slice ?? 0];
  return {
    first: Math.min(...starts) * cuts,
    cuts,
    newest: Math.max(-1, ...SERVICES.map((service) => records.get(service)?.at(-1)?.slice ?? -1)),
  };
}

/**
 * Whether the list that should contain a block must exist by now. PPLNS lists wait for the first slice that has work
 * (rule 4).
 */
function isOverdue(service: BooksService, slice: number, cuts: number, { records, height }: RewardReads): boolean {
  const hasWork = (records.get('pplns') ?? []).some((record) => readWork(record.total_work) > 0n);
  return (service === 'solo' || hasWork) && (slice + 1) * cuts + LIST_CUTS <= height;
}

/** The lists that, according to the pool, credit the blocks of a slice. */
class Places {
  readonly #pool: BooksSources['pool'];
  #slice = -1;
  /** Undefined if the pool did not answer: then only that slice is not checked. */
  #blocks: ReadonlyMap<string, Named> | undefined = new Map();

  constructor(pool: BooksSources['pool']) {
    this.#pool = pool;
  }

  /** Call it in the order of slices: the last one is cached. */
  async of(slice: number, transaction: string): Promise<Named | 'untold' | undefined> {
    if (slice !== this.#slice)
      this.#blocks = await this.#read(slice).catch((error: unknown) => {
        if (error instanceof PoolSilence) return undefined;
        throw error;
      });
    this.#slice = slice;
    return this.#blocks === undefined ? 'untold' : this.#blocks.get(transaction);
  }

  async #read(slice: number): Promise<Map<string, Named>> {
    const blocks = new Map<string, Named>();
    for (const service of SERVICES) {
      const answer = fieldsOf(await this.#pool(`slices/${service}/${slice}/blocks`));
      const rows = listOf(answer.blocks, Number.POSITIVE_INFINITY);
      insistReadable(rows);
      for (const row of rows.map(readBlockPlace)) blocks.set(rewardTransaction(row.block_id), { ...row, service });
    }
    return blocks;
  }
}

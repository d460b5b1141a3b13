/**
 * Every reward of the pool's address is in one credit list, and in no other (books rule 7). Each list is judged by itself elsewhere; here they are taken together: a
 * block in two lists credits the same money twice, and rewards that no list ever gets to are kept from the miners.
 */
import type { BooksSources } from '../../protocol/books-evidence.ts';
import { type BooksService, readWork } from '../../protocol/books-slice.ts';
import { type PublishedTerms, rewardTransaction } from '../../protocol/books-verdict.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { SERVICES } from '../journal-record.ts';
import { type Findings, REMEDIES } from './findings.ts';
import type { AddressMoney } from './public-money.ts';
import { type BlockPlace, fieldsOf, listOf, type PublishedRecord, readBlockPlace } from './public-rows.ts';

/** A list is made when all rewards of its slice are known, and waits as long again for one that is held (rules 7 and 15). */
const LIST_CUTS = 2 * REGISTRATION_WINDOW;
const MAX_BLOCKS = 20_000;

/** Which list has which block. */
export class CreditedBlocks {
  readonly #lists = new Map<string, string>();
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  add(list: string, blocks: readonly { readonly transaction_id: string; readonly block_id: string }[]): void {
    for (const { transaction_id: transaction, block_id: block } of blocks) {
      const before = this.#lists.get(transaction);
      if (before !== undefined)
        this.#findings.add(`block ${block}`, `in the list of ${list}`, `in that of ${before} too`, REMEDIES.published);
      this.#lists.set(transaction, list);
    }
  }

  has(transaction: string): boolean {
    return this.#lists.has(transaction);
  }
}

export type RewardReads = {
  readonly pool: BooksSources['pool'];
  readonly terms: PublishedTerms;
  readonly records: ReadonlyMap<BooksService, readonly PublishedRecord[]>;
  readonly credited: CreditedBlocks;
  /** The newest cut that the books have taken in, as the pool says. */
  readonly height: number;
};

type Named = BlockPlace & { readonly service: BooksService };

/** What of the ledger's rewards no list has yet, and what of that cannot be checked. */
export type OpenRewards = { readonly rewards: number; readonly amount: string; readonly notChecked: readonly string[] };

/** Finds rewards that are in no list and should be. */
export async function auditRewards(
  money: Pick<AddressMoney, 'rewards'>,
  reads: RewardReads,
  findings: Findings,
): Promise<OpenRewards> {
  const open = money.rewards.filter(({ transaction }) => !reads.credited.has(transaction));
  const { first, longest, slicesOf } = slicing(reads);
  const places = new Places(reads.pool);
  let [early, held] = [0, 0];
  for (const reward of open) {
    const anchor = reward.height - REGISTRATION_WINDOW;
    if (anchor < first) {
      early++;
      continue;
    }
    if (anchor + longest + LIST_CUTS > reads.height) continue;
    const named = await places.of(slicesOf(anchor), reward.transaction);
    const name = `reward ${reward.transaction} of cut ${reward.height}`;
    const paid = `${reward.amount} atoms paid to the pool`;
    if (named === undefined) findings.add(name, 'in no list', paid, REMEDIES.published);
    else if (named.credited_with === null) held++;
    else if (isOverdue(named.service, named.credited_with, longest, reads))
      findings.add(
        name,
        `credited with slice ${named.credited_with} of ${named.service}`,
        `${paid} that are not in that list`,
        REMEDIES.published,
      );
  }
  const notChecked: string[] = [];
  if (early > 0) notChecked.push(`${early} rewards of the pool’s address for work before its first slice`);
  if (held > 0) notChecked.push(`${held} rewards that the pool holds and credits to nobody yet`);
  const amount = open.reduce((sum, reward) => sum + reward.amount, 0n);
  return { rewards: open.length, amount: String(amount), notChecked };
}

/** The first cut of the books, the most cuts that a slice has, and the slices that an anchor may lie in: S may have changed. */
function slicing({ terms }: RewardReads) {
  const all = SERVICES.flatMap((service) => terms.terms[service] ?? []);
  const lengths = [...new Set(all.map((each) => each.slice_cuts))];
  return {
    first: Math.min(...all.map((each) => each.from_slice * each.slice_cuts)),
    longest: Math.max(0, ...lengths),
    slicesOf: (anchor: number): number[] => [...new Set(lengths.map((cuts) => Math.floor(anchor / cuts)))],
  };
}

/** Whether the list that should have a block must be there by now. PPLNS lists wait for the first slice that has work (rule 4). */
function isOverdue(service: BooksService, slice: number, longest: number, { records, height }: RewardReads): boolean {
  const hasWork = (records.get('pplns') ?? []).some((record) => readWork(record.total_work) > 0n);
  return (service === 'solo' || hasWork) && (slice + 1) * longest + LIST_CUTS <= height;
}

/** Where the pool says that blocks of a slice are credited. */
class Places {
  readonly #pool: BooksSources['pool'];
  #slice = -1;
  #blocks = new Map<string, Named>();

  constructor(pool: BooksSources['pool']) {
    this.#pool = pool;
  }

  /** Ask in the order of slices: those of one are kept. */
  async of(slices: readonly number[], transaction: string): Promise<Named | undefined> {
    for (const slice of slices) {
      if (slice !== this.#slice) this.#blocks = await this.#read(slice);
      this.#slice = slice;
      const named = this.#blocks.get(transaction);
      if (named !== undefined) return named;
    }
    return undefined;
  }

  async #read(slice: number): Promise<Map<string, Named>> {
    const blocks = new Map<string, Named>();
    for (const service of SERVICES) {
      const answer = fieldsOf(await this.#pool(`slices/${service}/${slice}/blocks`));
      for (const row of listOf(answer.blocks, MAX_BLOCKS).map(readBlockPlace))
        blocks.set(rewardTransaction(row.block_id), { ...row, service });
    }
    return blocks;
  }
}

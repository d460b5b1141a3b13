/**
 * `svc-pool audit --public`: recomputes the published data of a pool, without its database (books rule 24). Slices from
 * their leaves, records and W from each other, every credit list by the one verifier, commitments and payments against
 * a node of the auditor's choice.
 */

import { parseAtoms } from '../../protocol/amount.ts';
import { type BooksSources, gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { type BooksService, FIRST_CHAIN, type SliceRecord } from '../../protocol/books/books-slice.ts';
import { heldWindowFee } from '../../protocol/books/books-terms.ts';
import { judgeList, type NotChecked, recordsFault } from '../../protocol/books/books-verdict.ts';
import { readPoolList } from '../../protocol/books/pool-list.ts';
import { toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { PoolError } from '../pool-error.ts';
import { type Finding, Findings, REMEDIES } from './findings.ts';
import { pageOfKnown } from './known-records.ts';
import { auditNumbers, type Reached, readCommitments } from './public-commitments.ts';
import { auditLedger, indexedHeight } from './public-ledger.ts';
import { type AddressMoney, type MoneyReport, readAddressMoney } from './public-money.ts';
import { PaymentsUnderWay, readPayments, sumsOf } from './public-payments.ts';
import { pagesOf } from './public-reads.ts';
import { auditRewards, CreditedBlocks, type OpenRewards } from './public-rewards.ts';
import { type PublishedRecord, readLeaf, readRecord } from './public-rows.ts';
import { AuditSections, type Suspicion } from './public-sections.ts';
import { auditTerms, type ReadTerms, readTerms } from './public-terms.ts';

/**
 * `false`: something is wrong. `unchecked`: nothing was found to be wrong, but not everything could be checked.
 * `suspicious`: the same, for longer than an honest pool needs (rule 27).
 */
export type PublicVerdict = 'holds' | 'unchecked' | 'suspicious' | 'false';

export type PublicReport = {
  readonly verdict: PublicVerdict;
  readonly address: string;
  readonly network: string;
  /** The newest cut that the books have taken in, as the pool says. */
  readonly height: number | null;
  readonly slices: number;
  readonly lists: { readonly proven: number; readonly unchecked: number; readonly false: number };
  /** Why lists could not be proven, and how many. */
  readonly missing: Readonly<Partial<Record<NotChecked, number>>>;
  readonly commitments: number;
  readonly payments: number;
  /** Spends of the pool's address; null without a node. */
  readonly money: MoneyReport | null;
  readonly unpaid: ReturnType<typeof sumsOf>['unpaid'] | null;
  /** Rewards of the ledger that are in no list yet; null without a node. */
  readonly uncredited: Pick<OpenRewards, 'rewards' | 'amount'> | null;
  /** Rewards in a later list than that of their anchor's slice: the pool says that they came to light late. Null without a node. */
  readonly moved: OpenRewards['moved'] | null;
  /** The cut that the node has read up to; null without a node. */
  readonly ledger_height: number | null;
  /** Parts that were not checked at all. */
  readonly not_checked: readonly string[];
  readonly suspicions: readonly Suspicion[];
  readonly differences: number;
  readonly findings: readonly Finding[];
};

/** Only the pool and the finder can check this, so an audit is complete without it. */
const NEVER_CHECKED: NotChecked = 'solo_finder';

/** The audit itself follows blocks into later lists. */
const FOLLOWED: NotChecked = 'later_list';

/** The audit reads each payout of the ledger. */
const PAYOUTS = 'commitments' satisfies NotChecked;

/** Cuts by which a node may be behind the pool's, or the pool's books behind the node. */
const MAX_LAG = 16;
/** Looks at books that are late and come nearer: those of a busy pool on a fast chain are, for a moment. */
const MAX_WAITS = 16;
/** An hour: books further behind the ledger do not show what is due. */
const MAX_BEHIND = 1_440;
/** Slices of one service: twenty years and more. */
const MAX_RECORDS = 200_000;
const MAX_LEAVES = 2_000_000;
const KEPT_ANSWERS = 64;

export const WITHOUT_A_NODE =
  'the ledger: rewards, targets, commitments, payments and what left the pool’s address (name a node with --node-api)';

class PublicAudit {
  readonly #sources: BooksSources;
  /** Waits until answers are newer than what was read so far. */
  readonly #settle: () => Promise<void>;
  readonly #findings: Findings;
  readonly #records = new Map<BooksService, PublishedRecord[]>();
  readonly #missing: Partial<Record<NotChecked, number>> = {};
  readonly #lists = { proven: 0, unchecked: 0, false: 0 };
  /** Lists that lack nothing but the payouts of their time: behind many merges a list alone does not find them. */
  #uncommitted = 0;
  readonly #credited = new Map<string, bigint>();
  readonly #blocks: CreditedBlocks;
  #fees = 0n;
  #moved: OpenRewards['moved'] | null = null;
  /** Slices whose first cut the node has not read. */
  readonly #targetless: string[] = [];
  /** Whether rewards were followed into the lists that have them. */
  #isFollowed = false;
  #terms: ReadTerms | undefined;
  /**
   * The newest cut in the books before records were read, according to the pool: everything due by then is in the
   * records.
   */
  #reached = 0;
  /** The newest cut that the pool has named, and whether it named an older one after it. */
  #newest = 0;
  #isOlder = false;
  readonly #sections: AuditSections;
  readonly #notChecked: string[];
  readonly #suspicions: Suspicion[];
  /** Lists of one service need the same pages repeatedly. */
  readonly #answers = new BoundedMap<string, Promise<unknown>>(KEPT_ANSWERS);

  constructor(sources: BooksSources, settle: () => Promise<void>, findings: Findings) {
    this.#sources = sources;
    this.#settle = settle;
    this.#findings = findings;
    this.#sections = new AuditSections(findings);
    this.#notChecked = this.#sections.notChecked;
    this.#suspicions = this.#sections.suspicions;
    this.#blocks = new CreditedBlocks(findings);
  }

  #pool = (path: string): Promise<unknown> => {
    if (path === 'terms') return this.#readTerms();
    if (!path.startsWith('slices/')) return this.#sources.pool(path);
    const known = this.#answers.get(path);
    if (known !== undefined) return known;
    const { pool } = this.#sources;
    const asked = pageOfKnown(path, this.#records, pool).then((page) => page ?? pool(path));
    this.#answers.set(path, asked);
    // A failed read may succeed later, so it is not cached.
    asked.catch(() => this.#answers.delete(path));
    return asked;
  };

  /** A pool has one address and one network: all parts of the audit must use the same ones. */
  async #readTerms(): Promise<ReadTerms> {
    const published = readTerms(await this.#sources.pool('terms'));
    // All lists are judged by the lowest fees that the pool named meanwhile.
    const from = heldWindowFee(this.#terms?.window_fee_from, published.window_fee_from);
    const terms = from === undefined ? published : { ...published, window_fee_from: from };
    const { address } = terms;
    const height = terms.height ?? 0;
    this.#isOlder ||= height < this.#newest;
    this.#newest = Math.max(this.#newest, height);
    this.#terms ??= terms;
    if (from !== undefined) this.#terms = { ...this.#terms, window_fee_from: from };
    // The network too: an address is of one.
    if (address !== this.#terms.address) {
      const [first, now] = [this.#terms, terms].map((each) => `${each.address} (${each.network})`);
      this.#findings.add('the pool’s address', `${now} now`, `${first} before`, REMEDIES.published);
      return { ...terms, address: this.#terms.address, network: this.#terms.network };
    }
    return terms;
  }

  /**
   * Reads in the order of books rule 26, so that new payouts and slices of a running pool are not findings: later
   * answers explain earlier ones.
   */
  async run(): Promise<PublicReport> {
    const findings = this.#findings;
    const { pool, node } = this.#sources;
    const terms = await this.#firstTerms();
    const network = terms.network as NetworkName;
    const money =
      node === null
        ? undefined
        : await this.#sections.run('the pool’s address', () => readAddressMoney(node, terms.address), undefined);
    if (money !== undefined) await this.#booksOf(money.height);
    const payments = await this.#sections.run('payments', () => readPayments(pool, network), [], 'payments');
    const commitments = await this.#sections.run('commitments', () => readCommitments(pool), [], 'commitments');
    this.#reached = (await this.#sections.run('terms', () => this.#readTerms(), terms)).height ?? 0;
    await this.#settle();
    for (const service of SERVICES)
      await this.#sections.run(`slices of ${service}`, () => this.#slices(service), undefined, 'slices');
    const [unread] = this.#targetless;
    if (unread !== undefined)
      this.#notChecked.push(
        `targets of ${this.#targetless.length} slices, the first ${unread}: the node has not read these cuts`,
      );
    for (const service of SERVICES)
      for (const record of this.#records.get(service) ?? [])
        if (record.credits !== null)
          await this.#sections.run(nameOf(record), () => this.#list(record), undefined, 'lists');
    const isRead = this.#sections.have('numbers of payouts', ['payments']);
    const underWay = isRead ? new PaymentsUnderWay(payments, new Map()).payouts : Number.POSITIVE_INFINITY;
    for (const gap of auditNumbers(commitments, underWay, findings))
      this.#notChecked.push(`${gap}: the pool says that it is still under way`);
    const hasSums = this.#sections.have('what each account was paid', ['slices', 'lists', 'payments']);
    const sums = hasSums ? sumsOf(payments, this.#credited) : undefined;
    const overpaid = sums?.overpaid ?? [];
    const published = {
      address: terms.address,
      payments,
      commitments,
      records: this.#records,
      fees: this.#fees,
      credited: this.#credited,
    };
    const { money: spent, isEachRead } =
      node === null
        ? { money: null, isEachRead: false }
        : await auditLedger({ node, money }, { ...published, reached: this.#bookReach() }, this.#sections, findings);
    if (node === null) this.#notChecked.push(WITHOUT_A_NODE);
    if (isEachRead && findings.count === 0) this.#areCommitted();
    if (spent === null && overpaid.length > 0)
      this.#notChecked.push(
        `${overpaid.length} accounts that were paid more than their credits: whether of the pool’s own money`,
      );
    const uncredited = money === undefined ? null : await this.#rewards(money);
    return {
      verdict: this.#verdict(),
      address: terms.address,
      network: terms.network,
      height: this.#height,
      slices: [...this.#records.values()].reduce((sum, records) => sum + records.length, 0),
      lists: this.#lists,
      missing: this.#missing,
      commitments: commitments.length,
      payments: payments.length,
      money: spent,
      unpaid: sums?.unpaid ?? null,
      uncredited,
      moved: this.#moved,
      ledger_height: money?.height ?? null,
      not_checked: this.#notChecked,
      suspicions: this.#suspicions,
      differences: findings.count,
      findings: findings.list,
    };
  }

  /** Waits for books that have taken in the history that was read. What they lack of it could not be checked; those that stand still are not waited for. */
  async #booksOf(height: number): Promise<void> {
    let before = -1;
    for (let looks = 0; looks < MAX_WAITS; looks++) {
      await this.#settle();
      // A lost answer is reported where what it says is needed.
      const reached = (await this.#readTerms().catch(() => undefined))?.height ?? 0;
      if (reached >= height || reached <= before) return;
      before = reached;
    }
  }

  /** Each payout of the ledger was compared with these records: that is more than those of a list's time. */
  #areCommitted(): void {
    this.#lists.proven += this.#uncommitted;
    this.#lists.unchecked -= this.#uncommitted;
    delete this.#missing[PAYOUTS];
  }

  /** Whether the books were replaced by an older copy while they were read: what was read before does not belong to the rest. */
  async haveFallen(): Promise<boolean> {
    await this.#readTerms().catch(() => undefined);
    return this.#isOlder;
  }

  async #firstTerms(): Promise<ReadTerms> {
    try {
      return await this.#readTerms();
    } catch (error) {
      if (error instanceof PoolError) throw error;
      throw new PoolError('pool_unreachable', `there is no pool at that address: ${(error as Error).message}`);
    }
  }

  /** The newest cut that the books have taken in, as the pool says. */
  get #height(): number | null {
    return this.#terms?.height ?? null;
  }

  /** Checks that every reward is in one list. Reports if pool and node are at different cuts. */
  async #rewards(money: AddressMoney): Promise<PublicReport['uncredited']> {
    const height = this.#height ?? 0;
    if (height > money.height + MAX_LAG)
      this.#notChecked.push(`cuts ${money.height + 1} to ${height}: the node has not read them`);
    if (this.#reached + MAX_LAG < money.height)
      this.#notChecked.push(`cuts ${this.#reached + 1} to ${money.height}: the pool’s books have not taken them in`);
    const behind = money.height - this.#reached;
    if (behind > MAX_BEHIND) this.#suspicions.push({ name: 'books_behind', says: `by ${behind} cuts` });
    if (!this.#sections.have('rewards', ['slices', 'lists'])) return null;
    const reads = {
      pool: this.#sources.pool,
      records: this.#records,
      credited: this.#blocks,
      opening: this.#terms?.terms.pplns[0],
      height: Math.min(this.#reached, money.height),
      now: () => indexedHeight(this.#sources.node as NonNullable<BooksSources['node']>, money),
    };
    const open = await this.#sections.run('rewards', () => auditRewards(money, reads, this.#findings), null);
    if (open === null) return null;
    this.#isFollowed = true;
    this.#notChecked.push(...open.notChecked);
    this.#moved = open.moved;
    const { rewards, amount } = open.withheld;
    if (rewards > 0) this.#suspicions.push({ name: 'rewards_withheld', says: `${rewards} rewards, ${amount} atoms` });
    return { rewards: open.rewards, amount: open.amount };
  }

  #verdict(): PublicVerdict {
    if (this.#findings.count > 0) return 'false';
    if (this.#suspicions.length > 0) return 'suspicious';
    const isComplete = Object.keys(this.#missing).every(
      (each) => each === NEVER_CHECKED || (each === FOLLOWED && this.#isFollowed),
    );
    return isComplete && this.#notChecked.length === 0 ? 'holds' : 'unchecked';
  }

  #bookReach(): Reached {
    const sliceCuts = this.#records.get('pplns')?.at(-1)?.slice_cuts ?? this.#terms?.terms.pplns[0]?.slice_cuts ?? 1;
    return { height: this.#reached, sliceCuts };
  }

  async #slices(service: BooksService): Promise<void> {
    const findings = this.#findings;
    const records: PublishedRecord[] = [];
    const network = this.#terms?.network as NetworkName;
    const read = (row: unknown) => readRecord(row, service, network);
    const pages = pagesOf(this.#sources.pool, `slices/${service}`, { rows: 'slices', read, most: MAX_RECORDS });
    for await (const record of pages) records.push(record);
    records.reverse();
    this.#records.set(service, records);
    // After the records: terms may have changed while they were read.
    const terms = await this.#readTerms();
    if (service === SERVICES[0]) auditTerms(terms, findings);
    this.#terms = { ...(this.#terms as ReadTerms), terms: terms.terms };
    await this.#ending(service, records, terms);
    if (records.length === 0) return;
    if (records[0]?.previous !== FIRST_CHAIN)
      findings.add(`slices of ${service}`, `begin with ${records[0]?.slice}`, 'the first one', REMEDIES.published);
    const fault = recordsFault(records, service, terms);
    if (fault !== undefined) findings.add(`records of ${service}`, 'published', `false: ${fault}`, REMEDIES.published);
    for (const record of records) {
      await this.#sections.run(nameOf(record), () => this.#leaves(record), undefined);
      await this.#sections.run(nameOf(record), () => this.#target(record), undefined);
    }
  }

  /** Slices close by height alone (rule 2): all closed slices must be published, and no others. */
  async #ending(service: BooksService, records: readonly PublishedRecord[], terms: ReadTerms): Promise<void> {
    const newest = records.at(-1);
    const first = terms.terms[service][0];
    const cuts = newest?.slice_cuts ?? first?.slice_cuts;
    if (cuts === undefined) return;
    const due = Math.floor(this.#reached / cuts) - 1;
    const has = newest?.slice ?? (first?.from_slice ?? 0) - 1;
    if (has < due)
      this.#findings.add(`slices of ${service}`, `end with ${has}`, `${due} is closed`, REMEDIES.published);
    const earlyAt = (height: number) => records.find((record) => (record.slice + 1) * record.slice_cuts > height);
    if (earlyAt(terms.height ?? 0) === undefined) return;
    // The terms may be older than the records, and the books close slices before they record the cut: the ledger
    // decides.
    await this.#settle();
    const { node } = this.#sources;
    const height = (await this.#readTerms()).height ?? 0;
    const asked = { addresses: [terms.address], after_height: height, limit: 1 };
    const reached = node === null ? 0 : (await node.addressChanges(asked)).indexed_height;
    const early = earlyAt(Math.max(height, reached));
    if (early === undefined) return;
    if (node === null) {
      this.#notChecked.push(`${nameOf(early)}: closed before the cut that the pool names was reached`);
      return;
    }
    const closes = (early.slice + 1) * early.slice_cuts;
    this.#findings.add(nameOf(early), 'closed', `not before cut ${closes}`, REMEDIES.published);
  }

  async #leaves(record: SliceRecord): Promise<void> {
    const leaves: { key: Uint8Array; value: bigint }[] = [];
    const path = `slices/${record.service}/${record.slice}/leaves`;
    const read = (row: unknown) => readLeaf(row, record.network);
    const most = Math.min(MAX_LEAVES, record.accounts);
    const pages = pagesOf(this.#sources.pool, path, { rows: 'leaves', read, most });
    if (record.accounts > 0) for await (const leaf of pages) leaves.push(leaf);
    const { root } = sumTree(leaves);
    const name = nameOf(record);
    this.#findings.compare(`${name}: root`, record.root, toHex(root.hash), REMEDIES.published);
    this.#findings.compare(`${name}: total`, record.total_work, root.sum, REMEDIES.published);
    this.#findings.compare(`${name}: accounts`, record.accounts, root.count, REMEDIES.published);
  }

  async #target(record: SliceRecord): Promise<void> {
    if (this.#sources.node === null) return;
    const height = record.slice * record.slice_cuts;
    const [cut] = (await this.#sources.node.cuts({ before: height + 1, limit: 1 })).cuts;
    if (cut?.height === height)
      this.#findings.compare(`${nameOf(record)}: target`, record.target, cut.target, REMEDIES.published);
    else this.#targetless.push(nameOf(record));
  }

  async #list(record: SliceRecord): Promise<void> {
    const list = await readPoolList(record.service, record.slice, (path) => this.#pool(path.replace(/^\//, '')));
    const name = `credits of ${nameOf(record)}`;
    if (list.slice !== record.slice || list.service !== record.service) {
      this.#findings.add(name, 'the list of something else', 'this list', REMEDIES.published);
      return;
    }
    // Valid or not, these are the pool's credits: payments are compared with them.
    for (const { address, amount } of list.credits)
      this.#credited.set(address, (this.#credited.get(address) ?? 0n) + parseAtoms(amount));
    this.#fees += parseAtoms(list.fee);
    this.#blocks.add(record, list.blocks);
    const evidence = await gatherEvidence(list, { ...this.#sources, pool: this.#pool, hasAllRecords: true });
    const verdict = judgeList(list, evidence);
    this.#lists[verdict.verdict]++;
    if (verdict.verdict === 'false') {
      this.#findings.add(name, 'published', `false: ${verdict.reason}`, REMEDIES.published);
      return;
    }
    if (verdict.verdict !== 'unchecked') return;
    for (const each of verdict.missing) this.#missing[each] = (this.#missing[each] ?? 0) + 1;
    if (verdict.missing.every((each) => each === PAYOUTS)) this.#uncommitted++;
  }
}

const nameOf = ({ slice, service }: Pick<SliceRecord, 'slice' | 'service'>): string => `slice ${slice} of ${service}`;

/** Readings of books that fall while they are read. What a pool shows that falls each time counts as it is. */
const MAX_READINGS = 3;

export async function auditPublic(
  sources: BooksSources,
  settle: () => Promise<void> = async () => undefined,
): Promise<PublicReport> {
  for (let reading = 1; ; reading++) {
    const audit = new PublicAudit(sources, settle, new Findings());
    const report = await audit.run();
    if (report.verdict !== 'false' || reading === MAX_READINGS || !(await audit.haveFallen())) return report;
  }
}

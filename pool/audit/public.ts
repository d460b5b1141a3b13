/**
 * `svc-pool audit --public`: what a pool publishes, recomputed by anybody, without its database (books rule 24). Slices from their leaves, records and W from
 * each other, every credit list by the one verifier, commitments and payments against a node of the auditor's choice.
 */
import { parseAddress } from '../../protocol/address.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { type BooksSources, type CommitmentRow, gatherEvidence } from '../../protocol/books-evidence.ts';
import { type BooksService, FIRST_CHAIN, type SliceRecord } from '../../protocol/books-slice.ts';
import { judgeList, type NotChecked, type PublishedTerms, recordsFault } from '../../protocol/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import { readPoolList } from '../../protocol/pool-list.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import type { TermsDocument } from '../api/books-view.ts';
import type { PaymentDocument } from '../api/documents.ts';
import { SERVICES } from '../journal-record.ts';
import { PoolError } from '../pool-error.ts';
import { CutReader } from './cut-reader.ts';
import { type Finding, Findings, REMEDIES } from './findings.ts';
import { auditNumbers, CommitmentAudit, readCommitments } from './public-commitments.ts';
import { type AddressMoney, auditMoney, type MoneyReport, readAddressMoney } from './public-money.ts';
import { auditOutputs, auditSums, paidByTransaction, readPayments } from './public-payments.ts';
import { pagesOf } from './public-reads.ts';

/** `false`: something does not hold. `unchecked`: nothing was found to be wrong, and not everything could be checked. */
export type PublicVerdict = 'holds' | 'unchecked' | 'false';

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
  /** What left the pool's address; null without a node. */
  readonly money: MoneyReport | null;
  /** The cut that the node has read up to; null without a node. */
  readonly ledger_height: number | null;
  /** What was not checked at all. */
  readonly not_checked: readonly string[];
  readonly differences: number;
  readonly findings: readonly Finding[];
};

/** Only the pool and the finder can know this, so an audit without it is complete. */
const NEVER_CHECKED: NotChecked = 'solo_finder';

/** Cuts by which a node may be behind the pool's. */
const MAX_LAG = 16;

export const WITHOUT_A_NODE =
  'the ledger: rewards, targets, commitments, payments and what left the pool’s address (name a node with --node-api)';

type Published = SliceRecord & { readonly credits: object | null };

class PublicAudit {
  readonly #sources: BooksSources;
  /** Waits until answers are newer than what was read so far. */
  readonly #settle: () => Promise<void>;
  readonly #findings: Findings;
  readonly #records = new Map<BooksService, Published[]>();
  readonly #missing: Partial<Record<NotChecked, number>> = {};
  readonly #lists = { proven: 0, unchecked: 0, false: 0 };
  readonly #credited = new Map<string, bigint>();
  #fees = 0n;
  readonly #notChecked: string[] = [];
  /** Lists of one service ask for the same pages again and again. */
  readonly #answers = new Map<string, Promise<unknown>>();

  constructor(sources: BooksSources, settle: () => Promise<void>, findings: Findings) {
    this.#sources = sources;
    this.#settle = settle;
    this.#findings = findings;
  }

  #pool = (path: string): Promise<unknown> => {
    if (!path.startsWith('slices/') && path !== 'terms') return this.#sources.pool(path);
    const known = this.#answers.get(path) ?? this.#sources.pool(path);
    this.#answers.set(path, known);
    if (this.#answers.size > 512) this.#answers.delete(this.#answers.keys().next().value as string);
    return known;
  };

  /** Reads in the order of books rule 26, so that new payouts and slices of a running pool are no findings: what is read later explains what was read before. */
  async run(): Promise<PublicReport> {
    const findings = this.#findings;
    const { pool, node } = this.#sources;
    const terms = await this.#terms();
    const money =
      node === null
        ? undefined
        : await this.#section('the pool’s address', () => readAddressMoney(node, terms.address), undefined);
    if (money !== undefined) await this.#settle();
    const payments = await this.#section('payments', () => readPayments(pool), []);
    const commitments = await this.#section('commitments', () => readCommitments(pool), []);
    await this.#settle();
    for (const service of SERVICES) await this.#section(`slices of ${service}`, () => this.#slices(service), undefined);
    for (const service of SERVICES)
      for (const record of this.#records.get(service) ?? [])
        if (record.credits !== null) await this.#section(nameOf(record), () => this.#list(record), undefined);
    auditNumbers(commitments, findings);
    auditSums(payments, this.#credited, findings);
    const spent = node === null || money === undefined ? null : await this.#ledger(money, payments, commitments);
    if (node === null) this.#notChecked.push(WITHOUT_A_NODE);
    const height = terms.height ?? null;
    if (money !== undefined && height !== null && height > money.height + MAX_LAG)
      this.#notChecked.push(`cuts ${money.height + 1} to ${height}: the node has not read them`);
    return {
      verdict: this.#verdict(),
      address: terms.address,
      network: terms.network,
      height,
      slices: [...this.#records.values()].reduce((sum, records) => sum + records.length, 0),
      lists: this.#lists,
      missing: this.#missing,
      commitments: commitments.length,
      payments: payments.length,
      money: spent,
      ledger_height: money?.height ?? null,
      not_checked: this.#notChecked,
      differences: findings.count,
      findings: findings.list,
    };
  }

  /** What the node does not answer is not checked; what the pool does not answer is a finding. An unreachable pool ends the audit. */
  async #section<T>(what: string, work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof PoolError) throw error;
      const { message } = error as Error;
      if (error instanceof ApiError) this.#notChecked.push(`${what}: ${message}`);
      else this.#findings.add(what, 'cannot be audited', message, REMEDIES.failed);
      return otherwise;
    }
  }

  async #terms(): Promise<TermsDocument> {
    try {
      const terms = (await this.#sources.pool('terms')) as TermsDocument;
      parseAddress(terms.address);
      return terms;
    } catch (error) {
      if (error instanceof PoolError) throw error;
      throw new PoolError('pool_unreachable', `there is no pool at that address: ${(error as Error).message}`);
    }
  }

  #verdict(): PublicVerdict {
    if (this.#findings.count > 0) return 'false';
    const isWhole = Object.keys(this.#missing).every((each) => each === NEVER_CHECKED);
    return isWhole && this.#notChecked.length === 0 ? 'holds' : 'unchecked';
  }

  async #ledger(
    money: AddressMoney,
    payments: readonly PaymentDocument[],
    commitments: readonly CommitmentRow[],
  ): Promise<MoneyReport | null> {
    const findings = this.#findings;
    const node = this.#sources.node as NonNullable<BooksSources['node']>;
    const cuts = new CutReader(node);
    // The pool may have paid since its address was read: the node has gone on as well.
    const through = await this.#section('the pool’s address', () => heightOf(node, money), money.height);
    const carried = new CommitmentAudit(this.#records, cuts, findings);
    const beyond =
      (await this.#section('commitments', () => carried.listed(commitments, through), 0)) +
      (await this.#section('payments', () => auditOutputs(payments, cuts, through, findings), 0));
    if (beyond > 0)
      this.#notChecked.push(`${beyond} payouts and payments in cuts after ${through}: the node has not read them`);
    await this.#section('commitments', () => carried.unlisted(commitments, money), undefined);
    const paid = paidByTransaction(payments);
    return this.#section(
      'what left the pool’s address',
      () => auditMoney(money, cuts, { paid, fees: this.#fees }, findings),
      null,
    );
  }

  async #slices(service: BooksService): Promise<void> {
    const findings = this.#findings;
    const records: Published[] = [];
    const pages = pagesOf(this.#sources.pool, `slices/${service}`, (answer: { slices: Published[] }) => answer.slices);
    for await (const record of pages) records.push(record);
    records.reverse();
    this.#records.set(service, records);
    if (records.length === 0) return;
    // After the records: terms may have changed while they were read.
    const terms = (await this.#sources.pool('terms')) as PublishedTerms;
    if (records[0]?.previous !== FIRST_CHAIN)
      findings.add(`slices of ${service}`, `begin with ${records[0]?.slice}`, 'the first one', REMEDIES.published);
    const fault = recordsFault(records, service, terms);
    if (fault !== undefined) findings.add(`records of ${service}`, 'published', `false: ${fault}`, REMEDIES.published);
    for (const record of records) {
      await this.#section(nameOf(record), () => this.#leaves(record), undefined);
      await this.#section(nameOf(record), () => this.#target(record), undefined);
    }
  }

  async #leaves(record: SliceRecord): Promise<void> {
    const leaves: { key: Uint8Array; value: bigint }[] = [];
    const path = `slices/${record.service}/${record.slice}/leaves`;
    const pages = pagesOf(this.#sources.pool, path, (answer: { leaves: { address: string; work: string }[] }) =>
      record.accounts === 0 ? [] : answer.leaves,
    );
    for await (const { address, work } of pages)
      leaves.push({ key: parseAddress(address, record.network).payload, value: BigInt(work) });
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
    const target = cut?.height === height ? cut.target : 'no such cut';
    this.#findings.compare(`${nameOf(record)}: target`, record.target, target, REMEDIES.published);
  }

  async #list(record: SliceRecord): Promise<void> {
    const list = await readPoolList(record.service, record.slice, (path) => this.#pool(path.replace(/^\//, '')));
    const name = `credits of ${nameOf(record)}`;
    if (list.slice !== record.slice || list.service !== record.service) {
      this.#findings.add(name, 'the list of something else', 'this list', REMEDIES.published);
      return;
    }
    // False or not, this is what the pool says it credited: payments are compared with it.
    for (const { address, amount } of list.credits)
      this.#credited.set(address, (this.#credited.get(address) ?? 0n) + BigInt(amount));
    this.#fees += BigInt(list.fee);
    const evidence = await gatherEvidence(list, { ...this.#sources, pool: this.#pool });
    const verdict = judgeList(list, evidence);
    this.#lists[verdict.verdict]++;
    if (verdict.verdict === 'false') {
      this.#findings.add(name, 'published', `false: ${verdict.reason}`, REMEDIES.published);
      return;
    }
    if (verdict.verdict === 'unchecked')
      for (const each of verdict.missing) this.#missing[each] = (this.#missing[each] ?? 0) + 1;
  }
}

async function heightOf(node: NonNullable<BooksSources['node']>, { address, height }: AddressMoney): Promise<number> {
  return (await node.addressChanges({ addresses: [address], after_height: height, limit: 1 })).indexed_height;
}

const nameOf = ({ slice, service }: Pick<SliceRecord, 'slice' | 'service'>): string => `slice ${slice} of ${service}`;

export const auditPublic = (
  sources: BooksSources,
  settle: () => Promise<void> = async () => undefined,
): Promise<PublicReport> => new PublicAudit(sources, settle, new Findings()).run();

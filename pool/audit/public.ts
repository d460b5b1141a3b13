/**
 * `svc-pool audit --public`: what a pool publishes, recomputed by anybody, without its database (books rule 24). Slices from their leaves, records and W from
 * each other, every credit list by the one verifier, commitments and payments against a node of the auditor's choice.
 */
import { parseAddress } from '../../protocol/address.ts';
import { type BooksCommitment, checkCommitment, readCommitment } from '../../protocol/books-commitment.ts';
import {
  type BooksSources,
  type CommitmentRow,
  gatherEvidence,
  payloadOnLedger,
} from '../../protocol/books-evidence.ts';
import { type BooksService, FIRST_CHAIN, type SliceRecord } from '../../protocol/books-slice.ts';
import { judgeList, type NotChecked, type PublishedTerms, recordsFault } from '../../protocol/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import { readPoolList } from '../../protocol/pool-list.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import { SERVICES } from '../journal-record.ts';
import { type Finding, Findings, REMEDIES } from './findings.ts';
import { auditPublicPayments } from './public-payments.ts';
import { pagesOf } from './public-reads.ts';

export type PublicReport = {
  readonly address: string;
  readonly network: string;
  readonly slices: number;
  readonly lists: { readonly proven: number; readonly unchecked: number; readonly false: number };
  /** Why lists could not be proven, and how many. */
  readonly missing: Readonly<Partial<Record<NotChecked, number>>>;
  readonly commitments: number;
  readonly payments: number;
  /** Whether a node was asked. */
  readonly ledger: boolean;
  readonly differences: number;
  readonly findings: readonly Finding[];
};

type Published = SliceRecord & { readonly credits: object | null };

class PublicAudit {
  readonly #sources: BooksSources;
  readonly #findings: Findings;
  readonly #records = new Map<BooksService, Published[]>();
  readonly #missing: Partial<Record<NotChecked, number>> = {};
  readonly #lists = { proven: 0, unchecked: 0, false: 0 };
  readonly #credited = new Map<string, bigint>();
  /** Lists of one service ask for the same pages again and again. */
  readonly #answers = new Map<string, Promise<unknown>>();

  constructor(sources: BooksSources, findings: Findings) {
    this.#sources = sources;
    this.#findings = findings;
  }

  #pool = (path: string): Promise<unknown> => {
    if (!path.startsWith('slices/') && path !== 'terms') return this.#sources.pool(path);
    const known = this.#answers.get(path) ?? this.#sources.pool(path);
    this.#answers.set(path, known);
    if (this.#answers.size > 512) this.#answers.delete(this.#answers.keys().next().value as string);
    return known;
  };

  async run(): Promise<PublicReport> {
    const findings = this.#findings;
    const terms = (await this.#sources.pool('terms')) as PublishedTerms;
    for (const service of SERVICES)
      await findings.section(`slices of ${service}`, () => this.#slices(service, terms), undefined);
    for (const service of SERVICES)
      for (const record of this.#records.get(service) ?? [])
        if (record.credits !== null) await findings.section(nameOf(record), () => this.#list(record), undefined);
    const commitments = await findings.section('commitments', () => this.#commitments(terms), 0);
    const payments = await findings.section(
      'payments',
      () => auditPublicPayments(this.#sources, this.#credited, findings),
      0,
    );
    return {
      address: terms.address,
      network: terms.network,
      slices: [...this.#records.values()].reduce((sum, records) => sum + records.length, 0),
      lists: this.#lists,
      missing: this.#missing,
      commitments,
      payments,
      ledger: this.#sources.node !== null,
      differences: findings.count,
      findings: findings.list,
    };
  }

  async #slices(service: BooksService, terms: PublishedTerms): Promise<void> {
    const findings = this.#findings;
    const records: Published[] = [];
    const pages = pagesOf(this.#sources.pool, `slices/${service}`, (answer: { slices: Published[] }) => answer.slices);
    for await (const record of pages) records.push(record);
    records.reverse();
    this.#records.set(service, records);
    if (records.length === 0) return;
    if (records[0]?.previous !== FIRST_CHAIN)
      findings.add(`slices of ${service}`, `begin with ${records[0]?.slice}`, 'the first one', REMEDIES.published);
    const fault = recordsFault(records, service, terms);
    if (fault !== undefined) findings.add(`records of ${service}`, 'published', `false: ${fault}`, REMEDIES.published);
    for (const record of records) {
      await findings.section(nameOf(record), () => this.#leaves(record), undefined);
      await findings.section(nameOf(record), () => this.#target(record), undefined);
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
    // False or not, this is what the pool says that it credited: payments are held against it.
    for (const { address, amount } of list.credits)
      this.#credited.set(address, (this.#credited.get(address) ?? 0n) + BigInt(amount));
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

  async #commitments(terms: PublishedTerms): Promise<number> {
    const findings = this.#findings;
    const { node } = this.#sources;
    const listed = new Set<string>();
    let before: { number: number; slice: number } = { number: 0, slice: 0 };
    let count = 0;
    const pages = pagesOf(
      this.#sources.pool,
      'commitments',
      (answer: { commitments: CommitmentRow[] }) => answer.commitments,
    );
    for await (const row of pages) {
      const name = `payout ${row.number}`;
      count++;
      findings.compare(`${name}: the one before`, before.number, row.number - 1, REMEDIES.published);
      before = { ...before, number: row.number };
      if (row.transaction_id === null) continue;
      listed.add(row.transaction_id);
      if (row.state !== 'finalized' || row.final_height === null || node === null) continue;
      const payload = await payloadOnLedger(node, row.final_height, row.transaction_id);
      const found = this.#committed(name, { ...row, transaction_id: row.transaction_id }, row.final_height, payload);
      if (found === undefined) continue;
      findings.compare(`${name}: number on the ledger`, row.number, found.number, REMEDIES.published);
      if (row.slice !== null) findings.compare(`${name}: slice`, row.slice, found.slice, REMEDIES.published);
      if (row.head !== null) findings.compare(`${name}: head`, row.head, found.head, REMEDIES.published);
      if (found.slice < before.slice)
        findings.add(`${name}: slice`, found.slice, `${before.slice} or later`, REMEDIES.published);
      before = { ...before, slice: found.slice };
    }
    if (node !== null) await this.#spends(terms.address, listed);
    return count;
  }

  #committed(
    name: string,
    { transaction_id }: { readonly transaction_id: string },
    height: number,
    payload_hex: string | null,
  ): BooksCommitment | undefined {
    const recordAt = (service: BooksService, slice: number) =>
      this.#records.get(service)?.find((record) => record.slice === slice);
    const found = checkCommitment({ transaction_id, height, payload_hex }, recordAt);
    if (typeof found === 'object') return found;
    const computed = found === undefined ? 'a slice that is not published' : `false: ${found}`;
    this.#findings.add(
      `${name}: what transaction ${transaction_id} carries`,
      'published',
      computed,
      REMEDIES.published,
    );
    return undefined;
  }

  /** Whatever spent from the pool's address was signed by the pool: a commitment in it counts, whether the pool lists it or not. */
  async #spends(address: string, listed: ReadonlySet<string>): Promise<void> {
    const { node } = this.#sources;
    if (node === null) return;
    const looked = new Set(listed);
    for (let cursor: string | undefined; ; ) {
      const page = await node.addressChanges({
        addresses: [address],
        after_height: 0,
        limit: 1024,
        ...(cursor === undefined ? {} : { cursor }),
      });
      for (const { kind, transaction_id: transaction, finalized_height: height } of page.changes) {
        if (kind !== 'spent' || looked.has(transaction)) continue;
        looked.add(transaction);
        const payload = await payloadOnLedger(node, height, transaction);
        if (payload === null || readCommitment(payload) === undefined) continue;
        const name = `transaction ${transaction} of cut ${height}`;
        this.#findings.add(name, 'not listed', 'a payout that carries a head of the books', REMEDIES.published);
        this.#committed(name, { transaction_id: transaction }, height, payload);
      }
      if (page.next_cursor === undefined) return;
      cursor = page.next_cursor;
    }
  }
}

const nameOf = ({ slice, service }: Pick<SliceRecord, 'slice' | 'service'>): string => `slice ${slice} of ${service}`;

export const auditPublic = (sources: BooksSources): Promise<PublicReport> =>
  new PublicAudit(sources, new Findings()).run();

/**
 * Checks the commitments that a pool publishes (books rule 21): numbers without a gap, and in each payout the head
 * computed from the records.
 */
import {
  type BooksCommitment,
  checkCommitment,
  type LedgerCommitment,
  readCommitment,
} from '../../protocol/books/books-commitment.ts';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import type { BooksService, SliceRecord } from '../../protocol/books/books-slice.ts';
import { type CommitmentRow, judgeUnlisted } from '../../protocol/books/ledger-payouts.ts';
import type { CutReader } from './cut-reader.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { type AddressMoney, outputText, spendsOf } from './public-money.ts';
import type { Output, PaymentsUnderWay } from './public-payments.ts';
import { pagesOf } from './public-reads.ts';
import { readCommitmentRow } from './public-rows.ts';
import type { UnreadRows } from './public-unread.ts';

export type Records = ReadonlyMap<BooksService, readonly SliceRecord[]>;

export async function readCommitments(pool: BooksSources['pool']): Promise<CommitmentRow[]> {
  const rows: CommitmentRow[] = [];
  for await (const row of pagesOf(pool, 'commitments', { rows: 'commitments', read: readCommitmentRow }))
    rows.push(row);
  return rows;
}

/**
 * A payout is listed when the wallet has it. One that the wallet has forgotten may still be made, and later ones are paid
 * meanwhile: as many numbers may be missing as there are payouts under way. These gaps are returned.
 */
export function auditNumbers(rows: readonly CommitmentRow[], underWay: number, findings: Findings): string[] {
  const noted: string[] = [];
  let [before, left] = [0, underWay];
  for (const { number } of rows) {
    const missing = number - 1 - before;
    if (missing > 0 && missing <= left) {
      noted.push(`payouts before ${number}`);
      left -= missing;
    } else findings.compare(`payout ${number}: the one before`, before, number - 1, REMEDIES.published);
    before = number;
  }
  return noted;
}

/**
 * Cuts by which the books may be behind a payout that they have not restored yet: they are compared with the wallet
 * shortly after they have caught up.
 */
const MAX_LAG = 16;

/**
 * Payouts may wait for the wallet, so their commitments can be of older slices. If older by this many, they prove
 * little.
 */
const MAX_BEHIND = 24;

/** The height of the books before the records were read, and the length of slices. */
export type Reached = { readonly height: number; readonly sliceCuts: number };

type Payments = {
  readonly underWay: PaymentsUnderWay;
  /** The payments that the pool lists for each transaction. */
  readonly paid: Map<string, string[]>;
};

export class CommitmentAudit {
  readonly #records: Records;
  readonly #cuts: CutReader;
  readonly #findings: Findings;
  readonly #reached: Reached;
  readonly #unread: UnreadRows;
  readonly #checkedOnes = new Set<string>();
  /** Transactions that books replaced by an older copy have not reached, and the checks skipped for that reason. */
  readonly unreached = new Set<string>();
  readonly notChecked: string[] = [];
  /** Payouts that they leave out although they have reached their cuts, and what these paid. */
  readonly omitted: { readonly name: string; readonly paid: readonly Output[] }[] = [];
  /** The newest slice that a payout commits to, and the cut of the newest payout. */
  #committed = { slice: -1, height: -1 };

  constructor(
    { records, cuts, reached }: { readonly records: Records; readonly cuts: CutReader; readonly reached: Reached },
    unread: UnreadRows,
    findings: Findings,
  ) {
    this.#reached = reached;
    this.#records = records;
    this.#cuts = cuts;
    this.#unread = unread;
    this.#findings = findings;
  }

  /**
   * Checks the commitments of final payouts, by number. Returns how many are final beyond the cut that the node has
   * read.
   */
  async listed(rows: readonly CommitmentRow[], through: number, money: AddressMoney | undefined): Promise<number> {
    const findings = this.#findings;
    const wasSpent = spendsOf(money);
    let beyond = 0;
    let slice = 0;
    for (const { number, state, transaction_id, final_height: height, ...own } of rows) {
      if (state !== 'finalized' || transaction_id === null || height === null) continue;
      if (height > through) {
        beyond++;
        continue;
      }
      const name = `payout ${number}`;
      this.#checkedOnes.add(transaction_id);
      const read = await this.#unread.read('payouts (what they carry)', name, () =>
        this.#cuts.find(height, transaction_id),
      );
      if (read === undefined) {
        if (!wasSpent(transaction_id, height))
          findings.add(
            name,
            `transaction ${transaction_id}`,
            'nothing of the pool was spent by it',
            REMEDIES.published,
          );
        continue;
      }
      const payload_hex = read.value?.payload_hex ?? null;
      const found = this.#checked(name, { transaction_id, height, payload_hex });
      if (found === undefined) continue;
      findings.compare(`${name}: number on the ledger`, number, found.number, REMEDIES.published);
      if (own.slice !== null) findings.compare(`${name}: slice`, own.slice, found.slice, REMEDIES.published);
      if (own.head !== null) findings.compare(`${name}: head`, own.head, found.head, REMEDIES.published);
      if (found.slice < slice) findings.add(`${name}: slice`, found.slice, `${slice} or later`, REMEDIES.published);
      slice = found.slice;
    }
    return beyond;
  }

  /**
   * Every transaction that spent from the pool's address was signed by the pool: a commitment in it counts, whether or
   * not the pool lists it. A transaction that pays exactly one pending payout is on the ledger before the pool has
   * recorded it; these are returned. A transaction with listed payments must carry a commitment. What omitted payouts paid
   * is added to `paid`.
   */
  async unlisted(
    rows: readonly CommitmentRow[],
    { spends, address }: Pick<AddressMoney, 'spends' | 'address'>,
    { underWay, paid }: Payments,
  ): Promise<string[]> {
    const findings = this.#findings;
    const listed = new Map(rows.map(({ transaction_id, number }) => [transaction_id, number]));
    const numbers = new Set(rows.filter((row) => row.transaction_id !== null).map(({ number }) => number));
    const noted: string[] = [];
    for (const { transaction, height } of spends) {
      if (this.#checkedOnes.has(transaction)) continue;
      const number = listed.get(transaction);
      const name = number === undefined ? `transaction ${transaction} of cut ${height}` : `payout ${number}`;
      const find = () => this.#cuts.find(height, transaction);
      const read = await this.#unread.read('spends of the pool’s address (what they carry)', name, find);
      if (read === undefined && height + MAX_LAG > this.#reached.height) this.unreached.add(transaction);
      const found = read?.value;
      const payload_hex = found?.payload_hex ?? '';
      const carried = readCommitment(payload_hex);
      if (found === undefined) continue;
      if (carried === undefined) {
        if (number !== undefined || paid.has(transaction))
          findings.add(name, 'a payout', 'it carries no head of the books', REMEDIES.published);
        continue;
      }
      this.#checked(name, { transaction_id: transaction, height, payload_hex });
      if (number !== undefined)
        findings.compare(`${name}: number on the ledger`, number, carried.number, REMEDIES.published);
      else if (!numbers.has(carried.number) && underWay.take(transaction, found.outputs, address)) noted.push(name);
      else if (height + MAX_LAG > this.#reached.height) {
        this.unreached.add(transaction);
        this.notChecked.push(`${name}: the pool’s books have not reached it yet`);
      } else if (!paid.has(transaction) && judgeUnlisted(carried.number, rows) === 'unlisted') {
        const others = found.outputs.filter((output) => output.address !== address);
        // They count as if they were listed: so much must have been credited.
        paid.set(transaction, others.map(outputText));
        this.omitted.push({ name, paid: others });
      } else findings.add(name, 'not listed', 'a payout that carries a head of the books', REMEDIES.published);
    }
    return noted;
  }

  /** Why the payouts do not prove the books, although there are payouts. */
  get stale(): string | undefined {
    const { slice, height } = this.#committed;
    const cuts = this.#records.get('pplns')?.at(-1)?.slice_cuts;
    if (height === -1 || cuts === undefined || Math.floor(height / cuts) - 1 - slice <= MAX_BEHIND) return undefined;
    return `slices after ${slice}: payouts up to cut ${height} commit none of them`;
  }

  #checked(name: string, carried: LedgerCommitment): BooksCommitment | undefined {
    const recordAt = (service: BooksService, slice: number) =>
      this.#records.get(service)?.find((record) => record.slice === slice);
    const found = checkCommitment(carried, recordAt);
    if (found === undefined && this.#isUnreached(carried)) {
      this.notChecked.push(`${name}: the pool’s books have not reached the slice that it commits yet`);
      return undefined;
    }
    if (typeof found === 'object') {
      const { slice, height } = this.#committed;
      this.#committed = { slice: Math.max(slice, found.slice), height: Math.max(height, carried.height) };
      return found;
    }
    this.#findings.add(
      `${name}: what transaction ${carried.transaction_id} carries`,
      'published',
      found === undefined ? 'a slice that is not published' : `false: ${found}`,
      REMEDIES.published,
    );
    return undefined;
  }

  /**
   * Books replaced by an older copy lack slices that were closed when the payout was made, until they reach them again.
   */
  #isUnreached({ payload_hex: payload, height }: LedgerCommitment): boolean {
    const carried = payload === null ? undefined : readCommitment(payload);
    if (carried === undefined) return false;
    const closes = (carried.slice + 1) * this.#reached.sliceCuts;
    return closes <= height && closes > this.#reached.height;
  }
}

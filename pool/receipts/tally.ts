/**
 * Sums up a front end's journal for receipts (books rule 17): the accepted work of each worker in each closed slice.
 * The ends of slices in the journal are known from its marks (feed/slice-marks.ts), so the sums contain the same
 * entries as the books.
 */

import { compareReceipts, OTHERS, OWN_RECEIPTS, type ReceiptLeaf } from '../../protocol/books/receipt.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { IdentitySet } from '../books/identity-set.ts';
import type { DoubledRun } from '../journal/doubled-shares.ts';
import { decodeRecord, SERVICES, type Service, type ShareIdentity } from '../journal/journal-record.ts';

/** Entries after `after` up to `through`. */
type Entries = { readonly after: number; readonly through: number };

/** What the books have in a slice, and the height at which it closed. */
type Held = Entries & { readonly closedHeight: number };

/** The entries that are in the slice by the journal's marks, and those that the books have in it (null: not known). */
export type SliceRange = Entries & { readonly slice: number; readonly held: Held | null };

type Sum = { readonly account: Bytes; readonly worker: string; shares: number; work: bigint };
type Sums = Map<string, Sum>;

export type SliceLeaves = {
  readonly service: Service;
  readonly slice: number;
  readonly leaves: readonly ReceiptLeaf[];
};

/** Anchors in a group of identities, and groups that are kept: repetitions of a share are never that far apart. */
const ANCHORS = 16;
const KEPT_GROUPS = 64;

export class JournalTally {
  readonly #ranges: readonly SliceRange[];
  /** By service, for each range; one more for entries in no closed slice. */
  readonly #sums: readonly (readonly Sums[])[];
  readonly #identities = new Map<number, IdentitySet>();
  readonly #doubled: readonly DoubledRun[];
  #at = 0;
  #run = 0;
  /** The last sequence taken; a slice with missing entries gets no receipts. */
  #last: number;
  readonly #holed = new Set<number>();
  readonly #unheld = new Set<number>();
  readonly #belated = new Set<number>();

  /** Ranges are contiguous, oldest first, and so are runs of shares that counted before. */
  constructor(ranges: readonly SliceRange[], doubled: readonly DoubledRun[] = []) {
    this.#ranges = ranges;
    this.#doubled = doubled;
    this.#last = (ranges[0] as SliceRange).after;
    this.#sums = SERVICES.map(() => Array.from({ length: ranges.length + 1 }, () => new Map()));
  }

  /** In the order of the journal. */
  take(sequence: number, bytes: Bytes): void {
    if (sequence <= this.#last) return;
    if (sequence !== this.#last + 1) this.#miss(this.#last + 1, sequence - 1);
    this.#last = sequence;
    while (this.#at < this.#ranges.length && sequence > (this.#ranges[this.#at] as SliceRange).through) this.#at++;
    const decoded = attempt(() => decodeRecord(bytes));
    // It may have been a share: the books do not count it, and its owner is unknown.
    if (!decoded.ok) {
      this.#miss(sequence, sequence);
      return;
    }
    const record = decoded.value;
    if (record.kind !== 'share' || !this.#isFirst(record.identity)) return;
    const run = this.#runOf(sequence);
    if (run?.isExact) return;
    const range = this.#ranges[this.#at];
    const held = range?.held ?? null;
    if (
      range !== undefined &&
      held !== null &&
      (sequence <= held.after || sequence > held.through || run !== undefined)
    )
      this.#unheld.add(range.slice);
    if (range !== undefined && held !== null && (record.identity?.anchorHeight ?? 0) >= held.closedHeight)
      this.#belated.add(range.slice);
    const sums = this.#sums[SERVICES.indexOf(record.service)]?.[this.#at] as Sums;
    const key = keyOf(record.account, record.worker);
    const sum = sums.get(key);
    if (sum === undefined)
      sums.set(key, { account: record.account, worker: record.worker, shares: 1, work: record.work });
    else {
      sum.shares++;
      sum.work += record.work;
    }
  }

  /** As in the books (rule 14): a header and nonce that comes again does not count again. */
  #isFirst(identity: ShareIdentity | null): boolean {
    if (identity === null) return true;
    const group = Math.floor(identity.anchorHeight / ANCHORS);
    let known = this.#identities.get(group);
    if (known === undefined) {
      known = new IdentitySet();
      this.#identities.set(group, known);
      if (this.#identities.size > KEPT_GROUPS) this.#identities.delete(Math.min(...this.#identities.keys()));
    }
    return known.add(identity.bytes);
  }

  #runOf(sequence: number): DoubledRun | undefined {
    while ((this.#doubled[this.#run]?.through ?? sequence) < sequence) this.#run++;
    const run = this.#doubled[this.#run];
    return run !== undefined && sequence >= run.first ? run : undefined;
  }

  #miss(from: number, to: number): void {
    for (const { slice, after, through } of this.#ranges) if (from <= through && to > after) this.#holed.add(slice);
  }

  /** Slices of which entries are missing: their receipts would understate the work. */
  get holed(): readonly number[] {
    const last = this.#ranges.at(-1) as SliceRange;
    if (this.#last < last.through) this.#miss(this.#last + 1, last.through);
    return [...this.#holed];
  }

  /** Slices that have shares by the marks which the books do not have in them: their receipts would overstate the work. */
  get unheld(): readonly number[] {
    return [...this.#unheld];
  }

  /**
   * Slices that have shares of jobs of a later one: the books were far behind the chain (rule 2). Others may have signed
   * them in their time, before a restored backup, with other work.
   */
  get belated(): readonly number[] {
    return [...this.#belated];
  }

  /**
   * The leaves of each slice, in their order, the oldest slice first. Slices without work of the boot are skipped, also
   * where it has work after them: books that catch up with the chain after a restored backup close many at once, without
   * the work of machines that are gone, which may have signed other records of them.
   */
  *leaves(): Generator<SliceLeaves> {
    const without = new Set([...this.holed, ...this.unheld, ...this.belated]);
    const opens = SERVICES.map((_, number) => {
      const open: Sums = new Map();
      for (const sums of this.#sums[number] as readonly Sums[]) add(open, sums);
      return open;
    });
    for (const [i, { slice }] of this.#ranges.entries())
      for (const [number, service] of SERVICES.entries()) {
        const own = this.#sums[number]?.[i] as Sums;
        const open = opens[number] as Sums;
        subtract(open, own);
        if (!without.has(slice) && own.size > 0) yield { service, slice, leaves: leavesOf(own, open) };
      }
  }
}

const keyOf = (account: Bytes, worker: string): string => `${Buffer.from(account).toString('latin1')}${worker}`;

function add(into: Sums, sums: Sums): void {
  for (const [key, sum] of sums) {
    const before = into.get(key);
    if (before === undefined) into.set(key, { ...sum });
    else before.work += sum.work;
  }
}

function subtract(from: Sums, sums: Sums): void {
  for (const [key, sum] of sums) {
    const left = from.get(key) as Sum;
    left.work -= sum.work;
    if (left.work === 0n) from.delete(key);
  }
}

function leavesOf(own: Sums, open: Sums): ReceiptLeaf[] {
  const accounts = new Map<string, bigint>();
  const accountOf = (sum: Sum): string => Buffer.from(sum.account).toString('latin1');
  for (const sum of own.values()) accounts.set(accountOf(sum), (accounts.get(accountOf(sum)) ?? 0n) + sum.work);
  const keys = new Set([...own.keys(), ...open.keys()]);
  const leaves = [...keys].map((key): ReceiptLeaf => {
    const sum = own.get(key);
    const named = (sum ?? open.get(key)) as Sum;
    return {
      account: named.account,
      worker: named.worker,
      shares: sum?.shares ?? 0,
      work: sum?.work ?? 0n,
      open: open.get(key)?.work ?? 0n,
      accountWork: accounts.get(accountOf(named)) ?? 0n,
    };
  });
  return foldWorkers(leaves).sort(compareReceipts);
}

/**
 * The workers of an account with the most work have a receipt each, all others one together (rule 17): names cost
 * nothing, and anybody may invent them for any account.
 */
export function foldWorkers(leaves: readonly ReceiptLeaf[], most = OWN_RECEIPTS): ReceiptLeaf[] {
  const byAccount = Map.groupBy(leaves, ({ account }) => Buffer.from(account).toString('latin1'));
  return [...byAccount.values()].flatMap((own) => {
    if (own.length <= most) return own;
    const sorted = own.toSorted((a, b) => compareWork(b, a) || compareReceipts(a, b));
    const others = { ...(sorted[most] as ReceiptLeaf), worker: OTHERS, shares: 0, work: 0n, open: 0n };
    for (const { shares, work, open } of sorted.slice(most)) {
      others.shares += shares;
      others.work += work;
      others.open += open;
    }
    return [...sorted.slice(0, most), others];
  });
}

function compareWork(a: ReceiptLeaf, b: ReceiptLeaf): number {
  const [first, second] = [a.work + a.open, b.work + b.open];
  return first < second ? -1 : first > second ? 1 : 0;
}

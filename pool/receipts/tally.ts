/**
 * Sums up a front end's journal for receipts (books rule 17): the accepted work of each worker in each closed slice.
 * The ends of slices in the journal are known from its marks (feed/slice-marks.ts), so the sums contain the same
 * entries as the books.
 */

import { compareReceipts, OTHERS, OWN_RECEIPTS, type ReceiptLeaf } from '../../protocol/books/receipt.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { IdentitySet } from '../books/identity-set.ts';
import { nameOfDoubled } from '../journal/doubled-shares.ts';
import {
  decodeRecord,
  SERVICES,
  type Service,
  type ShareIdentity,
  type ShareRecord,
} from '../journal/journal-record.ts';

/** Entries after `after` up to `through`. */
type Entries = { readonly after: number; readonly through: number };

/** What the books have in a slice, and the height at which it closed. */
type Held = Entries & { readonly closedHeight: number };

/** The entries that are in the slice by the journal's marks, and those that the books have in it (null: not known). */
export type SliceRange = Entries & { readonly slice: number; readonly held: Held | null };

/** What a sheet counts: the shares from `first` through `last`, without those that counted before. */
export type SheetSpan = { readonly first: number; readonly last: number; readonly passedOver: string };

type Ends = { first: number; last: number };

/** What a sheet must not count, because another front end signed it before (earlier-sheets.ts). */
export type LeftOut = {
  /** Shares, by their identities in hex. */
  readonly shares: ReadonlySet<string>;
  /** Accounts of a slice, as `accountIn` names them. */
  readonly accounts: ReadonlySet<string>;
};

export const accountIn = (service: Service, slice: number, account: Bytes): string =>
  `${service} ${slice} ${Buffer.from(account).toString('latin1')}`;

type Sum = { readonly account: Bytes; readonly worker: string; shares: number; work: bigint };
type Sums = Map<string, Sum>;

export type SliceLeaves = {
  readonly service: Service;
  readonly slice: number;
  readonly span: SheetSpan;
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
  readonly #doubled: ArrayLike<number>;
  readonly #leftOut: LeftOut;
  /** The first and the last share that a sheet counts, by service and range. */
  readonly #spans: readonly (readonly Ends[])[];
  /** What is on record as counted before, by range: of both services, and of what an earlier release noted no shares too. */
  readonly #passedOver: readonly number[][];
  #at = 0;
  #next = 0;
  /** The last sequence taken; a slice with missing entries gets no receipts. */
  #last: number;
  readonly #holed = new Set<number>();
  readonly #unheld = new Set<number>();
  readonly #belated = new Set<number>();

  /** Ranges are contiguous, oldest first; `doubled` are sequences of shares that counted before, in order. */
  constructor(
    ranges: readonly SliceRange[],
    doubled: ArrayLike<number> = [],
    leftOut: LeftOut = { shares: new Set(), accounts: new Set() },
  ) {
    this.#ranges = ranges;
    this.#doubled = doubled;
    this.#leftOut = leftOut;
    this.#last = (ranges[0] as SliceRange).after;
    const inRanges = <T>(of: () => T): T[] => Array.from({ length: ranges.length + 1 }, of);
    const each = <T>(of: () => T): T[][] => SERVICES.map(() => inRanges(of));
    this.#sums = each(() => new Map());
    this.#spans = each(() => ({ first: -1, last: -1 }));
    this.#passedOver = inRanges(() => []);
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
    const isDoubled = this.#isDoubled(sequence);
    if (isDoubled) this.#passedOver[this.#at]?.push(sequence);
    if (record.kind !== 'share') return;
    const isFirst = this.#isFirst(record.identity);
    const service = SERVICES.indexOf(record.service);
    const range = this.#ranges[this.#at];
    if (isDoubled || !isFirst || this.#isLeftOut(record, range)) return;
    const held = range?.held ?? null;
    if (range !== undefined && held !== null && (sequence <= held.after || sequence > held.through))
      this.#unheld.add(range.slice);
    if (range !== undefined && held !== null && (record.identity?.anchorHeight ?? 0) >= held.closedHeight)
      this.#belated.add(range.slice);
    const span = this.#spans[service]?.[this.#at] as Ends;
    if (span.first === -1) span.first = sequence;
    span.last = sequence;
    const sums = this.#sums[service]?.[this.#at] as Sums;
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

  #isDoubled(sequence: number): boolean {
    while ((this.#doubled[this.#next] ?? sequence) < sequence) this.#next++;
    return this.#doubled[this.#next] === sequence;
  }

  #isLeftOut({ service, account, identity }: ShareRecord, range: SliceRange | undefined): boolean {
    const { shares, accounts } = this.#leftOut;
    if (shares.size > 0 && identity !== null && shares.has(toHex(identity.bytes))) return true;
    return accounts.size > 0 && range !== undefined && accounts.has(accountIn(service, range.slice, account));
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
        if (!without.has(slice) && own.size > 0)
          yield { service, slice, span: this.#spanOf(number, i), leaves: leavesOf(own, open) };
      }
  }

  #spanOf(service: number, range: number): SheetSpan {
    const { first, last } = (this.#spans[service] as readonly Ends[])[range] as Ends;
    const passedOver = this.#passedOver[range] as number[];
    return { first, last, passedOver: nameOfDoubled(passedOver.filter((one) => one > first && one < last)) };
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

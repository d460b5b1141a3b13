/**
 * Sums up a front end's journal for receipts (books rule 17): which work it accepted of each worker in each closed slice. Where the slices end
 * in the journal is known from its marks (feed/slice-marks.ts), so the sums are those of the books, entry for entry.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { compareReceipts, type ReceiptLeaf } from '../../protocol/receipt.ts';
import { decodeRecord, SERVICES, type Service } from '../journal-record.ts';

/** The entries after `after` up to `through` are in the slice. */
export type SliceRange = { readonly slice: number; readonly after: number; readonly through: number };

type Sum = { readonly account: Bytes; readonly worker: string; shares: number; work: bigint };
type Sums = Map<string, Sum>;

export type SliceLeaves = {
  readonly service: Service;
  readonly slice: number;
  readonly leaves: readonly ReceiptLeaf[];
};

export class JournalTally {
  readonly #ranges: readonly SliceRange[];
  /** By service, for each range; one more for what is in no closed slice. */
  readonly #sums: readonly (readonly Sums[])[];
  #at = 0;
  /** The last sequence taken; entries that are missing leave the slice that they are in without receipts. */
  #last: number;
  readonly #holed = new Set<number>();

  /** Ranges are joined, oldest first. */
  constructor(ranges: readonly SliceRange[]) {
    this.#ranges = ranges;
    this.#last = (ranges[0] as SliceRange).after;
    this.#sums = SERVICES.map(() => Array.from({ length: ranges.length + 1 }, () => new Map()));
  }

  /** In the order of the journal. */
  take(sequence: number, bytes: Bytes): void {
    if (sequence <= this.#last) return;
    if (sequence !== this.#last + 1) this.#miss(this.#last + 1, sequence - 1);
    this.#last = sequence;
    while (this.#at < this.#ranges.length && sequence > (this.#ranges[this.#at] as SliceRange).through) this.#at++;
    const record = decodeRecord(bytes);
    if (record.kind !== 'share') return;
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

  #miss(from: number, to: number): void {
    for (const { slice, after, through } of this.#ranges) if (from <= through && to > after) this.#holed.add(slice);
  }

  /** Slices of which entries are missing: their receipts would say too little. */
  get holed(): readonly number[] {
    const last = this.#ranges.at(-1) as SliceRange;
    if (this.#last < last.through) this.#miss(this.#last + 1, last.through);
    return [...this.#holed];
  }

  /** The leaves of each slice, in their order; nothing for one in which nobody has any. */
  leaves(): SliceLeaves[] {
    const holed = new Set(this.holed);
    const found: SliceLeaves[] = [];
    for (const [number, service] of SERVICES.entries()) {
      const sums = this.#sums[number] as readonly Sums[];
      const open = new Map<string, Sum>();
      add(open, sums.at(-1) as Sums);
      for (let i = this.#ranges.length - 1; i >= 0; i--) {
        const { slice } = this.#ranges[i] as SliceRange;
        const own = sums[i] as Sums;
        if (!holed.has(slice) && own.size + open.size > 0) found.push({ service, slice, leaves: leavesOf(own, open) });
        add(open, own);
      }
    }
    return found.sort((a, b) => a.slice - b.slice);
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
  return leaves.sort(compareReceipts);
}

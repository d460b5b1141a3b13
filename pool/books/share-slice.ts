/**
 * Assigns shares to slices (books rule 2), and keeps the work of slices that are still to be opened. Slice numbers
 * never decrease within a journal, so that a slice is one contiguous part of each journal (feed/slice-marks.ts): a
 * share is in the slice of the newest anchor so far, or the open one if that is closed.
 */
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import { byteaTexts, type Transaction } from '../database/connect.ts';
import type { ShareRecord } from '../journal/journal-record.ts';

/**
 * Anchors more slices ahead are ignored: a forged one would keep its journal's work out of the books until that slice
 * opens.
 */
export type SliceBound = { readonly newest: number; readonly sliceCuts: number };

type PlacedShare = {
  readonly bootId: string;
  readonly sequence: number;
  readonly record: Pick<ShareRecord, 'identity'>;
  /** Known from before the database was replaced by an older copy. */
  readonly slice: number | undefined;
};

/** Assigns slices to the shares of one transaction, in the order of each journal. */
export class SharePlaces {
  readonly #bound: SliceBound;
  /** The slice that each journal has reached, by boot. */
  readonly #reached: Map<string, number>;

  private constructor(bound: SliceBound, reached: Map<string, number>) {
    this.#bound = bound;
    this.#reached = reached;
  }

  static async of(transaction: Transaction, bootIds: readonly string[], bound: SliceBound): Promise<SharePlaces> {
    const boots = byteaTexts([...new Set(bootIds)]);
    const rows = await transaction<
      { boot: string; slice: number }[]
    >`select encode(boot_id, 'hex') as boot, max(slice) as slice
      from later_starts where boot_id = any(${boots}::text[]::bytea[]) group by boot_id`;
    return new SharePlaces(bound, new Map(rows.map(({ boot, slice }) => [boot, slice])));
  }

  /** `open` is the slice that is open in the share's service. */
  place({ bootId, record, slice }: PlacedShare, open: number): number {
    const { newest, sliceCuts } = this.#bound;
    const own = record.identity === null ? 0 : sliceOfHeight(record.identity.anchorHeight, sliceCuts);
    const placed = Math.max(open, this.#reached.get(bootId) ?? 0, slice ?? 0, own > newest ? 0 : own);
    this.#reached.set(bootId, placed);
    return placed;
  }
}

/** Work of one transaction in slices that are still to be opened. */
export class LaterWork {
  /** By `service/account/slice`. */
  readonly #work = new Map<string, bigint>();
  /** The first entry of a boot that is in such a slice, by `boot/slice`. */
  readonly #starts = new Map<string, number>();

  add(at: { readonly service: number; readonly accountId: number; readonly slice: number }, work: bigint): void {
    const key = `${at.service}/${at.accountId}/${at.slice}`;
    this.#work.set(key, (this.#work.get(key) ?? 0n) + work);
  }

  /** To be called for each share that is in such a slice, whether it counts or not, in the order of each journal. */
  begin({ bootId, sequence }: PlacedShare, slice: number): void {
    const start = `${bootId}/${slice}`;
    if (!this.#starts.has(start)) this.#starts.set(start, sequence);
  }

  async write(transaction: Transaction): Promise<void> {
    if (this.#starts.size === 0) return;
    const starts = [...this.#starts.keys()].map((key) => key.split('/') as [string, string]);
    await transaction`insert into later_starts (boot_id, slice, first)
      select * from unnest(${byteaTexts(starts.map(([bootId]) => bootId))}::text[]::bytea[],
        ${starts.map(([, slice]) => Number(slice))}::int[], ${[...this.#starts.values()]}::bigint[])
      on conflict do nothing`;
    const keys = [...this.#work.keys()].map((key) => key.split('/').map(Number) as [number, number, number]);
    await transaction`insert into later_work (service, account_id, slice, work)
      select * from unnest(${keys.map(([service]) => service)}::smallint[], ${keys.map(([, id]) => id)}::int[],
        ${keys.map(([, , slice]) => slice)}::int[], ${[...this.#work.values()].map(String)}::numeric[])
      on conflict (service, slice, account_id) do update set work = later_work.work + excluded.work`;
  }
}

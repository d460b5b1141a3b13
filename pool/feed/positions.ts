/** The books' position, read from the database: how far each journal was taken in, and how far it was when slices closed. */
import { byteaTexts, type Sql } from '../database/connect.ts';
import type { Positions, Reign } from './entry-source.ts';
import type { SliceEnd, SliceEnds } from './slice-marks.ts';

export const positionsOf =
  (sql: Sql): Positions =>
  async (bootIds) => {
    const rows = await sql<{ boot_id: Buffer; through: bigint }[]>`select boot_id, through from journal_positions
      where boot_id = any(${byteaTexts(bootIds)}::text[]::bytea[])`;
    const known = new Map(rows.map((row) => [row.boot_id.toString('hex'), Number(row.through)]));
    return new Map(bootIds.map((bootId) => [bootId, known.get(bootId) ?? -1]));
  };

/**
 * Which election the books are kept under, and on which run of the server: after any fall of the database it is another, though the
 * number alone may come again.
 */
export const reignOf =
  (sql: Sql): Reign =>
  async () => {
    const [row] = await sql<{ reign: string }[]>`select number || '.' || coalesce(extract(epoch from server_started), 0)
      as reign from term`;
    return (row as { reign: string }).reign;
  };

/** A boot that is new to the books counts from the slice that is open now: nothing of it is in those that are closed. */
export const sliceEndsOf =
  (sql: Sql): SliceEnds =>
  async (known) => {
    const boots = [...known.keys()];
    const after = boots.map((bootId) => known.get(bootId) ?? -1);
    const rows = await sql<{ boot: string; slice: number; through: bigint | null }[]>`
      select k.boot, s.number as slice, e.through
      from unnest(${boots}::text[], ${after}::int[]) as k(boot, after)
      cross join (select max(number) as newest from slices where service = 0 and closed_height is not null) n
      join slices s on s.service = 0 and s.closed_height is not null and s.number > k.after
        and (k.after >= 0 or s.number = n.newest)
      left join slice_ends e on e.slice = s.number and e.boot_id = decode(k.boot, 'hex')
      order by s.number`;
    const found = new Map<string, SliceEnd[]>();
    for (const { boot, slice, through } of rows) {
      const ends = found.get(boot) ?? [];
      found.set(boot, ends);
      ends.push({ slice, through: through === null ? undefined : Number(through) });
    }
    return found;
  };

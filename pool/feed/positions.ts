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
 * Identifies the accountant's term and the run of the database server: it differs after any failure of the database,
 * although the number alone may be repeated.
 */
export const reignOf =
  (sql: Sql): Reign =>
  async () => {
    const [row] = await sql<{ reign: string }[]>`select number || '.' || coalesce(extract(epoch from server_started), 0)
      as reign from term`;
    return (row as { reign: string }).reign;
  };

/** A boot that is new to the books starts in the slice that is open now: it has no entries in closed slices. */
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

/** How far the books have taken each boot's journal. */
import type { Sql } from '../database/connect.ts';
import type { Positions } from './entry-source.ts';

export const positionsOf =
  (sql: Sql): Positions =>
  async (bootIds) => {
    const texts = bootIds.map((bootId) => `\\x${bootId}`);
    const rows = await sql<{ boot_id: Buffer; through: bigint }[]>`select boot_id, through from journal_positions
      where boot_id = any(${texts}::text[]::bytea[])`;
    const known = new Map(rows.map((row) => [row.boot_id.toString('hex'), Number(row.through)]));
    return new Map(bootIds.map((bootId) => [bootId, known.get(bootId) ?? -1]));
  };

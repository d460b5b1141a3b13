/**
 * Whoever changes several rows of a table that others change too takes that table's turn first, and holds it until its
 * transaction ends: two transactions that lock the same rows in different orders would wait for each other forever.
 * PostgreSQL ends one of the two (`40P01`), and the books wait. A change of a single row needs no turn. Rows are locked
 * `for no key update`: `for update` would also wait for everybody who refers to them.
 */
import type { Transaction } from './connect.ts';

/** First half of the lock's key, apart from the locks with a single key. */
const TURNS = 0x0053_5643;
const TABLES = ['accounts', 'workers'] as const;

export const takeTurn = (transaction: Transaction, table: (typeof TABLES)[number]) =>
  transaction`select pg_advisory_xact_lock(${TURNS}, ${TABLES.indexOf(table)})`;

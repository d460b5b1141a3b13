/** Real databases for a test file: a server is there before its tests, and they are gone after; each call of `fresh` makes one that is migrated and empty. */
import { afterAll, beforeAll } from 'vitest';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { type Databases, startDatabases } from './ready-cluster.ts';

export type DatabaseFixture = { readonly sql: Sql; readonly url: string };

/** A database of its own per call of `fresh`, on the one server. */
export function databaseServer(): { fresh(): Promise<DatabaseFixture> } {
  let databases: Databases | undefined;
  const open: Sql[] = [];
  beforeAll(async () => {
    databases = await startDatabases();
  });
  afterAll(async () => {
    await Promise.all(open.map((sql) => sql.end({ timeout: 1 })));
    await databases?.stop();
  });
  return {
    async fresh() {
      const url = await (databases as Databases).create();
      const sql = connectDatabase(url);
      open.push(sql);
      // Each migration raised the term; tests count from 0.
      await sql`update term set number = 0`;
      return { sql, url };
    },
  };
}

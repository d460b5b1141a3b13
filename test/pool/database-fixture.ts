/** One real PostgreSQL for a test file: started before its tests, stopped after, migrated, and emptied on request. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import type { EmbeddedPostgres } from '../../pool/database/embedded.ts';
import { createBooks, startReadyPostgres } from './ready-cluster.ts';

export type DatabaseFixture = { readonly sql: Sql; readonly url: string };

/** A database of its own per call of `fresh`, on the one server. */
export function databaseServer(): { fresh(): Promise<DatabaseFixture> } {
  let server: EmbeddedPostgres | undefined;
  const directory = mkdtempSync(join(tmpdir(), 'svc-postgres-'));
  const open: Sql[] = [];
  let made = 0;
  beforeAll(async () => {
    server = await startReadyPostgres(directory);
  });
  afterAll(async () => {
    await Promise.all(open.map((sql) => sql.end({ timeout: 1 })));
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    async fresh() {
      const url = await createBooks(server as EmbeddedPostgres, `test_${++made}`);
      const sql = connectDatabase(url);
      open.push(sql);
      // Each migration raised the term; tests count from 0.
      await sql`update term set number = 0`;
      return { sql, url };
    },
  };
}

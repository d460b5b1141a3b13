/** An error of a COPY reaches its caller, also when the server finds it after the last byte. */
import { expect, test } from 'vitest';
import { copyIn } from '../../pool/database/copy-in.ts';
import { databaseServer } from './database-fixture.ts';

const server = databaseServer();

test.each([
  ['a wrong value', 'x\n'],
  ['a value that breaks a rule', '7\n'],
  ['a wrong value after many good ones', `${'1\n'.repeat(200_000)}x\n`],
])('%s ends the copy with the reason, and the connection is good for more', async (_, text) => {
  const { sql } = await server.fresh();
  await sql`create table numbers (n integer check (n < 5))`;
  const copy = () => sql.begin((transaction) => copyIn(transaction`copy numbers from stdin`, text));
  await expect(copy()).rejects.toThrow(/invalid input syntax|check constraint/);
  await sql.begin((transaction) => copyIn(transaction`copy numbers from stdin`, '1\n2\n'));
  expect((await sql`select n from numbers order by n`).map(({ n }) => n)).toEqual([1, 2]);
});

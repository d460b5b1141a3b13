/** After a fall of the database ids may be other accounts' than before: the pool's API forgets what it has read of the books before. */
import { expect, test } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import { openPoolApiBed } from '../attack/pool-api-bed.ts';
import { account } from '../pool/books-bed.ts';
import { readJson } from '../stack/stack-fixture.ts';

test('names, rates and events are those of the books as they are now', { timeout: 60_000 }, async () => {
  const { base, sql, api } = await openPoolApiBed();
  const miners = async () => {
    const { miners: rows } = await readJson<{ miners: { address: string }[] }>(`${base}/miners?limit=100`);
    return rows.map(({ address }) => address);
  };
  const before = formatAddress(account('attack 0'), 'development');
  const after = formatAddress(account('somebody else'), 'development');
  await expect.poll(miners, { timeout: 15_000 }).toContain(before);
  const [first] = await sql<{ id: number }[]>`select id from accounts where address = ${before}`;
  // As after a fall: the id is somebody else's, versions and events count from further back, and another term has begun.
  await sql`alter table accounts disable trigger user`;
  await sql`update accounts set address = ${after}, payload = ${Buffer.from(account('somebody else'))}
    where id = ${first?.id as number}`;
  await sql`update stats_recent set version = -version`;
  await sql`update stats_recent set version = 1 - (select min(version) from stats_recent) + version`;
  await sql`update term set number = number + 1`;
  const seen = async () => {
    const found = await miners();
    return { before: found.includes(before), after: found.includes(after) };
  };
  await expect.poll(seen, { timeout: 20_000 }).toEqual({ before: false, after: true });
  expect(api.rates).toBeDefined();
});

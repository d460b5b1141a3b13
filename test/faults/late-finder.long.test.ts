/**
 * A solo block is credited to the pool because the journal that names its finder is away; then the journal comes. The pool is honest: no audit calls it false,
 * and its own tells the operator whom the reward belongs to.
 */
import { expect, onTestFinished, test } from 'vitest';
import { audit } from '../../pool/audit/audit.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import { reportText } from '../../pool/audit/report.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { UNKNOWN_FINDER } from '../../pool/books/intake.ts';
import { ensureAccounts } from '../../pool/books/made-accounts.ts';
import { formatAddress } from '../../protocol/address.ts';
import { ledgerOf, ownerOfService, POOL, pay } from '../pool/audit-bed.ts';
import { blockRecord, shareRecord } from '../pool/book-records.ts';
import { account, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { publishedPool } from '../pool/published-pool.ts';

const SOLO = 1;
const HEIGHT = 200;

test('a solo block whose finder comes to light after its list was made', async () => {
  const books = await openBooks();
  onTestFinished(() => books.close());
  const { sql } = books;
  await books.height(0);
  await books.take([shareRecord('solo', 0, 100n)]);
  const block = blockRecord('solo', 'late', 1, 0);
  await books.fenced((tx) =>
    books.intake.adoptBlock(tx, { ...block, account: account('pool'), worker: UNKNOWN_FINDER }),
  );
  await books.height(HEIGHT);
  await pay(books, 'late', 5_000_001n, 1);
  await books.fenced((tx) => makeCredits(tx, new ClosedWork(), { sliceCuts: SLICE_CUTS }, HEIGHT));
  await sql`insert into settings values ('chain_height', ${String(HEIGHT)}), ('pool_address', ${POOL})`;
  const ledger = await ledgerOf(sql, HEIGHT);
  const own = () => audit(sql, { network: 'development', ledger: { node: ledger, poolAddress: POOL } });
  expect(await own()).toMatchObject({ findings: [], owed: [] });

  const finder = { service: 'solo', account: account('miner 0'), worker: 'w' } as const;
  const journal = [{ kind: 'ownership', ...finder, owner: ownerOfService(SOLO) } as const, block];
  await books.take(journal, 'ab'.repeat(8));
  const report = await own();
  expect(report.findings).toEqual([]);
  expect(report.owed).toHaveLength(1);
  const address = formatAddress(account('miner 0'), 'development');
  expect(reportText(report, { ledger: true, wallet: false })).toMatch(
    new RegExp(`To be passed on by the operator: block .*5000001 atoms.*${address}`),
  );
  expect(reportText(report, { ledger: true, wallet: false })).not.toContain('every atom is where it belongs');
  expect((await auditPublic({ pool: publishedPool(sql), node: ledger as never })).findings).toEqual([]);

  // A finder who is on record stays so, and when that came on record too.
  await expect(sql`update ownerships set after_list = 0`).rejects.toThrow('cannot be changed');
  await expect(sql`delete from ownerships`).rejects.toThrow('cannot be changed');

  // With the triggers off it can be edited: the row is named, whichever of the two records it is in.
  const names = async () => (await own()).findings.map(({ what }) => what);
  const owner = Buffer.from(ownerOfService(SOLO)).toString('hex');
  const named = expect.stringContaining(`owner ${owner}: `);
  for (const [table, list] of [
    ['ownerships', 0],
    ['ownerships', 77],
    ['ownership_notes', 77],
  ] as const) {
    const edit = (value: number) =>
      sql.begin(async (tx) => {
        await tx`alter table ${tx(table)} disable trigger user`;
        await tx`update ${tx(table)} set after_list = ${value}`;
        await tx`alter table ${tx(table)} enable trigger user`;
      });
    await edit(list);
    expect(await names(), `${table} ${list}`).toContainEqual(named);
    await edit(1);
    expect(await names()).toEqual([]);
  }
  // Both edited alike, to a list that nobody has made.
  await sql.begin(async (tx) => {
    for (const table of ['ownerships', 'ownership_notes']) {
      await tx`alter table ${tx(table)} disable trigger user`;
      await tx`update ${tx(table)} set after_list = 77`;
      await tx`alter table ${tx(table)} enable trigger user`;
    }
  });
  expect(await names()).toContainEqual(named);

  // What somebody else was given is no such case, nor is what is not in a list.
  await sql`alter table blocks disable trigger user`;
  await sql`update blocks set worker_id = (select min(id) from workers)`;
  expect((await own()).findings.map(({ what }) => what)).toContainEqual(expect.stringMatching(/: finder$/));
});

test('a solo block that somebody puts down to the pool although its finder is on record', async () => {
  const books = await openBooks();
  onTestFinished(() => books.close());
  const { sql } = books;
  await books.height(0);
  const finder = { service: 'solo', account: account('miner 0'), worker: 'w' } as const;
  const owner = { kind: 'ownership', ...finder, owner: ownerOfService(SOLO) } as const;
  await books.take([owner, shareRecord('solo', 0, 100n), blockRecord('solo', 'late', 1, 0)]);
  await books.fenced((tx) => ensureAccounts(tx, [Buffer.from(account('pool')).toString('hex')], 'development'));
  await sql`insert into workers (account_id, service, name) select id, ${SOLO}, ${UNKNOWN_FINDER} from accounts where address = ${POOL}`;
  const edit = () =>
    sql`update blocks b set account_id = w.account_id, worker_id = w.id from workers w where w.name = ${UNKNOWN_FINDER}`;
  await expect(edit()).rejects.toThrow('the finder of a block is on record');
  // The owner of the database can take the trigger away.
  await sql`alter table blocks disable trigger user`;
  expect((await edit()).count).toBe(1);
  await books.height(HEIGHT);
  await pay(books, 'late', 5_000_001n, 1);
  await books.fenced((tx) => makeCredits(tx, new ClosedWork(), { sliceCuts: SLICE_CUTS }, HEIGHT));
  await sql`insert into settings values ('chain_height', ${String(HEIGHT)}), ('pool_address', ${POOL})`;
  const ledger = { node: await ledgerOf(sql, HEIGHT), poolAddress: POOL };
  const report = await audit(sql, { network: 'development', ledger });
  expect(report.owed).toEqual([]);
  expect(report.findings).toMatchObject([
    {
      what: expect.stringMatching(/: finder$/),
      books: 'not on record',
      computed: expect.stringContaining('before the list'),
    },
  ]);
});

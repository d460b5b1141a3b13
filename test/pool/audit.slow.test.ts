/**
 * The audit against 70 kinds of edits of a real database: each is noticed with the row named, and none ends the audit. The
 * ledger is what the honest books say, read before any edit.
 */
import type { TransactionSql } from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownerBytes } from '../../bridge/session/extranonce.ts';
import { audit, auditMoment } from '../../pool/audit/audit.ts';
import { booksOf } from '../../pool/audit/books-of.ts';
import { COVERAGE, UNCOVERED_COLUMNS } from '../../pool/audit/coverage.ts';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { encodeRecord } from '../../pool/journal/journal-record.ts';
import { formatAddress } from '../../protocol/address.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { openAuditBed, POOL } from './audit-bed.ts';
import { shareRecord } from './book-records.ts';
import { account, type BooksBed } from './books-bed.ts';

let books: BooksBed;
let ledger: LedgerReads;

beforeAll(async () => {
  ({ books, ledger } = await openAuditBed());
});
afterAll(() => books.close());

const [ONE, TWO] = [1, 2].map((n) => `'00000000-0000-4000-8000-00000000000${n}'`);
const anAccount = '(select min(id) from accounts)';
const another = '(select max(id) from accounts)';
const paidBlock = `(select min(block_id) from blocks where state = 'paid')`;
const soloBlock = `(select min(block_id) from blocks where state = 'paid' and service = 1)`;

const putBack = `with gone as (delete from payout_items where payout_id = ${TWO} returning account_id, amount) update accounts a set balance = a.balance + g.amount, paid = a.paid - g.amount from gone g where a.id = g.account_id; delete from payouts where id = ${TWO}`;
const OWNER = toHex(ownerBytes({ bootId: pattern('boot', 8), thread: 1, connection: 1 }));

/** What is edited, and a word of the finding that names the row. */
const EDITS: readonly (readonly [edit: string, names: RegExp])[] = [
  [
    `update accounts set address = '${formatAddress(account('thief'), 'development')}' where id = ${anAccount}`,
    /account \d+: address/,
  ],
  [`update accounts set payload = '\\x${'00'}${toHex(pattern('thief', 48))}' where id = ${anAccount}`, /address|slice/],
  [`update accounts set payload = set_byte(payload, 0, 9) where id = ${anAccount}`, /account \d+: address/],
  [
    `with two as (select id, payload, address from accounts where id in (${anAccount}, ${another})) update accounts a set payload = set_byte(a.payload, 40, get_byte(a.payload, 40) # 255) where a.id in (select id from two)`,
    /address/,
  ],
  [
    `update account_names set payload = set_byte(payload, 40, get_byte(payload, 40) # 255) where account_id = ${anAccount}`,
    /account \d+: payload/,
  ],
  [`delete from account_names where account_id = ${another}`, /account \d+: payload/],
  [
    `insert into credit_totals select max(id), sum(credited), '', '' from credit_lists`,
    /totals through credit list \d+: accounts/,
  ],
  [
    `insert into credit_totals select max(id), sum(credited), '', '\\x01' from credit_lists`,
    /^totals through credit list \d+$/,
  ],
  [`update accounts set balance = balance + 1 where id = ${anAccount}`, /account \d+: balance/],
  [`update accounts set balance = balance + 1, paid = paid - 1 where paid > 0`, /account \d+: paid/],
  [`update accounts set in_flight = in_flight + 5, balance = 0 where id = ${another}`, /in flight/],
  [
    `update accounts set balance = balance + 100 where id = ${anAccount}; update accounts set balance = balance - 100 where id = (select id from accounts where balance >= 100 order by id desc limit 1)`,
    /account \d+: balance/,
  ],
  [`delete from slices where number = 2 and service = 0`, /slice 3 of pplns: the one before/],
  [`delete from slices where number = 0 and service = 0`, /previous|W/],
  [`delete from slices where closed_height is null and service = 0`, /open slice of pplns/],
  [`update slices set window_work = window_work + 1 where number = 3 and service = 0`, /slice 3 of pplns: W/],
  [`update slices set window_work = window_work * 2 where closed_height is null`, /W/],
  [
    `update slices set root = set_byte(root, 0, get_byte(root, 0) # 1) where number = 3 and service = 0`,
    /slice 3 of pplns: root/,
  ],
  [`update slices set total = total + 1 where number = 3 and service = 0`, /slice 3 of pplns: total/],
  [
    `update slices set leaves = set_byte(leaves, 4, get_byte(leaves, 4) # 1) where number = 3 and service = 0`,
    /slice 3 of pplns/,
  ],
  [`update slices set leaves = substring(leaves from 21) where number = 3 and service = 0`, /slice 3 of pplns/],
  [`update slices set leaves = leaves || leaves where number = 3 and service = 0`, /slice 3 of pplns: leaves/],
  [`update slices set leaves = set_byte(leaves, 0, 250) where number = 3 and service = 0`, /slice 3 of pplns: account/],
  [`update slices set leaves = substring(leaves from 1 for 13) where number = 3 and service = 0`, /slice 3 of pplns/],
  [
    `update slices set target = set_byte(target, 31, 7) where number = 3 and service = 1`,
    /slice 3 of (solo|service 1)/,
  ],
  [`update slices set fee_ppm = 20000 where number = 3 and service = 0`, /slice 3 of pplns/],
  [`update slices set window_thousandths = 1 where number = 3 and service = 0`, /slice 3 of pplns: (W|chain)/],
  [`update slices set slice_cuts = 5 where number = 3 and service = 0`, /slice 3 of pplns/],
  [`update slices set opened_height = 13 where number = 3 and service = 0`, /slice 3 of pplns: opened/],
  [`update slices set closed_height = 17 where number = 3 and service = 0`, /slice 3 of pplns: closed at/],
  [`update slices set chain = previous where number = 3 and service = 0`, /slice 3 of pplns: chain/],
  [`update slices set previous = chain where number = 3 and service = 0`, /slice 3 of pplns: previous/],
  [
    `insert into open_work select 0, ${anAccount}, 5 on conflict (service, account_id) do update set work = open_work.work + 5`,
    /raw shares/,
  ],
  [`insert into open_work values (1, ${anAccount}, 12345)`, /raw shares/],
  [
    `update shares set work = work + 1 where sequence = (select min(sequence) from shares where service = 0)`,
    /raw shares of account/,
  ],
  [
    `update shares set account_id = ${another} where sequence = (select min(sequence) from shares where service = 0)`,
    /raw shares/,
  ],
  [`update shares set identity = (select min(identity) from shares)`, /raw shares of header and nonce/],
  [
    `update shares set slice = slice + 1 where sequence = (select min(sequence) from shares where service = 0)`,
    /raw shares/,
  ],
  [`delete from shares where sequence = (select min(sequence) from shares where service = 0)`, /raw shares/],
  [`delete from shares where slice = 3`, /slice 3 of pplns: raw shares/],
  [`update credit_lists set credits = set_byte(credits, 4, get_byte(credits, 4) # 1) where id = 1`, /credits of slice/],
  [`update credit_lists set credits = substring(credits from 13) where id = 1`, /credits of slice/],
  [`update credit_lists set credits = substring(credits from 1 for 7) where id = 1`, /credit/],
  [
    `update credit_lists set root = set_byte(root, 0, get_byte(root, 0) # 1) where id = 1`,
    /credits of slice \d of \w+: root/,
  ],
  [`update credit_lists set fee_ppm = 0 where id = 1`, /fee rate/],
  [`update credit_lists set fee = fee + 1, credited = credited - 1 where id = 1`, /fee/],
  [`update credit_lists set reward = reward + 1, fee = fee + 1 where id = 1`, /reward/],
  [`update credit_lists set window_work = window_work + 1 where id = 1`, /credits of slice \d of \w+: W/],
  [
    `update credit_lists set window_parts = '[]' where id = (select max(id) from credit_lists where service = 0)`,
    /window/,
  ],
  [`update credit_lists set blocks = blocks + 1 where id = 1`, /blocks/],
  [`update credit_lists set slice = 99 where id = 1`, /credit/],
  [
    `update blocks set credit_list = null where credit_list = 1; delete from credit_lists where id = 1`,
    /not credited|balance|block/,
  ],
  [`update blocks set credit_list = null where block_id = ${paidBlock}`, /block|credits of slice/],
  [
    `update blocks set credit_list = (select max(id) from credit_lists) where block_id = ${paidBlock}`,
    /credits of slice/,
  ],
  [`update blocks set reward = reward + 1 where block_id = ${paidBlock}`, /block [0-9a-f]+: reward/],
  [
    `update blocks set reward_transaction = set_byte(reward_transaction, 0, get_byte(reward_transaction, 0) # 1) where block_id = ${paidBlock}`,
    /reward transaction/,
  ],
  [`update blocks set reward_output = 3 where block_id = ${paidBlock}`, /reward output/],
  [`update blocks set settled_height = settled_height + 1 where block_id = ${paidBlock}`, /paid at/],
  [`update blocks set anchor_height = anchor_height + 1 where block_id = ${paidBlock}`, /anchor/],
  [`update blocks set slice = slice + 1 where block_id = ${paidBlock}`, /credits of slice|slice/],
  [`update blocks set state = 'expired', reward = null where block_id = ${paidBlock}`, /paid by the ledger/],
  [`update blocks set state = 'refused', reward = null where block_id = ${paidBlock}`, /paid by the ledger/],
  [`delete from blocks where block_id = ${paidBlock}`, /reward [0-9a-f]+ of cut/],
  [
    `update blocks set block_id = set_byte(block_id, 0, get_byte(block_id, 0) # 1) where block_id = ${paidBlock}`,
    /block|reward/,
  ],
  [
    `update blocks set state = 'paid', reward = 5, reward_output = 0, settled_height = 96, reward_transaction = block_id where block_id = (select min(block_id) from blocks where state = 'expired')`,
    /paid by the ledger/,
  ],
  [`update blocks set service = 1 - service where block_id = ${paidBlock}`, /credits of slice/],
  [
    `update blocks set account_id = case when account_id = ${anAccount} then ${another} else ${anAccount} end where block_id = ${soloBlock}`,
    /credits of slice/,
  ],
  [
    `delete from payout_items where payout_id = ${ONE}; delete from payouts where id = ${ONE}`,
    /paid|no payout|transaction/,
  ],
  [
    `with gone as (delete from payout_items where payout_id = ${ONE} returning account_id, amount) update accounts a set balance = a.balance + g.amount, paid = a.paid - g.amount from gone g where a.id = g.account_id; delete from payouts where id = ${ONE}`,
    /transaction [0-9a-f]+ of cut 150/,
  ],
  [`update payout_items set amount = amount + 1 where payout_id = ${ONE}`, /payout .* to /],
  [
    `update payout_items set amount = amount + 1 where payout_id = ${ONE}; update accounts a set balance = a.balance - 1, paid = a.paid + 1 from payout_items i where i.account_id = a.id and i.payout_id = ${ONE} and a.balance > 0`,
    /payout .* to /,
  ],
  [
    `update payouts set transaction_id = set_byte(transaction_id, 0, get_byte(transaction_id, 0) # 1) where id = ${ONE}`,
    /payout .*: transaction/,
  ],
  [`update payouts set transaction_id = null where id = ${ONE}`, /payout .*: transaction/],
  [`update payouts set final_height = 151 where id = ${ONE}`, /payout .*: transaction/],
  [`update payouts set fee = fee + 1 where id = ${ONE}`, /payout .*: fee/],
  [
    `update payouts set books_head = set_byte(books_head, 0, get_byte(books_head, 0) # 1) where id = ${ONE}`,
    /payout .*: head of the books/,
  ],
  [`update payouts set books_slice = books_slice - 1 where id = ${ONE}`, /payout .*: head of the books/],
  [`update payouts set books_slice = 99 where id = ${ONE}`, /payout .*: head of the books/],
  [
    `update payouts set books_slice = null, books_head = null, number = null where id = ${ONE}`,
    /payouts between number/,
  ],
  [
    `update payouts p set books_slice = 3, books_head = q.books_head from payouts q where p.id = ${ONE} and q.id <> ${ONE}`,
    /payout .*: head of the books/,
  ],
  [`update payouts set number = 7 where number = 2`, /payouts between number|commitment/],
  [`update payouts set state = 'void' where id = ${ONE}`, /account \d+: paid/],
  [
    `update accounts a set balance = a.balance + i.amount, paid = a.paid - i.amount from payout_items i where i.payout_id = ${ONE} and a.id = i.account_id; update payouts set state = 'void', final_height = null where id = ${ONE}`,
    /transaction [0-9a-f]+ of cut 150/,
  ],
  [`update payouts set state = 'submitted' where id = ${ONE}`, /account \d+: (in flight|paid)/],
  [
    `update payout_items set account_id = (select max(id) from accounts where id not in (select account_id from payout_items where payout_id = ${ONE})) where payout_id = ${ONE} and account_id = (select min(account_id) from payout_items where payout_id = ${ONE})`,
    /payout .* to |account/,
  ],
  [`${putBack}; update settings set value = '149' where name = 'chain_height'`, /setting chain_height/],
  [`${putBack}; update settings set value = '0' where name = 'chain_height'`, /setting chain_height/],
  [`${putBack}; delete from settings where name = 'chain_height'`, /setting chain_height/],
  [`update settings set value = 'x' where name = 'chain_height'`, /setting chain_height/],
  [`insert into settings values ('terms_in_force', '{}')`, /setting terms_in_force/],
  [`insert into settings values ('edit_fee_pplns', '{}')`, /setting edit_fee_pplns/],
  [`insert into settings values ('edit_payout_min', '0')`, /setting edit_payout_min/],
  [`update settings set value = '99999999' where name = 'chain_height'`, /setting chain_height/],
  [`update settings set value = 'dsvc1thief' where name = 'pool_address'`, /setting pool_address/],
  [`update blocks set state = 'held' where state <> 'paid'`, /block [0-9a-f]+: state/],
  [`update blocks set account_id = ${another} where service = 0 and state = 'paid'`, /block [0-9a-f]+: finder/],
  [`update blocks set worker_id = (select max(id) from workers) where service = 1`, /block [0-9a-f]+: finder/],
  [
    `insert into ownerships select '\\x${OWNER}', 0, ${another}, (select max(id) from workers)`,
    /block [0-9a-f]+: finder/,
  ],
  [`update credit_lists set made_height = 1`, /credits of slice \d of \w+: made at/],
  [`update credit_lists set made_height = 201 where id = 3`, /credits of slice \d of \w+: made at/],
];

const AGAINST_LEDGER = () =>
  ({ network: 'development', ledger: { node: ledger, poolAddress: POOL }, pauseMillis: 0 }) as const;
const audited = (sql: Sql) => audit(sql, AGAINST_LEDGER());
/** An attacker who edits a database removes its triggers first. */
const TABLES = ['slices', 'credit_lists', 'blocks', 'payouts', 'payout_items', 'accounts', 'account_names'];

test('honest books have no finding, against themselves and against the ledger', async () => {
  expect((await audited(books.sql)).findings).toEqual([]);
  expect((await audit(books.sql, { network: 'development' })).findings).toEqual([]);
});

test('there are 70 kinds of edits', () => expect(EDITS.length).toBeGreaterThanOrEqual(70));

describe('edits, each undone before the next', () => {
  let open: TransactionSql;
  const { promise: over, resolve: undo } = Promise.withResolvers<void>();
  let undone: Promise<unknown>;

  beforeAll(async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    undone = books.sql
      .begin(async (tx) => {
        for (const table of TABLES) await tx.unsafe(`alter table ${table} disable trigger user`);
        await tx.unsafe('alter table payout_items drop constraint payout_items_payout_id_fkey');
        await tx.unsafe('alter table blocks drop constraint blocks_credit_list_fkey');
        open = tx;
        resolve();
        await over;
        throw new Error('undo');
      })
      .catch((error: Error) => expect(error.message).toBe('undo'));
    await promise;
  });
  afterAll(async () => {
    undo();
    await undone;
  });

  for (const [edit, names] of EDITS)
    test(`noticed: ${edit.replace(/\s+/g, ' ').slice(0, 150)}`, async () => {
      await open
        .savepoint(async (tx) => {
          await tx.unsafe(edit);
          const { findings } = await auditMoment(tx as unknown as Sql, AGAINST_LEDGER());
          expect(
            findings.map((finding) => finding.what).filter((what) => names.test(what)),
            JSON.stringify(findings.slice(0, 5)),
          ).not.toEqual([]);
          throw new Error('undo');
        })
        .catch((error: Error) => expect(error.message).toBe('undo'));
    });
});

test('closed rows cannot be changed by a mistaken hand', async () => {
  for (const edit of [
    `update slices set total = total + 1 where number = 3`,
    `delete from slices where number = 3`,
    `update credit_lists set fee = fee + 1, credited = credited - 1`,
    `update blocks set reward = reward + 1 where block_id = ${paidBlock}`,
    `delete from blocks`,
    `update payouts set fee = 0 where id = ${ONE}`,
    `update payouts set books_head = null, books_slice = null where id = ${ONE}`,
    `delete from payouts where id = ${ONE}`,
    `update payout_items set amount = amount + 1`,
    `update accounts set address = 'x' where id = ${anAccount}`,
    `delete from accounts where id = ${another}`,
    `update account_names set payload = payload where account_id = ${another}`,
    `delete from account_names where account_id = ${another}`,
  ])
    await expect(books.sql.unsafe(edit), edit).rejects.toThrow(/cannot be changed/);
});

test('every table is audited or named as not audited', async () => {
  const rows = await books.sql<{ name: string }[]>`select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`;
  const unknown = rows.map((row) => row.name.replace(/^shares_\d.*/, 'shares')).filter((name) => !(name in COVERAGE));
  expect(unknown).toEqual([]);
  const there = new Set(rows.map((row) => row.name));
  expect(Object.keys(COVERAGE).filter((name) => !there.has(name) && name !== 'shares')).toEqual([]);
  const columns = await books.sql<{ name: string }[]>`select table_name || '.' || column_name as name
    from information_schema.columns where table_schema = 'public'`;
  const known = new Set(columns.map((column) => column.name));
  expect(Object.keys(UNCOVERED_COLUMNS).filter((name) => !known.has(name))).toEqual([]);
});

test('a block of a cut after the newest of the books is paid where the ledger says so, whichever of the two is ahead', async () => {
  const id = `(select min(block_id) from blocks where state = 'paid')`;
  const cases = [
    {
      name: 'the ledger paid after this moment of the books',
      edit: `update blocks set state = 'registered', reward = null, credit_list = null`,
      height: 201,
      found: false,
    },
    {
      name: 'the books paid it just before they noted the cut',
      edit: `update blocks set settled_height = 201, anchor_height = 105`,
      height: 201,
      found: false,
    },
    {
      name: 'the node has not reached the cut',
      edit: `update blocks set settled_height = 200, anchor_height = 104`,
      height: undefined,
      found: false,
    },
    {
      name: 'the node has just reached the cut, and it paid nothing',
      edit: `update blocks set settled_height = 199, anchor_height = 103`,
      height: undefined,
      found: true,
    },
    {
      name: 'a cut that is to come, of which the ledger knows nothing',
      edit: `update blocks set settled_height = 260`,
      height: undefined,
      found: true,
    },
  ];
  for (const { name, edit, height, found } of cases)
    await books.sql
      .begin(async (tx) => {
        await tx.unsafe('alter table blocks disable trigger user');
        await tx.unsafe('alter table blocks drop constraint blocks_credit_list_fkey');
        const [row] = await tx.unsafe(`select block_id from blocks where block_id = ${id}`);
        const transaction = rewardTransaction(row?.block_id.toString('hex'));
        await tx.unsafe(`${edit} where block_id = ${id}`);
        const node = {
          ...ledger,
          addressChanges: async (asked: Parameters<LedgerReads['addressChanges']>[0]) => {
            const page = await ledger.addressChanges(asked);
            const changes = page.changes
              .filter((each) => height !== undefined || each.transaction_id !== transaction)
              .map((each) =>
                each.transaction_id === transaction ? { ...each, finalized_height: height as number } : each,
              );
            return { ...page, indexed_height: height ?? 199, changes };
          },
        } as LedgerReads;
        const { findings } = await auditMoment(tx as unknown as Sql, {
          network: 'development',
          ledger: { node, poolAddress: POOL },
        });
        const named = findings.filter(({ what }) => what.includes('paid by the ledger'));
        expect(named.length > 0, name).toBe(found);
        throw new Error('undo');
      })
      .catch((error: Error) => expect(error.message).toBe('undo'));
});

test('work that the pool takes in between two reads of an audit is no finding', async () => {
  const record = encodeRecord(shareRecord('pplns', 1, 1_000n));
  const [report] = await books.fenced(async (tx) => {
    // The audit has read the work of the open slice when it comes to the raw shares, and waits there.
    await tx`lock table shares in access exclusive mode`;
    const report = audited(books.sql);
    await expect
      .poll(() => books.sql`select from pg_locks where relation = 'shares'::regclass and not granted`)
      .toHaveLength(1);
    await books.intake.take(tx, [{ bootId: 'ab'.repeat(8), sequence: 0, record }]);
    return [report] as const;
  });
  expect((await report).findings).toEqual([]);
  expect((await audited(books.sql)).findings).toEqual([]);
});

test('a section that the database cannot answer is one finding, and the sections after it are read', async () => {
  await books.sql
    .begin(async (tx) => {
      await tx.unsafe('alter table shares rename column work to hidden');
      const report = await auditMoment(tx as unknown as Sql, AGAINST_LEDGER());
      expect(report.findings.map(({ what, books: said }) => `${what} ${said}`)).toEqual([
        'raw shares cannot be audited',
      ]);
      expect(report.accounts).toBeGreaterThan(0);
      throw new Error('undo');
    })
    .catch((error: Error) => expect(error.message).toMatch(/undo|hidden|column "work"/));
});

test('what a stranger pays to a miner is no payment of the pool, and what the pool pays to one is', async () => {
  const [row] = await books.sql<{ address: string }[]>`select address from accounts order by id limit 1`;
  const miner = row?.address as string;
  const id = 'a1'.repeat(48);
  const paid = { kind: 'received', source: 'regular', transaction_id: id, finalized_height: 120, amount: '5' };
  const paidBy = async (payer: string) => {
    const made = { transaction_id: id, outcome: 'finalized', fee: '1', payload_hex: '', inputs: [{ address: payer }] };
    const node = {
      ...ledger,
      addressChanges: async (asked: Parameters<LedgerReads['addressChanges']>[0]) => {
        const page = await ledger.addressChanges(asked);
        const more = asked.addresses.includes(miner) ? [{ ...paid, address: miner }] : [];
        return { ...page, changes: [...page.changes, ...more] };
      },
      cutTransactions: async (asked: Parameters<LedgerReads['cutTransactions']>[0]) => {
        const page = await ledger.cutTransactions(asked);
        const more = asked.height === 120 ? [{ ...made, outputs: [{ address: miner, amount: '5' }] }] : [];
        return { ...page, transactions: [...page.transactions, ...more] };
      },
    } as LedgerReads;
    const { findings } = await audit(books.sql, { network: 'development', ledger: { node, poolAddress: POOL } });
    return findings.map(({ what }) => what);
  };
  expect(await paidBy(miner)).toEqual([]);
  expect(await paidBy(POOL)).toEqual([`transaction ${id} of cut 120`]);
});

test('a database that no pool has begun is named as such', async () => {
  expect(await booksOf(books.sql)).toEqual({ network: 'development', poolAddress: POOL });
  await books.sql
    .begin(async (tx) => {
      for (const edit of [`delete from settings where name = 'pool_address'`, 'drop table settings']) {
        await tx.unsafe(edit);
        await expect(booksOf(tx as unknown as Sql)).rejects.toMatchObject({ code: 'not_a_pool' });
      }
      throw new Error('undo');
    })
    .catch((error: Error) => expect(error.message).toBe('undo'));
});

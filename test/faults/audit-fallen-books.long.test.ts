/**
 * Audits of a pool whose database fell back to an older copy and that reads the chain again: what the books have not reached yet is not checked, and nothing
 * is called false. What can have no honest reason is. The same of a node that is behind, lacks something or is gone: what it does not tell makes nothing wrong.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, auditMoment } from '../../pool/audit/audit.ts';
import { REMEDIES } from '../../pool/audit/findings.ts';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import { publicReportText, reportText } from '../../pool/audit/report.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { commitmentPayload } from '../../protocol/books/books-commitment.ts';
import type { CommitmentRow } from '../../protocol/books/ledger-payouts.ts';
import { ledgerCarrying } from '../attack/dishonest-pool.ts';
import { openAuditBed, POOL } from '../pool/audit-bed.ts';
import type { BooksBed } from '../pool/books-bed.ts';
import { publishedPool } from '../pool/published-pool.ts';

/** Both payouts commit slice 49, which cut 200 closed. */
const PAID = 230;
const NOW = 250;
let books: BooksBed;
let ledger: LedgerReads;
beforeAll(async () => {
  ({ books, ledger } = await openAuditBed(PAID));
  await books.height(NOW);
  await books.sql`update settings set value = ${String(NOW)} where name = 'chain_height'`;
});
afterAll(() => books.close());

/** Runs with books that fell back to a height, and puts everything back. */
async function fallen(height: number, work: (sql: Sql) => Promise<void>): Promise<void> {
  const slice = Math.floor(height / 4);
  await books.sql
    .begin(async (tx) => {
      for (const table of ['slices', 'credit_lists', 'payouts', 'payout_items', 'accounts'])
        await tx.unsafe(`alter table ${table} disable trigger user`);
      await tx`delete from slices where number > ${slice}`;
      await tx`update slices set closed_height = null, total = null, root = null, leaves = null, previous = null,
        chain = null where number = ${slice}`;
      await tx`update credit_lists set made_height = least(made_height, ${height})`;
      await tx`update settings set value = ${String(height)} where name = 'chain_height'`;
      await work(tx as unknown as Sql);
      throw new Error('undo');
    })
    .catch((error: Error) => expect(error.message).toBe('undo'));
}

/** The payouts are lost with the rest, or booked again from the wallet's record: then the books do not know what they carry. */
const lost = async (sql: Sql) => {
  await sql`update accounts set balance = balance + paid, paid = 0`;
  await sql`delete from payout_items`;
  await sql`delete from payouts`;
};
const bookedAgain = (sql: Sql) => sql`update payouts set books_slice = null, books_head = null`;

const publicAudit = (sql: Sql, node = ledger) => auditPublic({ pool: publishedPool(sql), node: node as never });
const AGAINST_LEDGER = (node: LedgerReads) =>
  ({ network: 'development', ledger: { node, poolAddress: POOL } }) as const;
const ownAudit = (sql: Sql, node = ledger) => auditMoment(sql, AGAINST_LEDGER(node));

test('before it fell, the pool holds', async () => {
  expect((await publicAudit(books.sql)).findings).toEqual([]);
  expect((await audit(books.sql, AGAINST_LEDGER(ledger))).findings).toEqual([]);
});

for (const [how, change] of [
  ['lost', lost],
  ['booked again', bookedAgain],
] as const)
  test(`payouts that commit a slice which the books have not reached again, ${how}, are not checked`, () =>
    fallen(160, async (sql) => {
      await change(sql);
      const report = await publicAudit(sql);
      expect(report.findings).toEqual([]);
      expect(report.verdict).toBe('unchecked');
      expect(report.not_checked.join('\n')).toMatch(/the pool’s books have not reached/);
      const own = await ownAudit(sql);
      expect(own.findings).toEqual([]);
      expect(own.not_checked.length).toBeGreaterThan(0);
      expect(reportText(own, { ledger: true, wallet: false })).toMatch(/Not checked: .*have not reached/);
    }));

test('books that have reached the cuts of the payouts and still lack them omit them, and do not lie: the wallet may be down', () =>
  fallen(PAID + 17, async (sql) => {
    await lost(sql);
    const report = await publicAudit(sql);
    expect(report.findings).toEqual([]);
    expect([report.verdict, report.suspicions]).toEqual([
      'suspicious',
      [{ name: 'payouts_unlisted', says: expect.stringMatching(/^2 payouts, the first transaction \w+ of cut/) }],
    ]);
    expect(publicReportText(report)).toMatch(/SUSPICION \(payouts_unlisted\)[\s\S]*Verdict: suspicious/);
    expect((await ownAudit(sql)).findings.map(({ books: said }) => said)).toContain('no payout');
  }));

type Commitments = { readonly commitments: readonly CommitmentRow[] };
for (const [what, change] of [
  ['a later payout', (rows: readonly CommitmentRow[]) => rows.slice(1)],
  [
    'another transaction under its number',
    (rows: readonly CommitmentRow[]) => rows.map((row, i) => ({ ...row, transaction_id: `${i}c`.repeat(48) })),
  ],
] as const)
  test(`a pool that lists ${what} denies a payout of the ledger, which no fall of its books explains`, async () => {
    const pool = publishedPool(books.sql, (path, answer) =>
      path.startsWith('commitments') ? { commitments: change((answer as Commitments).commitments) } : answer,
    );
    const report = await auditPublic({ pool, node: ledger as never });
    expect(report.verdict).toBe('false');
    expect(report.findings.map(({ books: said }) => said)).toContain('not listed');
  });

test('a payment that is listed without its commitment contradicts the list of commitments', async () => {
  const pool = publishedPool(books.sql, (path, answer) =>
    path.startsWith('commitments') ? { commitments: [] } : answer,
  );
  const report = await auditPublic({ pool, node: ledger as never });
  expect(report.findings.map(({ books: said }) => said)).toContain('not listed');
});

test('a commitment to a slice that was not closed when the payout was made is false, however far the books are', () =>
  fallen(160, async (sql) => {
    await bookedAgain(sql);
    const early = ledgerCarrying(ledger, () => commitmentPayload({ number: 1, slice: 60, head: '00'.repeat(48) }));
    expect((await publicAudit(sql, early)).verdict).toBe('false');
    expect((await ownAudit(sql, early)).findings).not.toEqual([]);
  }));

test('books that fall between two questions of an audit are read again', () =>
  fallen(160, async (sql) => {
    await sql`alter table blocks disable trigger user`;
    await sql`update blocks set credit_list = null, state = 'registered', reward = null`;
    await sql`delete from credit_totals`;
    await sql`delete from credit_lists`;
    await lost(sql);
    let pool = publishedPool(books.sql);
    const falling = async (path: string) => {
      const answer = await pool(path);
      if (path.startsWith('commitments')) pool = publishedPool(sql);
      return answer;
    };
    const report = await auditPublic({ pool: falling, node: ledger as never });
    expect([report.findings, report.verdict]).toEqual([[], 'unchecked']);
  }));

test('a pool that hides payments is false, however often it says that its books have fallen', async () => {
  let [height, readings] = [NOW, 0];
  const pool = publishedPool(books.sql, (path, answer) => {
    if (path === 'terms') return { ...(answer as object), height: height-- };
    if (!path.startsWith('payments')) return answer;
    readings++;
    return { ...(answer as object), payments: [] };
  });
  expect((await auditPublic({ pool, node: ledger as never })).verdict).toBe('false');
  expect(readings).toBe(3);
});

/** The ledger as a node tells it that has the cuts from `first` through `head`. */
const nodeWith = (first: number, head: number): LedgerReads => ({
  ...ledger,
  cuts: async (asked) => {
    const page = await ledger.cuts({ ...asked, before: Math.min(asked?.before ?? head + 1, head + 1) });
    return { ...page, cuts: page.cuts.filter(({ height }) => height >= first) };
  },
});

test('a node that is behind the books, or began with a snapshot, makes no slice wrong', async () => {
  const behind = await audit(books.sql, AGAINST_LEDGER(nodeWith(0, 100)));
  expect(behind.findings).toEqual([]);
  expect(behind.not_checked).toContain(
    'slice 62 of service 1: target: it begins with cut 248, and the node has read up to cut 100',
  );
  const late = await audit(books.sql, AGAINST_LEDGER(nodeWith(100, NOW)));
  expect(late).toMatchObject({ ledger: false, unread: 1, differences: 1 });
  expect(late.findings).toEqual([
    {
      what: 'targets against the ledger',
      books: 'cannot be audited',
      computed: 'the node does not have the first cuts of 50 slices',
      remedy: REMEDIES.failed,
    },
  ]);
});

test('a payment that the node cannot tell is unread, and never missing; a node that is gone is not asked for each', async () => {
  for (const [error, asked, says] of [
    [new ApiError('cut_pruned', 410, 'deleted'), 2, /^2 payouts, the first payout .*1: cut_pruned: deleted$/],
    [new ApiError('client_unreachable', 0, 'no answer'), 1, /^no answer$/],
  ] as const) {
    let calls = 0;
    const cutTransactions = async () => {
      calls++;
      throw error;
    };
    const report = await audit(books.sql, AGAINST_LEDGER({ ...ledger, cutTransactions }));
    expect(report).toMatchObject({ ledger: false, unread: 1, differences: 1 });
    expect(report.findings).toEqual([
      {
        what: 'payments against the ledger',
        books: 'cannot be audited',
        computed: expect.stringMatching(says),
        remedy: REMEDIES.failed,
      },
    ]);
    expect(calls).toBe(asked);
  }
});

test('no balance is compared with credit lists that could not be read', () =>
  fallen(NOW, async (sql) => {
    await sql`update credit_lists set credits = substring(credits from 1 for 7) where id = 1`;
    const report = await ownAudit(sql);
    expect(report.findings.map(({ what }) => what)).toEqual(['credit lists']);
    expect(report).toMatchObject({ unread: 1, differences: 1 });
  }));

/** The audit against the wallet's record: a request, a recipient, a transaction or a fate that one side lacks is a finding. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, auditMoment } from '../../pool/audit/audit.ts';
import type { Sql } from '../../pool/database/connect.ts';
import type { WalletPayment } from '../../pool/payout/payout-wallet.ts';
import { openAuditBed } from './audit-bed.ts';
import type { BooksBed } from './books-bed.ts';

const SERIES = { payouts: 'payout-', merges: 'merge-' };
const MERGE = { requestId: 'merge-000000000001', recipients: [], transactionId: 'cd'.repeat(48), fee: 7n };

let books: BooksBed;
let record: WalletPayment[];
beforeAll(async () => {
  ({ books } = await openAuditBed());
  const { sql } = books;
  await sql`insert into compoundings (id, state, fee, number, request_id)
    values ('00000000-0000-4000-8000-000000000009', 'finalized', 7, 1, ${MERGE.requestId})`;
  const rows = await sql<{ request_id: string; transaction_id: Buffer; address: string; amount: bigint }[]>`select
    p.request_id, p.transaction_id, a.address, i.amount from payouts p join payout_items i on i.payout_id = p.id
    join accounts a on a.id = i.account_id`;
  const fate = { state: 'finalized', height: 150, fee: 1_000n } as const;
  const names = [...new Set(rows.map((row) => row.request_id))];
  record = names.map((requestId) => {
    const items = rows.filter((row) => row.request_id === requestId);
    const transactionId = items[0]?.transaction_id.toString('hex') ?? null;
    const recipients = items.map(({ address, amount }) => ({ address, amount }));
    return { requestId, recipients, transactionId, fee: 1_000n, createdMillis: 1, fate };
  });
  record.push({ ...MERGE, createdMillis: 1, fate });
});
afterAll(() => books.close());

type Change = (record: WalletPayment[]) => WalletPayment[];
const findingsOf = (sql: Sql, change?: Change) => findingsBy(audit, sql, change);
/** Within a transaction that is open already. */
const findingsIn = (sql: Sql, change?: Change) => findingsBy(auditMoment, sql, change);

async function findingsBy(run: typeof audit | typeof auditMoment, sql: Sql, change: Change = (same) => same) {
  const payments = change(record);
  const reads = {
    status: async () => ({ kind: 'ok', value: { requestTable: 'table' } }) as never,
    payments: async (prefix: string) => ({
      kind: 'ok' as const,
      value: payments.filter(({ requestId }) => requestId.startsWith(prefix)),
    }),
  };
  const { findings } = await run(sql, { network: 'development', wallet: { reads, series: SERIES } });
  // The fee of the merge is in no balance sheet of this bed.
  return findings.map(({ what }) => what).filter((what) => /wallet|payout|merge/.test(what));
}

test('books that agree with the wallet have no finding', async () => {
  expect(await findingsOf(books.sql)).toEqual([]);
});

const CHANGES: readonly (readonly [name: string, change: (r: WalletPayment[]) => WalletPayment[], names: RegExp])[] = [
  [
    'a request that the books lack',
    (r) => [...r, { ...r[0]!, requestId: 'payout-000000000099' }],
    /payment payout-0+99 of the wallet/,
  ],
  ['a payout that the wallet lacks', (r) => r.slice(1), /payout .* \(number 1\)$/],
  ['other recipients', (r) => [{ ...r[0]!, recipients: [] }, ...r.slice(1)], /recipients at the wallet/],
  [
    'another transaction',
    (r) => [{ ...r[0]!, transactionId: 'ab'.repeat(48) }, ...r.slice(1)],
    /transaction at the wallet/,
  ],
  ['another fee', (r) => [{ ...r[0]!, fee: 1n }, ...r.slice(1)], /fee at the wallet/],
  ['another fate', (r) => [{ ...r[0]!, fate: { state: 'void', reason: 'x' } }, ...r.slice(1)], /fate at the wallet/],
  [
    'a merge that the books lack',
    (r) => [...r, { ...r.at(-1)!, requestId: 'merge-000000000002' }],
    /merge merge-0+2 of the wallet/,
  ],
  ['a merge with another fee', (r) => [...r.slice(0, -1), { ...r.at(-1)!, fee: 8n }], /merge .*: fee at the wallet/],
];
for (const [name, change, names] of CHANGES)
  test(`noticed: ${name}`, async () => {
    expect(await findingsOf(books.sql, change)).toContainEqual(expect.stringMatching(names));
  });

test('a wallet that does not answer is a finding and ends nothing', async () => {
  const away = async () => ({ kind: 'later', reason: 'away', isUnused: false }) as const;
  const wallet = { reads: { status: away, payments: away }, series: SERIES };
  const { findings } = await audit(books.sql, { network: 'development', wallet });
  expect(findings.map(({ what }) => what)).toContain('payouts against the wallet');
});

test('a payment that the wallet makes after the moment that is audited is no finding', async () => {
  let asked = 0;
  const later = { ...(record[0] as WalletPayment), requestId: 'payout-000000000009' };
  const merged = { ...(record.at(-1) as WalletPayment), requestId: 'merge-000000000009' };
  const reads = {
    status: async () => ({ kind: 'ok', value: { requestTable: 'table' } }) as never,
    payments: async (prefix: string) => ({
      kind: 'ok' as const,
      // Once for each of the two series before the books are read.
      value: [...record, ...(++asked > 2 ? [later, merged] : [])].filter((each) => each.requestId.startsWith(prefix)),
    }),
  };
  const { findings } = await audit(books.sql, { network: 'development', wallet: { reads, series: SERIES } });
  expect(findings.map(({ what }) => what).filter((what) => /wallet|payout|merge/.test(what))).toEqual([]);
  expect(asked).toBe(4);
});

test('a payout that the wallet has made and whose answer the books lack is no finding, unless it pays others', async () => {
  await books.sql
    .begin(async (tx) => {
      await tx`alter table payouts disable trigger user`;
      await tx`update payouts set state = 'submitting', transaction_id = null, fee = null, final_height = null
        where number = 1`;
      const found = async (change?: (r: WalletPayment[]) => WalletPayment[]) =>
        (await findingsIn(tx as unknown as Sql, change)).filter((what) => / at the wallet/.test(what));
      expect(await found()).toEqual([]);
      const others = (r: WalletPayment[]) => [{ ...r[0]!, recipients: [] }, ...r.slice(1)];
      expect(await found(others)).toEqual([expect.stringMatching(/number 1\): recipients at the wallet/)]);
      throw new Error('undo');
    })
    .catch((error: Error) => expect(error.message).toBe('undo'));
});

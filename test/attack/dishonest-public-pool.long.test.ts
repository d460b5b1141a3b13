/**
 * A pool that takes its miners' money and publishes documents to hide it: each is right by itself, and only taken together, and with the ledger, do they show it. And
 * an honest pool at unlucky moments, which must not be accused. The books are real ones, out of PostgreSQL.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import { publicReportText } from '../../pool/audit/report.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { PoolListPage, ProofBlock } from '../../protocol/books/pool-proof.ts';
import { ledgerOf, openAuditBed, POOL } from '../pool/audit-bed.ts';
import { account, type BooksBed, SLICE_CUTS } from '../pool/books-bed.ts';
import { publishedPool } from '../pool/published-pool.ts';
import { auditLie, LATER, type Lie, ledgerWith, publishing, type Reads, soloList, THEFT } from './dishonest-pool.ts';

let books: BooksBed;
let ledger: LedgerReads;
beforeAll(async () => {
  ({ books, ledger } = await openAuditBed());
  await books.height(LATER);
});
afterAll(() => books.close());

const thief = formatAddress(account('thief'), 'development');
const auditOf = (node: LedgerReads, lie?: Lie, sql = books.sql) => auditLie(sql, node, lie);
const honest = () => ledgerWith(ledger, []);

const row = (over: object) => ({
  payout_id: '00000000-0000-4000-8000-00000000000f',
  state: 'finalized',
  address: thief,
  amount: '1',
  transaction_id: null,
  created_millis: 1,
  final_height: null,
  ...over,
});

test('an honest pool, long after: every reward is in one list', async () => {
  const report = await auditOf(await honest());
  expect(report.findings).toEqual([]);
  expect(report).toMatchObject({ verdict: 'holds', uncredited: { rewards: 0, amount: '0' } });
  // A pool that credits and does not pay breaks no rule that can be recomputed: how much it keeps is reported.
  expect(report.unpaid).toEqual({ accounts: 2, amount: '7785554' });
  expect(publicReportText(report)).toContain('Credited and not paid yet: 7785554 atoms of 2 accounts');
});

test('a payment of less than nothing does not hide one of more', async () => {
  const amount = 3_000_000n;
  const node = await ledgerWith(ledger, [{ address: thief, amount }]);
  const paid = row({ amount: String(amount), transaction_id: THEFT, final_height: 160 });
  for (const hiding of [`-${amount}`, `-0${amount}`, ` -${amount}`]) {
    const less = row({ amount: hiding, state: 'submitted' });
    const report = await auditOf(node, (path, answer: { payments: object[] }) =>
      path.startsWith('payments') ? { ...answer, payments: [paid, less, ...answer.payments] } : answer,
    );
    expect(report.verdict, hiding).toBe('false');
  }
});

test('an address that is shown for its history, and another for its rewards', async () => {
  const node = await ledgerWith(ledger, [{ address: thief, amount: 10_000_000n }]);
  expect((await auditOf(node)).verdict).toBe('false');
  for (const innocent of [thief, formatAddress(account('innocent'), 'development')])
    for (const turn of [0, 1, 2]) {
      let asked = 0;
      const report = await auditOf(node, (path, answer: object) =>
        path === 'terms' && asked++ === turn ? { ...answer, address: innocent } : answer,
      );
      expect(report.verdict, `${turn}`).toBe('false');
    }
});

test('a reward that two lists credit', async () => {
  const pool = publishedPool(books.sql);
  const list = async (slice: number) => (await pool(`proofs/solo/${slice}/list?limit=200`)) as PoolListPage;
  const [before, own] = [await list(2), await list(3)];
  const blocks = [...own.blocks, ...before.blocks].sort((a, b) => (a.block_id < b.block_id ? -1 : 1));
  const told = soloList(own, blocks);
  const node = await honest();
  const block = async ({ id }: { id: string }) => ({
    ...(await (node as Reads).block({ id })),
    payout: POOL,
    anchor_height: 2 * SLICE_CUTS,
    reward: { state: 'paid', amount: rewardOf(blocks, id), paid_height: 116 },
  });
  const report = await auditOf({ ...node, block } as never, (path, answer: object) =>
    path.startsWith('proofs/solo/3/list') ? told : publishing(told, path, answer),
  );
  // By itself the list is right.
  expect(report.lists.false).toBe(0);
  expect(report.findings.map(({ what }) => what)).toEqual([`block ${before.blocks[0]?.block_id}`]);
});

test('records that are shown to be audited, and none to judge a false list by', async () => {
  const list = (await publishedPool(books.sql)('proofs/pplns/3/list?limit=200')) as PoolListPage;
  // A part of the window left out: the rest is not recomputed, because that is found first.
  const told = { ...list, window: list.window.slice(0, -1) };
  for (const hides of [false, true]) {
    const report = await auditOf(await honest(), (path, answer: object) => {
      if (path.startsWith('proofs/pplns/3/list')) return told;
      return hides && /^slices\/\w+\?.*cursor=/.test(path) ? { ...answer, slices: [], next_cursor: undefined } : answer;
    });
    expect([hides, report.verdict, report.missing.records]).toEqual([hides, 'false', undefined]);
  }
});

const rewardOf = (blocks: readonly ProofBlock[], id: string): string =>
  blocks.find((block) => block.block_id === id)?.reward ?? '0';

test('rewards that no list ever gets to: lists left out, blocks left out, slices left out', async () => {
  const node = await honest();
  type Slices = { slices: { slice: number; credits: unknown }[] };
  // Its credits were not paid yet: no other document contradicts.
  const without = (path: string, answer: Slices) =>
    path.startsWith('slices/solo?')
      ? { ...answer, slices: answer.slices.map((each) => (each.slice === 4 ? { ...each, credits: null } : each)) }
      : answer;
  const left = await auditOf(node, without as Lie);
  const named = left.findings.map(({ what, books: says }) => `${what}: ${says}`).join();
  expect(named).toMatch(/reward [0-9a-f]{96} of cut \d+: credited with slice 4 of solo/);
  const unnamed = await auditOf(node, (path, answer: Slices) =>
    path === 'slices/solo/4/blocks' ? { ...answer, blocks: [] } : without(path, answer),
  );
  expect(unnamed.findings.map(({ books: says }) => says)).toContain('in no list');
  // What it says that it holds nobody can check: that is no finding, and not all is well.
  const held = await auditOf(node, (path, answer: { blocks: object[] }) =>
    path === 'slices/solo/4/blocks'
      ? { ...answer, blocks: answer.blocks.map((each) => ({ ...each, state: 'held', credited_with: null })) }
      : without(path, answer as never),
  );
  expect(held.uncredited).toMatchObject({ rewards: 1 });
  expect(held.not_checked.join()).toContain('1 rewards that the pool holds');
  expect(held.verdict).not.toBe('holds');
  const early = publishedPool(books.sql, (path, answer) => {
    const slices = (answer as Slices).slices?.filter(({ slice }) => slice < 200 / SLICE_CUTS);
    return path.startsWith('slices/') && slices !== undefined ? { ...(answer as Slices), slices } : answer;
  });
  const behind = await auditPublic({
    pool: (path) => early(path.replace(/(slices\/\w+\?limit=200)$/, `$1&cursor=${200 / SLICE_CUTS}-0`)),
    node: node as never,
  });
  expect(behind).toMatchObject({ verdict: 'unchecked', differences: 0 });
  expect(behind.not_checked.join()).toContain(`cuts 201 to ${LATER}: the pool’s books have not taken them in`);
});

test('what an account was paid beyond its credits is the pool’s own money: honest up to what it earned, then stolen', async () => {
  const paidMore = (amount: bigint, check: (report: Awaited<ReturnType<typeof auditOf>>) => void) =>
    books.sql
      .begin(async (tx) => {
        for (const table of ['payout_items', 'accounts']) await tx.unsafe(`alter table ${table} disable trigger user`);
        await tx`with more as (select payout_id, account_id from payout_items i join accounts a on a.id = i.account_id
            where a.balance = 0 order by 1, 2 limit 1)
          update payout_items i set amount = i.amount + ${amount} from more
          where i.payout_id = more.payout_id and i.account_id = more.account_id`;
        check(await auditOf(await ledgerWith(await ledgerOf(tx as never, LATER), []), undefined, tx as never));
        throw new Error('undo');
      })
      .catch((error: Error) => expect(error.message).toBe('undo'));
  let earned = 0n;
  await paidMore(5n, ({ findings, verdict, money }) => {
    expect(findings).toEqual([]);
    expect(verdict).toBe('holds');
    expect(money).toMatchObject({ withdrawn: '0', overpaid: '5' });
    earned = BigInt(money?.allowed ?? 0) - BigInt(money?.network_fees ?? 0);
  });
  await paidMore(earned, ({ verdict }) => expect(verdict).toBe('holds'));
  await paidMore(earned + 1n, ({ findings, verdict }) => {
    expect(verdict).toBe('false');
    expect(findings.map(({ what }) => what)).toEqual([expect.stringMatching(/^payments to /)]);
  });
});

test('a payment that somebody else made is none of the pool’s', async () => {
  const [miner] = await books.sql<
    { address: string }[]
  >`select address from accounts where balance > 1000 order by id limit 1`;
  const address = miner?.address as string;
  const node = await ledgerWith(ledger, [{ address, amount: 1_000n }], thief);
  const claimed = row({ address, amount: '1000', transaction_id: THEFT, final_height: 160 });
  const report = await auditOf(node, (path, answer: { payments: object[] }) =>
    path.startsWith('payments') ? { ...answer, payments: [claimed, ...answer.payments] } : answer,
  );
  expect(report.findings.map(({ computed }) => computed)).toEqual(['nothing of the pool was spent by it']);
});

test('an honest pool that was stopped after its wallet paid, before it could note it, is not accused', async () => {
  const node = await honest();
  await books.sql
    .begin(async (tx) => {
      for (const table of ['payouts', 'payout_items']) await tx.unsafe(`alter table ${table} disable trigger user`);
      await tx`update payouts set state = 'submitting', transaction_id = null, final_height = null, fee = null
        where number = 2`;
      const report = await auditOf(node, undefined, tx as never);
      expect(report.findings).toEqual([]);
      expect(report).toMatchObject({ verdict: 'unchecked', money: { withdrawn: '0' } });
      expect(report.not_checked.join()).toContain('still under way');
      // Not so when it pays others than the pool says.
      const other = await auditOf(
        node,
        (path, answer: { payments: { state: string; address: string }[] }) =>
          path.startsWith('payments')
            ? { ...answer, payments: answer.payments.map((each, i) => (i === 0 ? { ...each, address: thief } : each)) }
            : answer,
        tx as never,
      );
      expect(other.verdict).toBe('false');
      throw new Error('undo');
    })
    .catch((error: Error) => expect(error.message).toBe('undo'));
});

test('an honest pool whose wallet has forgotten a payout that it may have made, and that pays others meanwhile, is not accused', async () => {
  const node = await honest();
  await books.sql
    .begin(async (tx) => {
      for (const table of ['payouts', 'payout_items']) await tx.unsafe(`alter table ${table} disable trigger user`);
      await tx`update payouts set state = 'submitting', transaction_id = null, final_height = null, fee = null
        where number = 1`;
      const report = await auditOf(node, undefined, tx as never);
      expect(report.findings).toEqual([]);
      expect(report).toMatchObject({ verdict: 'unchecked', commitments: 1 });
      expect(report.not_checked).toContain('payouts before 2: the pool says that it is still under way');
      // Not so when the pool names no such payout.
      const hidden = await auditOf(
        node,
        (path, answer: { payments: { state: string }[] }) =>
          path.startsWith('payments')
            ? { ...answer, payments: answer.payments.filter(({ state }) => state !== 'submitting') }
            : answer,
        tx as never,
      );
      expect(hidden.findings.map(({ what }) => what)).toContain('payout 2: the one before');
      throw new Error('undo');
    })
    .catch((error: Error) => expect(error.message).toBe('undo'));
});

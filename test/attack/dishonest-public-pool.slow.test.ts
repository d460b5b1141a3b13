/**
 * A pool that takes its miners' money and publishes documents to hide it: each is right by itself, and only taken together, and with the ledger, do they show it. And
 * an honest pool at unlucky moments, which must not be accused. The books are real ones, out of PostgreSQL.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { type PoolListPage, type ProofBlock, poolListId } from '../../protocol/pool-proof.ts';
import { feeOf, leavesOf } from '../../protocol/pplns.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import { openAuditBed, POOL } from '../pool/audit-bed.ts';
import { account, type BooksBed, SLICE_CUTS } from '../pool/books-bed.ts';
import { publishedPool } from '../pool/published-pool.ts';

let books: BooksBed;
let ledger: LedgerReads;
beforeAll(async () => {
  ({ books, ledger } = await openAuditBed());
});
afterAll(() => books.close());

const thief = formatAddress(account('thief'), 'development');
const THEFT = 'ab'.repeat(48);
/** Long after everything that is due. */
const LATER = 1_000;

type Reads = Pick<LedgerReads, 'addressChanges' | 'cutTransactions' | 'block'>;
type Asked<K extends keyof Reads> = Parameters<Reads[K]>[0];
type Lie = (path: string, answer: never) => unknown;

/** The ledger at cut LATER, with a transaction in cut 160 that spends all of `from` and makes `outputs`. */
async function ledgerWith(outputs: readonly { address: string; amount: bigint }[], from = POOL): Promise<LedgerReads> {
  const reads = ledger as Reads;
  const { changes } = await reads.addressChanges({ addresses: [POOL], after_height: 0 });
  const last = changes.at(-1) as (typeof changes)[number];
  const spent = outputs.reduce((sum, { amount }) => sum + amount, 0n);
  const rest = from === POOL ? [{ address: POOL, amount: BigInt(last.amount) - spent }] : [];
  const all = [...outputs, ...rest].map(({ address, amount }) => ({ address, amount: String(amount) }));
  const made = all.map(({ address, amount }, output_index) => ({
    ...{ finalized_height: 160, address, kind: 'received', source: 'regular', amount, transaction_id: THEFT },
    outpoint: { transaction_id: THEFT, output_index },
  }));
  const took = from === POOL ? [{ ...last, finalized_height: 160, kind: 'spent', transaction_id: THEFT }] : [];
  const document = {
    ...{ transaction_id: THEFT, outcome: 'finalized', fee: '0', payload_hex: '', outputs: all },
    inputs: [{ address: from, amount: String(spent), outpoint: last.outpoint }],
  };
  return {
    ...ledger,
    addressChanges: async (asked: Asked<'addressChanges'>) => {
      const page = await reads.addressChanges(asked);
      const own = [...took, ...made].filter(({ address }) => outputs.length > 0 && asked.addresses.includes(address));
      const after = own.filter((each) => each.finalized_height > asked.after_height);
      return { ...page, changes: [...page.changes, ...after], indexed_height: LATER };
    },
    cutTransactions: async (asked: Asked<'cutTransactions'>) => {
      const page = await reads.cutTransactions(asked);
      return asked.height === 160 ? { ...page, transactions: [...page.transactions, document] } : page;
    },
  } as unknown as LedgerReads;
}

/** The pool says that it is at cut LATER too. */
const auditOf = async (node: LedgerReads, lie: Lie = (_, answer) => answer, sql = books.sql) => {
  const pool = publishedPool(sql, (path, answer) => {
    const told = lie(path, answer as never);
    return path === 'terms' ? { ...(told as object), height: LATER } : told;
  });
  return auditPublic({ pool, node: node as never });
};
const honest = () => ledgerWith([]);

const row = (over: object) => ({
  ...{ payout_id: '00000000-0000-4000-8000-00000000000f', state: 'finalized', address: thief, amount: '1' },
  ...{ transaction_id: null, created_millis: 1, final_height: null },
  ...over,
});

test('an honest pool, long after: every reward is in one list', async () => {
  const report = await auditOf(await honest());
  expect(report.findings).toEqual([]);
  expect(report).toMatchObject({ verdict: 'holds', uncredited: { rewards: 0, amount: '0' } });
});

test('a payment of less than nothing does not hide one of more', async () => {
  const amount = 3_000_000n;
  const node = await ledgerWith([{ address: thief, amount }]);
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
  const node = await ledgerWith([{ address: thief, amount: 10_000_000n }]);
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
    ...{
      payout: POOL,
      anchor_height: 2 * SLICE_CUTS,
      reward: { state: 'paid', amount: rewardOf(blocks, id), paid_height: 116 },
    },
  });
  const report = await auditOf({ ...node, block } as never, (path, answer: object) =>
    path.startsWith('proofs/solo/3/list') ? told : answer,
  );
  // By itself the list is right.
  expect(report.lists.false).toBe(0);
  expect(report.findings.map(({ what }) => what)).toEqual([`block ${before.blocks[0]?.block_id}`]);
});

const rewardOf = (blocks: readonly ProofBlock[], id: string): string =>
  blocks.find((block) => block.block_id === id)?.reward ?? '0';

/** A list of solo as a pool makes it, of other blocks. */
function soloList(list: PoolListPage, blocks: readonly ProofBlock[]): PoolListPage {
  const ppm = BigInt(list.fee_ppm);
  const credits = new Map<string, bigint>();
  let [reward, fee] = [0n, 0n];
  for (const block of blocks) {
    const key = toHex(parseAddress(block.finder).payload);
    const own = feeOf(BigInt(block.reward), ppm);
    credits.set(key, (credits.get(key) ?? 0n) + BigInt(block.reward) - own);
    [reward, fee] = [reward + BigInt(block.reward), fee + own];
  }
  const { root } = sumTree(leavesOf(credits, fromHex));
  const made = {
    ...list,
    ...{ blocks, reward: String(reward), fee: String(fee), credited: String(reward - fee) },
    ...{ credit_accounts: root.count, credit_root: toHex(root.hash) },
    credits: [...credits].map(([key, amount]) => ({
      ...{ address: formatAddress(fromHex(key), 'development'), amount: String(amount) },
    })),
  };
  return { ...made, list_id: poolListId(made) };
}

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
  const behind = await auditPublic({ pool: publishedPool(books.sql), node: node as never });
  expect(behind).toMatchObject({ verdict: 'unchecked', differences: 0 });
  expect(behind.not_checked.join()).toContain(`cuts 201 to ${LATER}: the pool’s books have not taken them in`);
});

test('a payment that somebody else made is none of the pool’s', async () => {
  const [miner] = await books.sql<
    { address: string }[]
  >`select address from accounts where balance > 1000 order by id limit 1`;
  const address = miner?.address as string;
  const node = await ledgerWith([{ address, amount: 1_000n }], thief);
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

/** Payouts of the ledger that a pool does not list, because its books fell back, or to hide what it took (books rule 24). */
import { expect, test } from 'vitest';
import { Findings } from '../../pool/audit/findings.ts';
import { auditLedger, type PoolSide } from '../../pool/audit/public-ledger.ts';
import { type LedgerNode, readAddressMoney } from '../../pool/audit/public-money.ts';
import { AuditSections } from '../../pool/audit/public-sections.ts';
import { commitmentPayload, headAt } from '../../protocol/books/books-commitment.ts';
import type { SliceRecord } from '../../protocol/books/books-slice.ts';

const [POOL, MINER, THIEF] = ['pool', 'miner', 'thief'];
const [REWARD, PAYOUT] = ['ab'.repeat(48), 'cd'.repeat(48)];
const CHAIN = '12'.repeat(48);
const record = { slice: 0, slice_cuts: 4, chain: CHAIN } as SliceRecord;
/** A reward of 1,000 atoms, of which 10 are the fee, and a payout in cut 150 that the pool does not list. */
const PAID = 990n;

/** A ledger with one reward, and one payout of 990 atoms to an address. */
function ledger(to: string, chain = CHAIN): LedgerNode {
  const payout = {
    transaction_id: PAYOUT,
    outcome: 'finalized',
    payload_hex: commitmentPayload({ number: 1, slice: 0, head: headAt({ pplns: chain, solo: chain }) }),
    inputs: [{ address: POOL, amount: '1000' }],
    outputs: [
      { address: to, amount: String(PAID) },
      { address: POOL, amount: '8' },
    ],
  };
  const change = (kind: string, finalized_height: number, transaction_id: string, rest: object) => ({
    address: POOL,
    kind,
    finalized_height,
    transaction_id,
    outpoint: { transaction_id: REWARD, output_index: 0 },
    amount: '1000',
    ...rest,
  });
  const changes = [
    change('received', 100, REWARD, { source: 'work_reward' }),
    change('spent', 150, PAYOUT, {}),
    change('received', 150, PAYOUT, {
      source: 'regular',
      amount: '8',
      outpoint: { transaction_id: PAYOUT, output_index: 1 },
    }),
  ];
  return {
    addressChanges: async ({ after_height: after }: { after_height: number }) => ({
      changes: changes.filter(({ finalized_height: height }) => height > after),
      indexed_height: 300,
    }),
    cutTransactions: async ({ height }: { height: number }) => ({ transactions: height === 150 ? [payout] : [] }),
  } as unknown as LedgerNode;
}

async function audited(to: string, pool: Partial<PoolSide>, chain = CHAIN) {
  const findings = new Findings();
  const sections = new AuditSections(findings);
  const node = ledger(to, chain);
  const side: PoolSide = {
    address: POOL,
    payments: [],
    commitments: [],
    records: new Map([
      ['pplns', [record]],
      ['solo', [record]],
    ]),
    reached: { height: 300, sliceCuts: 4 },
    fees: 10n,
    credited: new Map([[MINER, PAID]]),
    ...pool,
  };
  await auditLedger({ node, money: await readAddressMoney(node, POOL) }, side, sections, findings);
  expect(sections.notChecked.filter((each) => each.includes('commit none of them'))).toEqual(
    chain === CHAIN ? ['slices after 0: payouts up to cut 150 commit none of them'] : [],
  );
  return { found: findings.list.map(({ what }) => what), suspicions: sections.suspicions.map(({ name }) => name) };
}

test('one that paid what was credited is an omission: books that fell back lack it until the wallet answers', async () => {
  expect(await audited(MINER, {})).toEqual({ found: [], suspicions: ['payouts_unlisted'] });
});

test('one that paid what nobody was credited with took the miners’ money: that is false, listed or not', async () => {
  expect(await audited(THIEF, {})).toEqual({ found: [`payments to ${THIEF}`], suspicions: ['payouts_unlisted'] });
  expect(await audited(MINER, { credited: new Map([[THIEF, PAID]]) })).toEqual({
    found: [`payments to ${MINER}`],
    suspicions: ['payouts_unlisted'],
  });
});

test('one that paid by a list that books which fell back have yet to make is not counted against them', async () => {
  expect(await audited(MINER, { fees: 0n, credited: new Map() })).toEqual({
    found: [],
    suspicions: ['payouts_unlisted'],
  });
});

test('one that carries another head than that of the records is false, listed or not', async () => {
  const { found } = await audited(MINER, {}, '34'.repeat(48));
  expect(found).toEqual([`transaction ${PAYOUT} of cut 150: what transaction ${PAYOUT} carries`]);
});

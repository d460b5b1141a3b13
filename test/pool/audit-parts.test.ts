/** What the public audit takes from a pool and a node, part by part: malformed is refused, unread is not checked, and money counts once. */
import { expect, test } from 'vitest';
import { Findings } from '../../pool/audit/findings.ts';
import { type AddressMoney, auditMoney, spendsOf } from '../../pool/audit/public-money.ts';
import { auditOutputs, type PaymentReads } from '../../pool/audit/public-payments.ts';
import { auditRewards, CreditedBlocks } from '../../pool/audit/public-rewards.ts';
import { fieldsOf } from '../../pool/audit/public-rows.ts';
import { AuditSections } from '../../pool/audit/public-sections.ts';
import { readTerms } from '../../pool/audit/public-terms.ts';
import { UnreadRows } from '../../pool/audit/public-unread.ts';
import { PoolError } from '../../pool/pool-error.ts';
import { formatAddress } from '../../protocol/address.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const address = formatAddress(Uint8Array.of(0, ...pattern('audited pool', 48)), 'development');
const idOf = (name: string) => Buffer.from(pattern(name, 48)).toString('hex');

test('terms and documents of another form are refused, whichever part of them is wrong', () => {
  const each = { from_slice: 0, slice_cuts: 4, window_thousandths: 1, fee_ppm: 0 };
  const terms = { pplns: [each], solo: [each] };
  const good = { address, network: 'development', height: 7, terms };
  expect(readTerms(good)).toEqual(good);
  for (const wrong of [
    { address: 5 },
    { network: 'elsewhere' },
    { network: 5 },
    { height: -1 },
    { height: '7' },
    { window_fee_from: 0.5 },
    { terms: undefined },
    { terms: { pplns: [each] } },
    { terms: { ...terms, solo: [{ ...each, slice_cuts: 0 }] } },
    { terms: { ...terms, solo: [null] } },
  ])
    expect(() => readTerms({ ...good, ...wrong })).toThrow('its terms have no such form');
  for (const wrong of [null, undefined, 5, 'x', true, []])
    expect(() => fieldsOf(wrong)).toThrow('a document has an invalid form');
});

test('what is silent is not checked, with all that rests on it; what is malformed is a finding; no pool ends the audit', async () => {
  const findings = new Findings();
  const sections = new AuditSections(findings);
  const failing = (error: Error) => () => Promise.reject(error);
  expect(await sections.run('lists', failing(new PoolSilence('no answer')), 1, 'lists')).toBe(1);
  expect(await sections.run('payments', failing(new ApiError('busy', 429, 'later')), 2, 'payments')).toBe(2);
  expect([findings.count, sections.have('sums', ['lists', 'payments']), sections.have('rest', ['slices'])]).toEqual([
    0,
    false,
    true,
  ]);
  expect(sections.notChecked).toEqual([
    'lists: no answer',
    'payments: later',
    'sums: lists, payments could not all be read',
  ]);
  await sections.run('slices', failing(new Error('malformed')), 3, 'slices');
  expect(findings.list).toMatchObject([{ what: 'slices', computed: 'malformed' }]);
  await expect(sections.run('terms', failing(new PoolError('pool_unreachable', 'none')), 4)).rejects.toThrow('none');
});

/** Transactions of a node by their name; what is asked is noted. */
function cutsOf(outputs: Readonly<Record<string, readonly (readonly [to: string, amount: number])[]>>) {
  const asked: number[] = [];
  const find = async (height: number, id: string) => {
    asked.push(height);
    const made = outputs[id];
    return (
      made && { inputs: [{ address }], outputs: made.map(([to, amount]) => ({ address: to, amount: String(amount) })) }
    );
  };
  return { asked, cuts: { find } as unknown as PaymentReads['cuts'] };
}

test('a payment that is listed once explains one output, and the second one is the pool’s own', async () => {
  const { cuts } = cutsOf({
    tx: [
      ['miner', 40],
      ['miner', 40],
      [address, 15],
    ],
  });
  const money: AddressMoney = {
    address,
    height: 9,
    spends: [{ transaction: 'tx', height: 5, amount: 100n, returned: 15n }],
    rewards: [],
    deposits: 0n,
  };
  const facts = { fees: 50n, unreached: new Set<string>(), overpaid: [], underWay: 0n };
  const audited = async (listed: readonly string[]) => {
    const findings = new Findings();
    const paid = new Map([['tx', listed]]);
    const report = await auditMoney(money, { cuts, unread: new UnreadRows() }, { ...facts, paid }, findings);
    return { withdrawn: report.withdrawn, fees: report.network_fees, findings: findings.count };
  };
  expect(await audited(['miner 40', 'miner 40'])).toEqual({ withdrawn: '0', fees: '5', findings: 0 });
  expect(await audited(['miner 40'])).toEqual({ withdrawn: '40', fees: '5', findings: 0 });
  expect(await audited([])).toEqual({ withdrawn: '80', fees: '5', findings: 1 });
  const wasSpent = spendsOf(money);
  // Of cuts that the history has, it tells everything.
  expect([wasSpent('tx', 5), wasSpent('tx', 6), wasSpent('no', 9), wasSpent('no', 10)]).toEqual([
    true,
    false,
    false,
    true,
  ]);
});

test('payments are looked up cut by cut, each output pays one of them, and a transaction is read once', async () => {
  const { cuts, asked } = cutsOf({
    a: [['miner', 5]],
    b: [
      ['miner', 5],
      ['other', 6],
    ],
  });
  const payment = (transaction_id: string, final_height: number, to: string, amount: number) => ({
    payout_id: `of ${transaction_id}`,
    state: 'finalized' as const,
    address: to,
    amount: String(amount),
    transaction_id,
    created_millis: 0,
    final_height,
  });
  const findings = new Findings();
  const payments = [
    payment('b', 30, 'miner', 5),
    payment('a', 20, 'miner', 5),
    payment('b', 30, 'other', 6),
    payment('b', 30, 'miner', 5),
    payment('later', 41, 'miner', 5),
  ];
  const reads = { cuts, unread: new UnreadRows(), through: 40, address, money: undefined };
  expect(await auditOutputs(payments, reads, findings)).toBe(1);
  expect(asked).toEqual([20, 30]);
  expect(findings.list.map(({ what, computed }) => `${what}: ${computed}`)).toEqual([
    'payment of 5 atoms to miner (payout of b): no such output',
  ]);
});

test('a reward in no list is withheld or untold by its pool, and a lost answer is no finding', async () => {
  const money = { rewards: [{ transaction: idOf('reward'), height: 100, amount: 7n }] };
  const audited = async (pool: () => Promise<unknown>) => {
    const findings = new Findings();
    const report = await auditRewards(
      money,
      {
        pool,
        records: new Map(),
        credited: new CreditedBlocks(findings),
        opening: { from_slice: 0, slice_cuts: 4 },
        height: 6_000,
        now: async () => 6_000,
      },
      findings,
    );
    return { found: findings.list.map(({ books }) => books), withheld: report.withheld, notChecked: report.notChecked };
  };
  const none = { rewards: 0, amount: '0' };
  expect(await audited(() => Promise.reject(new PoolSilence('busy')))).toEqual({
    found: [],
    withheld: none,
    notChecked: ['1 rewards that are in no list: the pool does not answer where they are'],
  });
  expect(await audited(async () => ({ blocks: [] }))).toEqual({
    found: ['in no list'],
    withheld: none,
    notChecked: [],
  });
});

/** What a node may say of a reward, and what is not believed (books rule 15). */
import { expect, test } from 'vitest';
import { agreementOf, type Statement } from '../../pool/accountant/reward-statements.ts';
import { type Claim, HOLD_REASONS, type RewardFacts, rewardFlaw } from '../../pool/books/reward-check.ts';
import { workHalves, workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const blockId = pattern('reward-check/block', 48);
const HALF = workHalves(1_000, 1_000, INTERVAL_CUTS);
const facts: RewardFacts = {
  anchorHeight: 1_000,
  paidBefore: 999,
  sharers: 1,
  siblings: [],
  maxFeePerMass: 1_000n,
  carried: { fees: 5_000n, mass: 10_000 },
  intervalCuts: INTERVAL_CUTS,
};
const claim = (amount: bigint, changes: Partial<Claim> = {}): Claim => ({
  blockId,
  ...workRewardOutpoint(blockId),
  amount,
  height: 1_096,
  ...changes,
});
const flaw = (amount: bigint, changes: Partial<RewardFacts> = {}) =>
  rewardFlaw(claim(amount), { ...facts, ...changes });

test('exactly what the schedule and the body allow passes, one atom more does not', () => {
  expect(flaw(HALF + 5_000n)).toBeUndefined();
  expect(flaw(HALF + 5_001n)).toBe(HOLD_REASONS.aboveSchedule);
  expect(flaw(10n ** 18n * 9n)).toBe(HOLD_REASONS.aboveSchedule);
});

test('a part is an equal part, rounded up, of what anchors without work left over', () => {
  const three = (HALF + 2n) / 3n;
  expect(flaw(three + 5_000n, { sharers: 3 })).toBeUndefined();
  expect(flaw(three + 5_001n, { sharers: 3 })).toBe(HOLD_REASONS.aboveSchedule);
  expect(flaw(workHalves(991, 1_000, INTERVAL_CUTS), { paidBefore: 990 })).toBeUndefined();
  expect(flaw(workHalves(990, 1_000, INTERVAL_CUTS) + 5_000n, { paidBefore: 990 })).toBe(HOLD_REASONS.aboveSchedule);
});

test("the schedule is the chain's: on short intervals a cut has more to pay, and less soon", () => {
  for (const intervalCuts of [24, 120]) {
    const half = workHalves(1_000, 1_000, intervalCuts);
    expect(half).not.toBe(HALF);
    expect(flaw(half + 5_000n, { intervalCuts })).toBeUndefined();
    expect(flaw(half + 5_001n, { intervalCuts })).toBe(HOLD_REASONS.aboveSchedule);
  }
});

test('blocks of one anchor together get no more than the anchor has', () => {
  const siblings = [{ amount: HALF, carried: { fees: 0n, mass: 0 } }];
  expect(flaw(5_000n, { siblings })).toBeUndefined();
  expect(flaw(5_001n, { siblings })).toBe(HOLD_REASONS.aboveSchedule);
});

test('a body without transactions carries no fees', () => {
  const carried = { fees: 0n, mass: 0 };
  expect(flaw(HALF, { carried })).toBeUndefined();
  expect(flaw(HALF + 1n, { carried })).toBe(HOLD_REASONS.aboveSchedule);
});

test('fees that a node promised in its template count only up to a rate, unless another node says the same', () => {
  const carried = { fees: 10n ** 12n, mass: 10_000 };
  expect(flaw(HALF + 5_000_000n, { carried })).toBeUndefined();
  expect(flaw(HALF + 5_000_001n, { carried })).toBe(HOLD_REASONS.aboveFeeRate);
  expect(flaw(HALF + 10n ** 12n, { carried, maxFeePerMass: undefined })).toBeUndefined();
  // Of a block that no journal named nothing is known but that its body is no larger than any.
  expect(flaw(HALF + 10n ** 12n, { carried: undefined })).toBe(HOLD_REASONS.aboveFeeRate);
});

test('the output and the cut follow from the block', () => {
  expect(rewardFlaw(claim(1n, { outputIndex: 1 }), facts)).toBe(HOLD_REASONS.wrongOutput);
  expect(rewardFlaw(claim(1n, { transactionId: blockId }), facts)).toBe(HOLD_REASONS.wrongOutput);
  for (const height of [1_095, 1_097]) expect(rewardFlaw(claim(1n, { height }), facts)).toBe(HOLD_REASONS.wrongHeight);
});

test('nodes must say the same; who is silent is waited for, and the first one always', () => {
  const paid = (amount: bigint): Statement => ({
    kind: 'paid',
    claim: claim(amount),
    payout: 'p',
    anchorHeight: 1_000,
  });
  const said = (...statements: Statement[]) => statements.map((statement, i) => ({ name: `n${i}`, statement }));
  const silent: Statement = { kind: 'silent', reason: 'away' };
  expect(agreementOf(said(paid(1n), paid(1n)), true)).toMatchObject({ kind: 'agreed', voices: 2 });
  expect(agreementOf(said(paid(1n), paid(2n)), false)).toMatchObject({ kind: 'disagreed' });
  expect(agreementOf(said(paid(1n), { kind: 'unpaid' }), false)).toMatchObject({ kind: 'disagreed' });
  expect(agreementOf(said({ kind: 'unpaid' }, paid(1n)), false)).toMatchObject({ kind: 'disagreed' });
  expect(agreementOf(said(paid(1n), silent), true)).toMatchObject({ kind: 'waiting', names: ['n1'] });
  expect(agreementOf(said(paid(1n), silent), false)).toMatchObject({ kind: 'agreed', voices: 1 });
  expect(agreementOf(said(silent, paid(1n)), false)).toMatchObject({ kind: 'waiting' });
});

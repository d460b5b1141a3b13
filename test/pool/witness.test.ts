/** The wallet's record against the books: what was lost is distinguished from what is in flight, and nothing else is taken for a rollback. */
import { expect, test } from 'vitest';
import { numberOf, payoutSeries, requestIdOf } from '../../pool/payout/payout-series.ts';
import type { WalletPayment } from '../../pool/payout/payout-wallet.ts';
import { type BookedPayout, compareWithWallet } from '../../pool/payout/witness.ts';

const { payouts: prefix, merges } = payoutSeries(new Uint8Array(49).fill(3));
const TABLE = 'table';

const booked = (number: number, state: BookedPayout['state'], to = `a${number}`, amount = 5n): BookedPayout => ({
  id: `payout ${number}`,
  number,
  state,
  requestTable: TABLE,
  items: [{ address: to, amount }],
});
const paid = (number: number, to = `a${number}`, amount = 5n, fate: WalletPayment['fate'] = { state: 'open' }) => ({
  requestId: requestIdOf(prefix, number),
  recipients: [{ address: to, amount }],
  transactionId: 'ab'.repeat(48),
  fee: 1n,
  createdMillis: 1,
  fate,
});
const final: WalletPayment['fate'] = { state: 'finalized', height: 9, fee: 1n };
const compare = (books: BookedPayout[], wallet: WalletPayment[]) => {
  const { missing, displaced, unsettled, contradictions } = compareWithWallet(prefix, TABLE, books, wallet);
  return {
    missing: missing.map(({ number }) => number),
    displaced: displaced.map(({ number }) => number),
    unsettled: unsettled.map(({ payout }) => payout.number),
    contradictions: contradictions.length,
  };
};
const AGREED = { missing: [], displaced: [], unsettled: [], contradictions: 0 };

test('names sort as their numbers do, and belong to one pool', () => {
  expect(requestIdOf(prefix, 17)).toBe('payout-b077107a98636950-000000000017');
  for (const number of [1, 9, 10, 99_999_999]) expect(numberOf(prefix, requestIdOf(prefix, number))).toBe(number);
  expect(requestIdOf(prefix, 9) < requestIdOf(prefix, 10)).toBe(true);
  const others = ['', prefix, `${prefix}1`, `${prefix}00000000000x`, `${prefix}000000000000`, requestIdOf(merges, 3)];
  for (const id of others) expect(numberOf(prefix, id)).toBeUndefined();
  expect(payoutSeries(new Uint8Array(49)).payouts).not.toBe(prefix);
});

test('what is under way is no difference', () => {
  expect(compare([], [])).toEqual(AGREED);
  expect(compare([booked(1, 'finalized'), booked(2, 'submitted')], [paid(1, 'a1', 5n, final), paid(2)])).toEqual(
    AGREED,
  );
  // Asked for, and nobody knows whether the wallet has it.
  expect(compare([booked(1, 'submitting')], [])).toEqual(AGREED);
  expect(compare([booked(1, 'submitting')], [paid(1)])).toEqual(AGREED);
  expect(compare([booked(1, 'submitted')], [paid(1, 'a1', 5n, final)])).toEqual(AGREED);
  expect(compare([], [{ ...paid(1), requestId: 'somebody else' }])).toEqual(AGREED);
});

test('payments beyond the books are lost ones, also under a number that was given again', () => {
  expect(compare([booked(1, 'submitted')], [paid(1), paid(2), paid(3)])).toEqual({ ...AGREED, missing: [2, 3] });
  expect(compare([booked(1, 'submitting', 'a1', 7n)], [paid(1), paid(2)])).toEqual({
    ...AGREED,
    missing: [1, 2],
    displaced: [1],
  });
});

test('what no rollback of the books explains is for a person', () => {
  expect(compare([booked(1, 'finalized')], [paid(1)])).toEqual({ ...AGREED, unsettled: [1] });
  expect(compare([booked(1, 'void')], [paid(1, 'a1', 5n, final)])).toEqual({ ...AGREED, unsettled: [1] });
  expect(compare([booked(1, 'submitted')], [paid(1, 'other')])).toEqual({ ...AGREED, contradictions: 1 });
  expect(compare([booked(1, 'submitted')], [])).toEqual({ ...AGREED, contradictions: 1 });
  // Asked of a table that is gone: that the wallet does not know it says nothing.
  expect(compare([{ ...booked(1, 'submitted'), requestTable: 'gone' }], [])).toEqual(AGREED);
});

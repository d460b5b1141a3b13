/** A pool whose database fell back pays nothing new while its books are behind: its payouts name no earlier slice than those before (books rule 21). */
import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { PAYOUT_DEFAULTS, PayoutLoop } from '../../pool/payout/payout-loop.ts';
import { payoutSeries, requestIdOf } from '../../pool/payout/payout-series.ts';
import type { PayoutWallet, WalletPayment } from '../../pool/payout/payout-wallet.ts';
import { formatAddress } from '../../protocol/address.ts';
import { quietLog } from '../quiet-log.ts';
import { account, openBooks, SLICE_CUTS } from './books-bed.ts';

test('the next payout waits for the slices that those before it may have committed', async () => {
  const books = await openBooks();
  onTestFinished(() => books.close());
  const { sql } = books;
  for (let height = 0; height <= 5 * SLICE_CUTS; height += SLICE_CUTS) await books.height(height);
  const addresses = ['first', 'second'].map((name) => formatAddress(account(name), 'development'));
  for (const [i, address] of addresses.entries())
    await sql`insert into accounts (payload, address, balance)
      values (${Buffer.from(account(['first', 'second'][i] as string))}, ${address}, 5000)`;
  const series = payoutSeries(new Uint8Array(49));
  const paid = {
    requestId: requestIdOf(series.payouts, 1),
    recipients: [{ address: addresses[0] as string, amount: 5000n }],
  };
  const payment: WalletPayment = {
    ...paid,
    transactionId: 'ab'.repeat(48),
    fee: 10n,
    createdMillis: 1,
    fate: { state: 'finalized', height: 40, fee: 10n },
  };
  const texts: (string | null | undefined)[] = [];
  const status = {
    requestTable: 't',
    spendable: 10n ** 15n,
    outputs: 1,
    indexedHeight: 50,
    isCaughtUp: true,
    validityCuts: 10,
    stopped: null,
  };
  const wallet = {
    status: async () => ({ kind: 'ok', value: status }),
    payments: async () => ({ kind: 'ok', value: [payment] }),
    paidSince: async () => ({ kind: 'ok', value: [] }),
    sendMany: async (_id: string, recipients: never, text: string | null | undefined) => {
      texts.push(text);
      return { kind: 'ok', value: { transactionId: 'cd'.repeat(48), fee: 10n, recipients } };
    },
  } as unknown as PayoutWallet;
  let isBehind = true;
  const loop = new PayoutLoop(
    { ...PAYOUT_DEFAULTS, term: books.term, minimum: 1000n, series },
    { sql, wallet, log: quietLog, now: Date.now, newId: randomUUID, isCaughtUp: async () => !isBehind },
  );
  await loop.round('pay');
  expect(texts).toEqual([]);
  for (let slice = 6; slice <= 10; slice++) await books.height(slice * SLICE_CUTS);
  isBehind = false;
  await loop.round('pay');
  expect(texts).toEqual([expect.stringMatching(/^SVC-BOOKS\/2 2 9 /)]);
});

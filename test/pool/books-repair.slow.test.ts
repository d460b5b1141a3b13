/** Books that lack payments of the wallet: repaired without a person where they are covered, held where they are not, and then repaired on a person's word. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { payoutsHeld } from '../../pool/payout/payout-hold.ts';
import { PAYOUT_DEFAULTS, PayoutLoop } from '../../pool/payout/payout-loop.ts';
import { payoutSeries, requestIdOf } from '../../pool/payout/payout-series.ts';
import type {
  ChainPayment,
  PaymentFate,
  PayoutWallet,
  Recipient,
  WalletStatus,
} from '../../pool/payout/payout-wallet.ts';
import { repairPayouts } from '../../pool/payout/repair.ts';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { formatAddress } from '../../protocol/address.ts';
import { commitmentText, headAt } from '../../protocol/books/books-commitment.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { creditAccount } from '../faults/credit-account.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { absentWallet } from './absent-wallet.ts';
import { databaseServer } from './database-fixture.ts';

const server = databaseServer();
const series = payoutSeries(new Uint8Array(49));
const payloadOf = (i: number) => Uint8Array.of(0, ...pattern(`repaired ${i}`, 48));
const address = (i: number) => formatAddress(payloadOf(i), 'development');

type Made = { recipients: readonly Recipient[]; fate: PaymentFate };

/** A wallet that pays whatever it is asked for, once under each id, and forgets nothing. */
function recorder() {
  const made = new Map<string, Made>();
  const idOf = (requestId: string) => Buffer.from(pattern(requestId, 48)).toString('hex');
  const wallet: PayoutWallet = {
    ...absentWallet('not asked here'),
    status: async () => ({
      kind: 'ok',
      value: {
        requestTable: 'table',
        spendable: 0n,
        outputs: 1,
        indexedHeight: 10,
        isCaughtUp: true,
        validityCuts: 10,
        stopped: null,
      },
    }),
    async sendMany(requestId, recipients) {
      const asked = recipients.map((one) => ({ address: one.address, amount: one.amount }));
      if (!made.has(requestId)) made.set(requestId, { recipients: asked, fate: { state: 'open' } });
      const { recipients: paid } = made.get(requestId) as Made;
      return { kind: 'ok', value: { transactionId: idOf(requestId), fee: 2n, recipients: paid } };
    },
    async fate(transactionId) {
      const found = [...made].find(([name]) => idOf(name) === transactionId);
      return { kind: 'ok', value: found?.[1].fate ?? { state: 'open' } };
    },
    async payments(prefix, after = '') {
      const found = [...made].filter(([name]) => name.startsWith(prefix) && name > after).sort();
      const value = found.map(([requestId, { recipients, fate }]) => ({
        requestId,
        recipients,
        transactionId: idOf(requestId),
        fee: 2n,
        createdMillis: 1000,
        fate,
      }));
      return { kind: 'ok', value };
    },
  };
  /** A payment that the books have lost. */
  const lose = (number: number, recipients: readonly Recipient[], fate: PaymentFate = { state: 'open' }) =>
    void made.set(requestIdOf(series.payouts, number), { recipients, fate });
  return { wallet, made, lose };
}

async function setUp(balances: readonly bigint[], isCaughtUp = true, wallets = recorder()) {
  const { sql } = await server.fresh();
  // The server admits a hundred connections: those of all tests of this file are more.
  onTestFinished(() => sql.end({ timeout: 1 }));
  for (const [i, balance] of balances.entries())
    await sql`insert into accounts (payload, address, balance) values (${Buffer.from(payloadOf(i))}, ${address(i)}, ${balance})`;
  const { wallet, made, lose } = wallets;
  return { sql, wallet, made, lose, loop: loopOf(sql, wallet, isCaughtUp) };
}

const loopOf = (sql: Sql, wallet: PayoutWallet, isCaughtUp = true) =>
  new PayoutLoop(
    { ...PAYOUT_DEFAULTS, term: 0n, minimum: 1000n, series },
    { sql, wallet, log: quietLog, now: Date.now, newId: randomUUID, isCaughtUp: async () => isCaughtUp },
  );

const accountsOf = (sql: Sql) =>
  sql<
    { balance: bigint; in_flight: bigint; paid: bigint; advance: bigint }[]
  >`select balance, in_flight, paid, advance from accounts order by id`;
const final: PaymentFate = { state: 'finalized', height: 4, fee: 2n };

test('payments that the books lost are booked before anything else is paid', async () => {
  const { sql, made, lose, loop } = await setUp([9000n, 5000n, 3000n]);
  lose(1, [{ address: address(0), amount: 4000n }], final);
  lose(2, [{ address: address(1), amount: 5000n }]);
  lose(3, [{ address: address(2), amount: 3000n }], { state: 'void', reason: 'expired' });
  expect(await loop.round('pay')).toMatchObject({ submitted: 1 });
  expect([...made.keys()].at(-1)).toBe(requestIdOf(series.payouts, 4));
  expect([...made.values()].at(-1)?.recipients).toEqual([
    { address: address(0), amount: 5000n },
    { address: address(2), amount: 3000n },
  ]);
  expect(await accountsOf(sql)).toEqual([
    { balance: 0n, in_flight: 5000n, paid: 4000n, advance: 0n },
    { balance: 0n, in_flight: 5000n, paid: 0n, advance: 0n },
    { balance: 0n, in_flight: 3000n, paid: 0n, advance: 0n },
  ]);
  const [log] = await sql<{ actor: string; action: string }[]>`select actor, action from operator_log`;
  expect(log).toEqual({ actor: 'svc-pool', action: 'payouts_repaired' });
  // Its fate is followed like any other's.
  for (const one of made.values()) if (one.fate.state === 'open') one.fate = final;
  expect(await loop.round('pay')).toMatchObject({ finalized: 2 });
});

test('a payout that was reserved before the comparison is given back and reserved anew', async () => {
  const { sql, made, lose, loop } = await setUp([9000n]);
  expect(await loop.round('pay')).toMatchObject({ reserved: 1, submitted: 1 });
  // The database falls back to the moment after the reservation, and the wallet paid another amount meanwhile.
  await sql`update payouts set state = 'reserved', number = null, request_id = null, transaction_id = null`;
  lose(1, [{ address: address(0), amount: 2000n }]);
  await loop.round('send');
  await loop.round('pay');
  expect([...made.values()].map(({ recipients }) => recipients[0]?.amount)).toEqual([2000n, 7000n]);
  expect(await accountsOf(sql)).toEqual([{ balance: 0n, in_flight: 9000n, paid: 0n, advance: 0n }]);
});

test('a payment that is known from the wallet’s record alone, and that the wallet then forgot: it waits for its validity, not for ever', async () => {
  const { sql, wallet, lose, loop } = await setUp([9000n]);
  lose(1, [{ address: address(0), amount: 9000n }]);
  await loop.round('pay');
  expect(await accountsOf(sql)).toMatchObject([{ balance: 0n, in_flight: 9000n }]);
  // Another wallet of the same keys, at a later height: the chain never had the payment.
  let height = 5000;
  const empty = recorder();
  const forgetful: PayoutWallet = {
    ...empty.wallet,
    async status() {
      const answer = await wallet.status();
      if (answer.kind !== 'ok') return answer;
      return { kind: 'ok', value: { ...answer.value, requestTable: 'another', indexedHeight: height } };
    },
    paidSince: async () => ({ kind: 'ok', value: [] }),
  };
  const after = loopOf(sql, forgetful);
  for (height of [5000, 5266]) await after.round('pay');
  expect(empty.made.size).toBe(0);
  height = 5267;
  await after.round('pay');
  expect([...empty.made.values()].map(({ recipients }) => recipients)).toEqual([
    [{ address: address(0), amount: 9000n }],
  ]);
  expect(await accountsOf(sql)).toMatchObject([{ balance: 0n, in_flight: 9000n, paid: 0n }]);
});

test('the same payout asked for again under the same number is the same payment', async () => {
  const wallets = recorder();
  const { loop: lost } = await setUp([9000n], true, wallets);
  await lost.round('pay');
  // Another database with the books of before that payout.
  const { sql, made, loop } = await setUp([9000n], true, wallets);
  await loop.round('pay');
  expect(made.size).toBe(1);
  expect(await accountsOf(sql)).toEqual([{ balance: 0n, in_flight: 9000n, paid: 0n, advance: 0n }]);
});

test('what the books have not credited is waited for; then held, until a person books it as an advance', async () => {
  const behind = await setUp([1500n], false);
  behind.lose(1, [{ address: address(0), amount: 4000n }], final);
  expect(await behind.loop.round('pay')).toMatchObject({ reserved: 0, submitted: 0 });
  expect(await payoutsHeld(behind.sql)).toMatch(/still catching up/);
  await behind.sql`update accounts set balance = 5500`;
  expect(await behind.loop.round('pay')).toMatchObject({ submitted: 0 });
  expect(await payoutsHeld(behind.sql)).toBeNull();
  expect(await loopOf(behind.sql, behind.wallet).round('pay')).toMatchObject({ submitted: 1 });

  const { sql, wallet, lose, loop, made } = await setUp([1500n]);
  lose(1, [
    { address: address(0), amount: 4000n },
    { address: address(5), amount: 1n },
  ]);
  expect(await loop.round('pay')).toMatchObject({ reserved: 0, submitted: 0 });
  expect(await payoutsHeld(sql)).toMatch(/2501 atoms more than the books have credited/);
  const repair = (options: Parameters<typeof repairPayouts>[0]) => repairPayouts(options, { sql, wallet, series });
  expect(await repair({ apply: false, advance: false })).toMatchObject({ agree: false });
  expect(await repair({ apply: true, advance: false })).toMatchObject({ agree: false });
  expect((await accountsOf(sql))[0]).toMatchObject({ balance: 1500n });
  expect(await repair({ apply: true, advance: true })).toMatchObject({ agree: true });
  expect(await repair({ apply: false, advance: false })).toMatchObject({ agree: true });
  expect(await payoutsHeld(sql)).toBeNull();
  const inAdvance = [
    { balance: -2500n, in_flight: 4000n, paid: 0n, advance: 2500n },
    { balance: -1n, in_flight: 1n, paid: 0n, advance: 1n },
  ];
  expect(await accountsOf(sql)).toEqual(inAdvance);
  // Later income makes up for it, and only what is beyond is paid.
  await sql`update accounts set balance = balance + 4000 where address = ${address(0)}`;
  await loop.round('pay');
  expect([...made.values()].at(-1)?.recipients).toEqual([{ address: address(0), amount: 1500n }]);
});

test('a payment that was booked as an advance and never comes to the chain is none any more', async () => {
  const { sql, wallet, made, lose, loop } = await setUp([1500n]);
  lose(1, [{ address: address(0), amount: 4000n }]);
  await loop.round('follow');
  const repair = () => repairPayouts({ apply: true, advance: true }, { sql, wallet, series });
  expect(await repair()).toMatchObject({ agree: true });
  await sql`update accounts set balance = balance + 100`;
  expect(await accountsOf(sql)).toEqual([{ balance: -2400n, in_flight: 4000n, paid: 0n, advance: 2500n }]);
  const given = async (fate: PaymentFate) => {
    for (const one of made.values()) one.fate = fate;
    await loop.round('follow');
    return accountsOf(sql);
  };
  const back = [{ balance: 1600n, in_flight: 0n, paid: 0n, advance: 0n }];
  expect(await given({ state: 'void', reason: 'expired' })).toEqual(back);
  // After a rollback of the chain it may come all the same, and again does not.
  await given({ state: 'open' });
  expect(await repair()).toMatchObject({ agree: true });
  expect(await accountsOf(sql)).toEqual([{ balance: -2400n, in_flight: 4000n, paid: 0n, advance: 2400n }]);
  expect(await given({ state: 'void', reason: 'expired' })).toEqual(back);
});

test('a small difference is carried by what the pool has earned itself', async () => {
  const { sql, wallet, lose, loop } = await setUp([3990n]);
  await sql`insert into credit_lists (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height)
    values (0, 1, 1, 100, 100, 0, 0, '[]', '', '', 1)`;
  lose(1, [{ address: address(0), amount: 4000n }], final);
  await loop.round('pay');
  expect(await payoutsHeld(sql)).toBeNull();
  expect(await accountsOf(sql)).toEqual([{ balance: -10n, in_flight: 0n, paid: 4000n, advance: 10n }]);
  // Income made up for it, and the books lose some again: a miner is owed as much less as both times together.
  await sql`update accounts set balance = 30`;
  lose(2, [{ address: address(0), amount: 50n }], final);
  lose(3, [{ address: address(0), amount: 5n }], final);
  await loopOf(sql, wallet).round('pay');
  expect(await accountsOf(sql)).toEqual([{ balance: -25n, in_flight: 0n, paid: 4055n, advance: 35n }]);
});

test('income that came after a payment does not hide that it was paid beyond the credits of its time', async () => {
  const { sql, lose, loop } = await setUp([]);
  const who = { payload: payloadOf(0), address: address(0) };
  // The income that was paid fell with the database; by the time when the books are compared there is more of later slices.
  await creditAccount(sql, { ...who, amount: 6000n });
  await sql`insert into slices (service, number, slice_cuts, window_thousandths, fee_ppm, target, window_work, opened_height)
    select service, slice, 240, 1000, 0, decode(repeat('ff', 32), 'hex'), 1, slice * 240 from credit_lists`;
  lose(1, [{ address: address(0), amount: 4000n }], final);
  lose(2, [{ address: address(0), amount: 500n }], { state: 'finalized', height: 300_000_000, fee: 2n });
  await loop.round('follow');
  expect(await payoutsHeld(sql)).toBeNull();
  expect(await accountsOf(sql)).toEqual([{ balance: 1500n, in_flight: 0n, paid: 4500n, advance: 4000n }]);
});

test('what is final no more is for a person: nothing is paid until then', async () => {
  const { sql, wallet, made, loop } = await setUp([9000n]);
  await loop.round('pay');
  for (const one of made.values()) one.fate = final;
  await loop.round('pay');
  expect(await accountsOf(sql)).toMatchObject([{ paid: 9000n }]);
  for (const one of made.values()) one.fate = { state: 'open' };
  await sql`update accounts set balance = 2000`;
  expect(await loop.round('pay')).toMatchObject({ reserved: 0, submitted: 0 });
  expect(await payoutsHeld(sql)).toMatch(/finalized in the books, and the wallet says that it is open/);
  expect(await repairPayouts({ apply: true, advance: false }, { sql, wallet, series })).toMatchObject({ agree: true });
  for (const one of made.values()) one.fate = { state: 'void', reason: 'expired' };
  await loop.round('pay');
  expect(await payoutsHeld(sql)).toBeNull();
  expect([...made.values()].at(-1)?.recipients).toEqual([{ address: address(0), amount: 11_000n }]);
});

/** Another wallet of the same keys: it has forgotten every request, and reads from the chain what was paid. */
function restored(paid: readonly ChainPayment[], says: Partial<WalletStatus> = {}) {
  const wallets = recorder();
  const status: { -readonly [K in keyof WalletStatus]?: WalletStatus[K] } = { ...says, requestTable: 'another' };
  const wallet: PayoutWallet = {
    ...wallets.wallet,
    async status() {
      const answer = await wallets.wallet.status();
      return answer.kind === 'ok' ? { kind: 'ok', value: { ...answer.value, ...status } } : answer;
    },
    paidSince: async (height) => ({ kind: 'ok', value: paid.filter((one) => one.height > height) }),
  };
  return { ...wallets, wallet, status };
}

/** Until nothing that was signed with the request table of before can execute any more. */
async function waited(sql: Sql, after: ReturnType<typeof restored>): Promise<PayoutWallet> {
  const repair = (apply: boolean) => repairPayouts({ apply, advance: false }, { sql, wallet: after.wallet, series });
  const settings = () => sql`select * from settings order by name`;
  const before = await settings();
  await repair(false);
  expect(await settings()).toEqual(before);
  await repair(true);
  after.status.indexedHeight = (after.status.indexedHeight ?? 10) + 267;
  return after.wallet;
}

const onChain = (name: string, recipients: readonly Recipient[], payloadText: string | null = null): ChainPayment => ({
  transactionId: Buffer.from(pattern(name, 48)).toString('hex'),
  height: 40,
  recipients,
  fee: 2n,
  payloadText,
});

test('a payout that the wallet has forgotten and the chain has is paid once, also where a person books what else the chain has', async () => {
  const { sql, wallet } = await setUp([9000n]);
  const lostAnswer: PayoutWallet['sendMany'] = async () => ({ kind: 'later', reason: 'lost', isUnused: false });
  await loopOf(sql, { ...wallet, sendMany: lostAnswer }).round('pay');
  const own = { address: address(0), amount: 9000n };
  const after = restored([onChain('payout', [own]), onChain('private', [{ address: address(7), amount: 5n }])], {
    indexedHeight: 50,
  });
  await loopOf(sql, after.wallet).round('pay');
  expect(await payoutsHeld(sql)).toMatch(/1 payments of it are not in the books/);
  await waited(sql, after);
  const options = { apply: true, advance: true };
  expect(await repairPayouts(options, { sql, wallet: after.wallet, series })).toMatchObject({ agree: true });
  for (after.status.indexedHeight of [400, 1000, 2000]) await loopOf(sql, after.wallet).round('pay');
  expect(after.made.size).toBe(0);
  expect(await accountsOf(sql)).toMatchObject([{ balance: 0n, advance: 0n }]);
});

/** Closes a slice in both services. Returns its head. */
async function headOfSlice(sql: Sql, slice: number): Promise<string> {
  const chain = (service: number) => Buffer.from(pattern(`chain ${service} ${slice}`, 48));
  const hash = Buffer.from(pattern(`slice ${slice}`, 48));
  for (const service of [0, 1])
    await sql`insert into slices (service, number, window_work, opened_height, closed_height, total, root, leaves,
        slice_cuts, window_thousandths, fee_ppm, target, previous, chain)
      values (${service}, ${slice}, 1, ${slice}, ${slice + 1}, 0, ${hash}, '', 1, 1000, 0, ${Buffer.alloc(32, 1)},
        ${hash}, ${chain(service)})`;
  return headAt({ pplns: chain(0).toString('hex'), solo: chain(1).toString('hex') });
}

test('payouts that only the chain has get the numbers that they carry, whomever they pay, and no number is given again', async () => {
  const { sql, loop } = await setUp([9000n]);
  await loop.round('follow');
  const head = await headOfSlice(sql, 3);
  const carrying = (number: number, slice: number) => commitmentText({ number, slice, head });
  const payments = [
    onChain('third', [{ address: address(5), amount: 700n }], carrying(3, 3)),
    onChain('first', [{ address: address(0), amount: 4000n }], carrying(1, 3)),
  ];
  const after = restored([...payments, onChain('fourth', [{ address: address(0), amount: 1n }], carrying(4, 4))]);
  const repair = (wallet = after.wallet) => repairPayouts({ apply: true, advance: true }, { sql, wallet, series });
  expect(await repair()).toMatchObject({
    agree: false,
    lines: expect.arrayContaining([expect.stringMatching(/catching up/)]),
  });
  const wallet = await waited(sql, restored(payments));
  expect(await repair(restored(payments, { isCaughtUp: false }).wallet)).toMatchObject({ agree: false });
  expect(await sql`select from payouts`).toHaveLength(0);
  expect(await repair(wallet)).toMatchObject({ agree: true });
  await loopOf(sql, wallet).round('pay');
  const rows = await sql<{ number: bigint; state: string; id: Buffer | null; request: string }[]>`select number, state,
    transaction_id as id, request_id as request from payouts order by number`;
  expect(rows.map(({ number, state }) => `${number} ${state}`)).toEqual([
    '1 finalized',
    '2 void',
    '3 finalized',
    '4 submitted',
  ]);
  expect(rows[0]?.id?.toString('hex')).toBe(payments[1]?.transactionId);
  expect(rows.map(({ request }) => request)).toEqual([1, 2, 3, 4].map((n) => requestIdOf(series.payouts, n)));
  expect(await accountsOf(sql)).toEqual([
    { balance: 0n, in_flight: 5000n, paid: 4000n, advance: 0n },
    { balance: -700n, in_flight: 0n, paid: 700n, advance: 700n },
  ]);
});

test('database and wallet were lost together: no balance is paid again until no payment of before can execute, in a gap of the series and at its end', async () => {
  const amount = 4000n;
  // The payment that is signed and on no cut yet: its number, and the height at which it executes.
  for (const [number, executes] of [
    [1, 20],
    [1, 281],
    [3, 281],
    [3, undefined],
  ] as const) {
    const { sql, loop } = await setUp([9000n]);
    await loop.round('follow');
    const head = await headOfSlice(sql, 3);
    const carrying = (each: number) => commitmentText({ number: each, slice: 3, head });
    const seen = onChain('second', [{ address: address(5), amount: 700n }], carrying(2));
    const late = onChain('late', [{ address: address(0), amount }], carrying(number));
    const chain = number === 1 ? [{ ...seen, height: 15 }] : [];
    const after = restored(chain, { indexedHeight: 15 });
    const parts = { sql, wallet: after.wallet, series };
    for (after.status.indexedHeight of [15, 20, 280, 281, 282]) {
      if (after.status.indexedHeight === executes) chain.push({ ...late, height: executes });
      // A person tries again and again.
      await loopOf(sql, after.wallet).round('pay');
      if (after.status.indexedHeight < 282) expect(await payoutsHeld(sql)).toMatch(/after height 281/);
      const { lines } = await repairPayouts({ apply: true, advance: true }, parts);
      if (after.status.indexedHeight < 282) expect(lines.join(' ')).toMatch(/after height 281/);
      await loopOf(sql, after.wallet).round('pay');
      if (after.status.indexedHeight < 282) expect(after.made.size).toBe(0);
    }
    expect(await payoutsHeld(sql)).toBeNull();
    const again = [...after.made.values()].flatMap(({ recipients }) => recipients.map((one) => one.amount));
    expect(again).toEqual([executes === undefined ? 9000n : 9000n - amount]);
  }
});

test('a number far beyond all that were given makes no rows for those between', async () => {
  const { sql, loop } = await setUp([9000n]);
  await loop.round('follow');
  const head = await headOfSlice(sql, 3);
  const carrying = (number: number) => commitmentText({ number, slice: 3, head });
  const payments = [2, 999_999_999_999].map((number) =>
    onChain(`number ${number}`, [{ address: address(0), amount: 1000n }], carrying(number)),
  );
  const wallet = await waited(sql, restored(payments));
  expect(await repairPayouts({ apply: true, advance: true }, { sql, wallet, series })).toMatchObject({ agree: true });
  await loopOf(sql, wallet).round('pay');
  const rows = await sql<{ number: bigint | null; state: string }[]>`select number, state from payouts order by number`;
  expect(rows.map(({ number, state }) => `${number} ${state}`)).toEqual([
    '1 void',
    '2 finalized',
    '3 submitted',
    'null finalized',
  ]);
  expect(await accountsOf(sql)).toEqual([{ balance: 0n, in_flight: 7000n, paid: 2000n, advance: 0n }]);
});

test('what another pool or the owner paid the same miners is not the payout that the wallet has forgotten: it is paid', async () => {
  const { sql, wallet } = await setUp([9000n]);
  const lostAnswer: PayoutWallet['sendMany'] = async () => ({ kind: 'later', reason: 'lost', isUnused: false });
  await loopOf(sql, { ...wallet, sendMany: lostAnswer }).round('pay');
  const others = [
    { ...onChain('private', [{ address: address(0), amount: 9000n }]), isOther: true },
    { ...onChain('unread', []), isOther: true, isUnread: true },
  ];
  const after = restored(others, { indexedHeight: 50 });
  for (after.status.indexedHeight of [50, 2000]) await loopOf(sql, after.wallet).round('pay');
  expect([...after.made.values()]).toMatchObject([{ recipients: [{ address: address(0), amount: 9000n }] }]);
  const rows = await sql<{ state: string }[]>`select state from payouts order by number`;
  expect(rows.map(({ state }) => state)).toEqual(['void', 'submitted']);
});

test('the wallet that was taken for lost comes back: numbers that never were made are nothing, and what it made is followed', async () => {
  const { sql, wallet, lose, loop } = await setUp([9000n]);
  await loop.round('follow');
  const head = await headOfSlice(sql, 3);
  const third = onChain(
    'third',
    [{ address: address(0), amount: 700n }],
    commitmentText({ number: 3, slice: 3, head }),
  );
  const without = restored([third]);
  await waited(sql, without);
  const parts = { sql, wallet: without.wallet, series };
  expect(await repairPayouts({ apply: true, advance: true }, parts)).toMatchObject({ agree: true });
  await loopOf(sql, without.wallet).round('follow');
  for (const number of [1, 2])
    lose(number, [{ address: address(5), amount: 5n }], { state: 'void', reason: 'expired' });
  lose(3, [{ address: address(0), amount: 700n }], final);
  const back = restored([third], { indexedHeight: 277 });
  const old = { ...wallet, paidSince: without.wallet.paidSince, status: back.wallet.status };
  back.status.requestTable = 'table';
  for (back.status.indexedHeight of [277, 544]) await loopOf(sql, old).round('pay');
  expect(await payoutsHeld(sql)).toBeNull();
  expect(await accountsOf(sql)).toMatchObject([{ balance: 0n, in_flight: 8300n, paid: 700n }]);
});

test('a payout that never was made by the books, and that the wallet has, is followed by the transaction of the wallet', async () => {
  const { sql, wallet, lose, made } = await setUp([9000n]);
  const lostAnswer: PayoutWallet['sendMany'] = async () => ({ kind: 'later', reason: 'lost', isUnused: false });
  await loopOf(sql, { ...wallet, sendMany: lostAnswer }).round('pay');
  const after = restored([], { indexedHeight: 2000 });
  await loopOf(sql, after.wallet).round('send');
  expect(await accountsOf(sql)).toMatchObject([{ balance: 9000n, in_flight: 0n }]);
  // The chain is rolled back, and the wallet's file of before is there again.
  lose(1, [{ address: address(0), amount: 9000n }]);
  const back = { ...wallet, paidSince: after.wallet.paidSince };
  const loop = loopOf(sql, back);
  await loop.round('pay');
  expect(await payoutsHeld(sql)).toMatch(/payment 1 is void in the books/);
  const parts = { sql, wallet: back, series };
  expect(await repairPayouts({ apply: true, advance: false }, parts)).toMatchObject({ agree: true });
  for (const one of made.values()) one.fate = final;
  expect(await loop.round('follow')).toMatchObject({ finalized: 1 });
  expect(await accountsOf(sql)).toMatchObject([{ balance: 0n, in_flight: 0n, paid: 9000n }]);
});

test('a payment that was signed for longer than the wallet signs now is waited for that long', async () => {
  const { sql, wallet } = await setUp([9000n]);
  const long = { validityCuts: 1000, indexedHeight: 10 };
  const lostAnswer: PayoutWallet['sendMany'] = async () => ({ kind: 'later', reason: 'lost', isUnused: false });
  const before = async () => {
    const answer = await wallet.status();
    return answer.kind === 'ok' ? { ...answer, value: { ...answer.value, ...long } } : answer;
  };
  await loopOf(sql, { ...wallet, status: before, sendMany: lostAnswer }).round('pay');
  const after = restored([], { validityCuts: 10 });
  for (after.status.indexedHeight of [10, 300, 1266]) await loopOf(sql, after.wallet).round('pay');
  expect(after.made.size).toBe(0);
  after.status.indexedHeight = 1267;
  await loopOf(sql, after.wallet).round('pay');
  expect(after.made.size).toBe(1);
});

test('after a rollback of the chain each payout is compared, however many were made since then', async () => {
  const { sql, lose, wallet } = await setUp([0n]);
  await loopOf(sql, wallet).round('follow');
  const [account] = await sql<{ id: number }[]>`select id from accounts`;
  for (let number = 1; number <= 60; number++) {
    const [row] = await sql<{ id: string }[]>`insert into payouts (id, state, number, request_id, request_table,
        transaction_id, final_height, fee)
      values (${randomUUID()}, 'finalized', ${number}, ${requestIdOf(series.payouts, number)}, 'table',
        ${Buffer.from(pattern(`transaction ${number}`, 48))}, 4, 2) returning id`;
    await sql`insert into payout_items values (${row?.id as string}, ${account?.id as number}, 100)`;
    lose(number, [{ address: address(0), amount: 100n }], number === 2 ? { state: 'open' } : final);
  }
  await sql`update accounts set paid = 6000`;
  const after = restored([]);
  const { status, paidSince } = after.wallet;
  const other = { ...wallet, status, paidSince };
  await loopOf(sql, other).round('pay');
  expect(await payoutsHeld(sql)).toMatch(/payment 2 is finalized in the books, and the wallet says that it is open/);
  await waited(sql, after);
  await repairPayouts({ apply: true, advance: false }, { sql, wallet: other, series });
  expect(await accountsOf(sql)).toMatchObject([{ in_flight: 100n, paid: 5900n }]);
});

test('a number that the wallet forgot is not used for another payout, and none is left out, once its payment cannot execute', async () => {
  const { sql, wallet } = await setUp([9000n, 900n]);
  const lostAnswer: PayoutWallet['sendMany'] = async () => ({ kind: 'later', reason: 'lost', isUnused: false });
  await loopOf(sql, { ...wallet, sendMany: lostAnswer }).round('pay');
  const after = restored([]);
  await loopOf(sql, after.wallet).round('pay');
  // Meanwhile another account is due.
  await sql`update accounts set balance = 5000 where address = ${address(1)}`;
  await loopOf(sql, after.wallet).round('pay');
  expect(after.made.size).toBe(0);
  after.status.indexedHeight = 1000;
  await loopOf(sql, after.wallet).round('pay');
  const rows = await sql<{ number: bigint; state: string }[]>`select number, state from payouts order by number`;
  expect(rows.map(({ number, state }) => `${number} ${state}`)).toEqual(['1 void', '2 submitted']);
  expect(await accountsOf(sql)).toMatchObject([{ in_flight: 9000n }, { in_flight: 5000n }]);
});

/** The payments that the pool reads from a wallet with this history. */
async function paidBy(entries: readonly object[], own?: string): Promise<readonly ChainPayment[]> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.end(JSON.stringify({ id: 1, result: { entries } })));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const tokenFile = join(temporaryDirectory(), 'token');
  writeFileSync(tokenFile, 'secret', { mode: 0o600 });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answer = await createWalletClient({ url, tokenFile, ...(own && { address: own }) }).paidSince(0);
  return answer.kind === 'ok' ? answer.value : [];
}

test('payments of cuts that the node of a restored wallet has deleted are not made again: a person is told the remedy', async () => {
  const { sql, wallet } = await setUp([9000n]);
  const lostAnswer: PayoutWallet['sendMany'] = async () => ({ kind: 'later', reason: 'lost', isUnused: false });
  await loopOf(sql, { ...wallet, sendMany: lostAnswer }).round('pay');
  // As the wallet shows a spend of which the node has the amounts alone.
  const { transactionId: transaction } = onChain('payout', []);
  const spend = { height: 40, transaction, kind: 'sent', spent: '1.00000000', fee: null, recipients: [] };
  const paid = await paidBy([spend, { ...spend, height: 39, kind: 'reward', spent: '0.00000000' }]);
  const after = restored(paid, { indexedHeight: 2000 });
  for (let i = 0; i < 2; i++) await loopOf(sql, after.wallet).round('pay');
  expect(await payoutsHeld(sql)).toMatch(/1 payments of it are not in the books.*give it a node that has them/);
  const repaired = await repairPayouts({ apply: true, advance: true }, { sql, wallet: after.wallet, series });
  expect(repaired).toMatchObject({
    agree: false,
    lines: expect.arrayContaining([expect.stringContaining(transaction)]),
  });
  for (let i = 0; i < 2; i++) await loopOf(sql, after.wallet).round('pay');
  expect(after.made.size).toBe(0);
  // It was read again from a node that has it.
  const read = await paidBy([{ ...spend, fee: '0.00000002', recipients: [{ to: address(0), amount: '0.00009000' }] }]);
  const well = restored(read, { indexedHeight: 2000 });
  for (let i = 0; i < 2; i++) await loopOf(sql, well.wallet).round('pay');
  expect(well.made.size).toBe(0);
  const rows = await sql<{ id: Buffer; state: string }[]>`select transaction_id as id, state from payouts`;
  expect(rows.map(({ id, state }) => `${id?.toString('hex')} ${state}`)).toEqual([`${transaction} submitted`]);
});

test('two people who repair at the same time book a difference once', async () => {
  const { sql, wallet, made, loop } = await setUp([9000n]);
  await loop.round('pay');
  const setFate = (fate: PaymentFate) => {
    for (const one of made.values()) one.fate = fate;
  };
  setFate({ state: 'void', reason: 'expired' });
  await loop.round('follow');
  expect(await accountsOf(sql)).toMatchObject([{ balance: 9000n, in_flight: 0n }]);
  setFate({ state: 'open' });
  const repair = () => repairPayouts({ apply: true, advance: true }, { sql, wallet, series }).catch(String);
  await Promise.all([repair(), repair()]);
  expect(await accountsOf(sql)).toEqual([{ balance: 0n, in_flight: 9000n, paid: 0n, advance: 0n }]);
  // The same where only the chain has a payment, under no number.
  const before = await setUp([9000n]);
  await before.loop.round('follow');
  const after = restored([onChain('payout', [{ address: address(0), amount: 4000n }])]);
  await waited(before.sql, after);
  const again = () =>
    repairPayouts({ apply: true, advance: true }, { sql: before.sql, wallet: after.wallet, series }).catch(String);
  await Promise.all([again(), again()]);
  expect(await accountsOf(before.sql)).toEqual([{ balance: 5000n, in_flight: 0n, paid: 4000n, advance: 0n }]);
});

test('a payout of a history that was lost with the journals is one all the same, also where the books do not know all of its miners', async () => {
  const { sql, loop } = await setUp([9000n]);
  await loop.round('follow');
  await headOfSlice(sql, 3);
  const lost = commitmentText({ number: 1, slice: 3, head: 'ab'.repeat(48) });
  const recipients = [
    { address: address(0), amount: 4000n },
    { address: address(6), amount: 700n },
  ];
  const strange = onChain('of another pool', [{ address: address(7), amount: 5n }], lost);
  const after = restored([strange, onChain('payout', recipients, lost)]);
  await waited(sql, after);
  const repaired = await repairPayouts({ apply: true, advance: true }, { sql, wallet: after.wallet, series });
  expect(repaired).toMatchObject({ agree: true });
  const rows = await sql<{ number: bigint; state: string }[]>`select number, state from payouts`;
  expect(rows).toEqual([{ number: null, state: 'finalized' }]);
  expect(await accountsOf(sql)).toEqual([
    { balance: 5000n, in_flight: 0n, paid: 4000n, advance: 0n },
    { balance: -700n, in_flight: 0n, paid: 700n, advance: 700n },
  ]);
});

test('after a rollback of the chain a thousand payouts are compared at once, and while payouts are held those with the difference alone', async () => {
  const { sql, lose, wallet } = await setUp([0n]);
  await loopOf(sql, wallet).round('follow');
  const count = 2_500;
  await sql`insert into payouts (id, state, number, request_id, request_table, transaction_id, final_height, fee)
    select gen_random_uuid(), 'finalized', n, ${series.payouts} || lpad(n::text, 12, '0'), 'table',
      decode(lpad(n::text, 96, '0'), 'hex'), 4, 2 from generate_series(1, ${count}) n`;
  await sql`insert into payout_items select p.id, a.id, 100 from payouts p cross join accounts a`;
  await sql`update accounts set paid = ${100 * count}`;
  const different = 1_500;
  for (let number = 1; number <= count; number++)
    lose(number, [{ address: address(0), amount: 100n }], number === different ? { state: 'open' } : final);
  const after = restored([]);
  const { status, paidSince } = after.wallet;
  const listed: number[] = [];
  const payments: PayoutWallet['payments'] = async (prefix, after, through = '~') => {
    const answer = await wallet.payments(prefix, after);
    const value = answer.kind === 'ok' ? answer.value.filter(({ requestId }) => requestId <= through) : [];
    listed.push(value.length);
    return { kind: 'ok', value };
  };
  const loop = loopOf(sql, { ...wallet, status, paidSince, payments });
  await loop.round('pay');
  expect(await payoutsHeld(sql)).toMatch(/payment 1500 is finalized in the books/);
  expect(listed).toEqual([1_000, 1_000]);
  await loop.round('follow');
  expect(listed.splice(0)).toEqual([1_000, 1_000, 1_000]);
  lose(different, [{ address: address(0), amount: 100n }], final);
  after.status.indexedHeight = 277;
  await loop.round('follow');
  expect(listed.splice(0)).toEqual([1_000, 500]);
  expect(await payoutsHeld(sql)).toBeNull();
  // A row that somebody deletes, and one that the wallet tells otherwise: what was the same before is compared again.
  await sql`alter table payouts disable trigger user`;
  await sql`alter table payout_items disable trigger user`;
  await sql`delete from payout_items where payout_id = (select id from payouts where number = 2000)`;
  await sql`delete from payouts where number = 2000`;
  lose(different, [{ address: address(0), amount: 100n }], { state: 'open' });
  await loop.round('pay');
  expect(listed).toEqual([1_000, 1_000]);
  expect(await payoutsHeld(sql)).toMatch(/payment 1500 is finalized in the books/);
  // One that pays others is repaired by nobody: holding goes on, whatever else would be.
  lose(100, [{ address: address(7), amount: 100n }], final);
  const report = await repairPayouts(
    { apply: true, advance: true },
    { sql, wallet: { ...wallet, status, paidSince }, series },
  );
  expect(report.agree).toBe(false);
  expect(report.lines.at(-1)).toMatch(/cannot be repaired here/);
  expect(await sql`select 1 from payouts where number = ${different} and state = 'finalized'`).toHaveLength(1);
  expect(await payoutsHeld(sql)).not.toBeNull();
});

test('what another pool paid from the same wallet is no payout of this one: it is not booked to a miner of both, and holds nothing', async () => {
  const { sql, wallet } = await setUp([9000n]);
  await loopOf(sql, wallet).round('follow');
  const head = await headOfSlice(sql, 3);
  const [own, other] = [address(8), address(9)];
  const spend = { kind: 'sent', spent: '1.00000000', fee: '0.00000002', senders: [other] };
  const entry = (name: string, slice: number, more: object = {}) => ({
    ...spend,
    height: 40,
    transaction: onChain(name, []).transactionId,
    recipients: [{ to: address(0), amount: '0.00004000' }],
    payload_text: commitmentText({ number: 1, slice, head: 'ab'.repeat(48) }),
    ...more,
  });
  const paid = await paidBy(
    [entry('other head', 3), entry('other slices', 90), entry('private', 3, { payload_text: null })],
    own,
  );
  const wallets = restored(paid);
  await waited(sql, wallets);
  expect(await repairPayouts({ apply: true, advance: true }, { sql, wallet: wallets.wallet, series })).toMatchObject({
    agree: true,
  });
  expect(await accountsOf(sql)).toMatchObject([{ balance: 9000n, paid: 0n, advance: 0n }]);
  await loopOf(sql, wallets.wallet).round('pay');
  expect(await payoutsHeld(sql)).toBeNull();
  expect([...wallets.made.values()]).toMatchObject([{ recipients: [{ address: address(0), amount: 9000n }] }]);
  // Its own payouts are from its address, whatever else they spend.
  const text = commitmentText({ number: 5, slice: 3, head });
  const [mine] = await paidBy([entry('own', 3, { senders: [other, own], payload_text: text })], own);
  expect(mine).toMatchObject({ isOther: false });
});

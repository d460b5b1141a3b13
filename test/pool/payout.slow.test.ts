/**
 * Payouts against a wallet that loses answers, refuses, forgets and voids, over a real PostgreSQL: whatever happens, each
 * account gets its balance once. The wallet here is the edge of a unit test; the whole path runs against the real daemon.
 */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { pausePayouts } from '../../pool/api/operator/payout-pause.ts';
import { audit } from '../../pool/audit/audit.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { Edits } from '../../pool/edits/edits.ts';
import { payoutsHeld } from '../../pool/payout/payout-hold.ts';
import { PAYOUT_DEFAULTS, type PayoutDependencies, PayoutLoop } from '../../pool/payout/payout-loop.ts';
import { payoutSeries } from '../../pool/payout/payout-series.ts';
import { openPayouts, reservePayout } from '../../pool/payout/payout-states.ts';
import type {
  ChainPayment,
  PaymentFate,
  PayoutWallet,
  Recipient,
  SentPayment,
  WalletAnswer,
  WalletPayment,
  WalletStatus,
} from '../../pool/payout/payout-wallet.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { count, seed } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { fractionsOf } from '../random.ts';
import { databaseServer } from './database-fixture.ts';

const server = databaseServer();
const MINIMUM = 1000n;
const METHODS = ['status', 'sendMany', 'payments', 'paidSince', 'payment', 'compound', 'fate'] as const;

/** Keeps the daemon's promises (one payment per request id) and is as unreliable as the contract allows. */
class ShakyWallet implements PayoutWallet {
  readonly requests = new Map<string, { id: string; recipients: readonly Recipient[]; fate: PaymentFate }>();
  table = 'first';
  readonly #draw: () => number;

  constructor(draw: () => number) {
    this.#draw = draw;
  }

  height = 0;

  async status(): Promise<WalletAnswer<WalletStatus>> {
    const rest = { indexedHeight: this.height, isCaughtUp: true, validityCuts: 1000, stopped: null };
    return this.#draw() < 0.1
      ? { kind: 'later', reason: 'away', isUnused: true }
      : { kind: 'ok', value: { requestTable: this.table, spendable: 10n ** 15n, outputs: 1, ...rest } };
  }

  async sendMany(requestId: string, recipients: readonly Recipient[]): Promise<WalletAnswer<SentPayment>> {
    const roll = this.#draw();
    const known = this.requests.get(requestId);
    if (known === undefined && roll < 0.1) return { kind: 'later' as const, reason: 'node down', isUnused: true };
    if (known === undefined && roll < 0.15) return { kind: 'later' as const, reason: 'no answer', isUnused: false };
    if (known === undefined && roll < 0.3) return { kind: 'refused' as const, reason: 'funds', tooManyOutputs: false };
    const request = known ?? {
      id: Buffer.from(pattern(requestId, 48)).toString('hex'),
      recipients,
      fate: { state: 'open' } as PaymentFate,
    };
    this.requests.set(requestId, request);
    if (roll < 0.5) return { kind: 'later' as const, reason: 'the answer was lost', isUnused: false };
    if (roll < 0.55) return { kind: 'unknown' as const, reason: 'sent, no answer', transactionId: request.id };
    if (roll < 0.6) return { kind: 'wrong' as const, reason: 'internal error', recipient: null };
    const value = { transactionId: request.id, fee: 10n, recipients: request.recipients };
    return { kind: 'ok' as const, value };
  }

  async payments(prefix: string, after = ''): Promise<WalletAnswer<readonly WalletPayment[]>> {
    const found = [...this.requests].filter(([name]) => name.startsWith(prefix) && name > after).sort();
    return {
      kind: 'ok',
      value: found.map(([requestId, { id, recipients, fate }]) => ({
        requestId,
        recipients,
        transactionId: id,
        fee: 10n,
        createdMillis: 1,
        fate,
      })),
    };
  }

  async paidSince(height: number): Promise<WalletAnswer<readonly ChainPayment[]>> {
    const value = [...this.requests.values()].flatMap(({ id, recipients, fate }) =>
      fate.state === 'finalized' && fate.height > height
        ? [{ transactionId: id, height: fate.height, recipients, fee: 10n }]
        : [],
    );
    return { kind: 'ok', value };
  }

  async payment(transactionId: string): ReturnType<PayoutWallet['payment']> {
    const found = [...this.requests.values()].find(({ id }) => id === transactionId);
    if (found === undefined) return { kind: 'refused', reason: 'not_found', tooManyOutputs: false };
    return { kind: 'ok', value: { recipients: found.recipients, fee: 10n } };
  }

  async compound(): Promise<WalletAnswer<{ state: PaymentFate['state']; fee: bigint }>> {
    return { kind: 'refused', reason: 'nothing to merge', tooManyOutputs: false };
  }

  async fate(transactionId: string): Promise<WalletAnswer<PaymentFate>> {
    if (this.#draw() < 0.2) return { kind: 'later', reason: 'away', isUnused: true };
    for (const request of this.requests.values()) {
      if (request.id !== transactionId) continue;
      if (request.fate.state === 'open' && this.#draw() < 0.5)
        request.fate =
          this.#draw() < 0.2 ? { state: 'void', reason: 'expired' } : { state: 'finalized', height: 1, fee: 10n };
      return { kind: 'ok', value: request.fate };
    }
    return { kind: 'later', reason: 'not known', isUnused: false };
  }

  received(): Map<string, bigint> {
    const sums = new Map<string, bigint>();
    for (const { recipients, fate } of this.requests.values())
      if (fate.state === 'finalized')
        for (const { address, amount } of recipients) sums.set(address, (sums.get(address) ?? 0n) + amount);
    return sums;
  }
}

async function accounts(sql: Sql, balances: readonly bigint[]): Promise<void> {
  for (const [i, balance] of balances.entries())
    await sql`insert into accounts (payload, address, balance) values
      (${Buffer.from(pattern(`account/${i}`, 49))}, ${`address-${i}`}, ${balance})`;
}

const loopOf = (sql: Sql, wallet: PayoutWallet, more: Partial<Pick<PayoutDependencies, 'failures' | 'log'>> = {}) =>
  new PayoutLoop(
    { ...PAYOUT_DEFAULTS, term: 0n, minimum: MINIMUM, series: payoutSeries(new Uint8Array(49)) },
    { sql, wallet, log: quietLog, now: Date.now, newId: () => randomUUID(), isCaughtUp: async () => true, ...more },
  );

test('each balance is paid once, whatever the wallet does, and a new loop goes on where a dead one stopped', async () => {
  for (let round = 0; round < count({ full: 1, deep: 50 }); round++) {
    const { sql } = await server.fresh();
    const draw = fractionsOf(seed + round);
    const balances = Array.from({ length: 25 }, () => BigInt(Math.floor(draw() * 5000)));
    await accounts(sql, balances);
    const wallet = new ShakyWallet(draw);
    for (let i = 0; i < 400; i++) {
      await loopOf(sql, wallet).round('pay');
      const [open] =
        await sql`select (select count(*) from payouts where state in ('reserved', 'submitting', 'submitted'))
        + (select count(*) from accounts where balance >= ${MINIMUM}) as n`;
      if (Number(open?.n) === 0) break;
    }
    const received = wallet.received();
    const rows = await sql<{ id: number; balance: bigint; paid: bigint; in_flight: bigint; address: string }[]>`
      select id, balance, paid, in_flight, address from accounts order by id`;
    rows.forEach((row, i) => {
      const due = (balances[i] as bigint) >= MINIMUM;
      expect(row.paid).toBe(due ? balances[i] : 0n);
      expect(received.get(row.address) ?? 0n).toBe(row.paid);
      expect(row.balance + row.paid).toBe(balances[i]);
      expect(row.in_flight).toBe(0n);
    });
    const findings = (await audit(sql, { network: 'development' })).findings.filter((finding) =>
      /in flight|: paid/.test(finding.what),
    );
    expect(findings).toEqual([]);
  }
});

test('a wallet that forgot its requests: nothing is paid until it is certain what it may have paid, what is new neither', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  const lost = new ShakyWallet(() => 0.4);
  await loopOf(sql, lost).round('pay');
  expect((await openPayouts(sql))[0]?.state).toBe('submitting');
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  await addNewcomer(sql);
  const paid = () => [...restored.requests.values()].flatMap((request) => request.recipients.map((r) => r.address));
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect(paid()).toEqual([]);
  expect((await openPayouts(sql)).filter(({ state }) => state === 'submitting')).toMatchObject([{ needsPerson: null }]);
  // Nothing that was signed then can run any more, and the chain does not hold it.
  restored.height = 2000;
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect(paid().sort()).toEqual(['address-0', 'new']);
});

test('a wallet that signed a repetition long after the first request and forgot it: what it sent can still execute', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  // No answer, and nothing signed; then signed at height 5,000 with the answer lost.
  const away = new ShakyWallet(() => 0.12);
  await loopOf(sql, away).round('pay');
  const lost = new ShakyWallet(() => 0.4);
  lost.height = 5000;
  await loopOf(sql, lost).round('send');
  expect([away.requests.size, lost.requests.size]).toEqual([0, 1]);
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  restored.height = 5010;
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect(restored.requests.size).toBe(0);
  restored.height = 6300;
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect(restored.requests.size).toBe(1);
});

test('the last payout of a slow round may be signed long after the height that the round began with', async () => {
  const { sql } = await server.fresh();
  await accounts(
    sql,
    Array.from({ length: 20 * 7 }, () => 5000n),
  );
  const slow = new ShakyWallet(() => 0.9);
  const send = slow.sendMany.bind(slow);
  slow.sendMany = (requestId: string, recipients: readonly Recipient[]) => {
    // Twenty seconds each, the longest that a request may take.
    slow.height += 8;
    return slow.requests.size < 19
      ? send(requestId, recipients)
      : Promise.resolve({ kind: 'later', reason: 'signed, and the answer was lost', isUnused: false });
  };
  await loopOf(sql, slow).round('pay');
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  for (const [id, request] of slow.requests)
    restored.requests.set(`old ${id}`, { ...request, fate: { state: 'finalized', height: 1, fee: 10n } });
  restored.height = slow.height + 1000;
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect((await openPayouts(sql)).map(({ state }) => state)).toEqual(['submitting']);
});

test('a wallet that forgot what it had sent, and whose payment never came to the chain, pays it anew when that is certain', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  const first = new ShakyWallet(() => 0.9);
  await loopOf(sql, first).round('pay');
  // Another table with the same records (docs/wallet.md, a node that was rolled back): the wallet's word counts.
  first.table = 'second';
  first.height = 1300;
  for (let i = 0; i < 3; i++) await loopOf(sql, first).round('pay');
  expect((await openPayouts(sql)).map(({ state }) => state)).toEqual(['submitted']);
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  restored.height = 1000;
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect(restored.requests.size).toBe(0);
  restored.height = 2600;
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  for (const request of restored.requests.values()) request.fate = { state: 'finalized', height: 1300, fee: 10n };
  await loopOf(sql, restored).round('pay');
  const rows = await sql<{ state: string }[]>`select state from payouts order by number`;
  expect(rows.map(({ state }) => state)).toEqual(['void', 'finalized']);
  expect(Object.fromEntries(restored.received())).toEqual({ 'address-0': 5000n });
});

test('a wallet that forgot its requests: what the chain says it paid is not paid again', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  await loopOf(sql, new ShakyWallet(() => 0.4)).round('pay');
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  restored.height = 2000;
  const recipients = [{ address: 'address-0', amount: 5000n }];
  restored.requests.set('forgotten', {
    id: 'ab'.repeat(48),
    recipients,
    fate: { state: 'finalized', height: 7, fee: 3n },
  });
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round('pay');
  expect(restored.requests.size).toBe(1);
  const [row] = await sql<{ state: string; fee: bigint }[]>`select state, fee from payouts`;
  expect(row).toEqual({ state: 'finalized', fee: 3n });
});

test('a wallet that forgot its requests and paid what the books do not know holds everything', async () => {
  const { sql } = await server.fresh();
  const first = new ShakyWallet(() => 0.9);
  await loopOf(sql, first).round('pay');
  await accounts(sql, [5000n]);
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  const recipients = [{ address: 'somebody', amount: 5000n }];
  restored.requests.set('?', { id: 'ab'.repeat(48), recipients, fate: { state: 'finalized', height: 7, fee: 3n } });
  expect(await loopOf(sql, restored).round('pay')).toMatchObject({ reserved: 0, submitted: 0 });
  expect(await payoutsHeld(sql)).toMatch(/another request table.*not in the books: abab/);
  restored.requests.clear();
  restored.height = 1300;
  expect(await loopOf(sql, restored).round('pay')).toMatchObject({ reserved: 1, submitted: 1 });
  expect(await payoutsHeld(sql)).toBeNull();
});

test('an address that was changed while the answer of the wallet was lost holds nobody else’s payouts', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n, 3000n]);
  let draw = 0.4;
  const wallet = new ShakyWallet(() => draw);
  expect(await loopOf(sql, wallet).round('pay')).toMatchObject({ reserved: 1, submitted: 0 });
  expect(wallet.requests.size).toBe(1);
  await sql`alter table accounts disable trigger user`;
  const [victim] = await sql<
    { id: number }[]
  >`update accounts set address = 'thief' where address = 'address-0' returning id`;
  await sql`update accounts set balance = balance + 4000 where address <> 'thief'`;
  const failing = new Map([[victim?.id as number, 'its payload was changed']]);
  const failures = async (ids: readonly number[]) => new Map([...failing].filter(([id]) => ids.includes(id)));
  draw = 0.9;
  for (let i = 0; i < 3; i++) {
    await loopOf(sql, wallet, { failures }).round('pay');
    for (const request of wallet.requests.values()) request.fate = { state: 'finalized', height: 1, fee: 10n };
  }
  expect(await payoutsHeld(sql)).toBeNull();
  expect(Object.fromEntries(wallet.received())).toEqual({ 'address-0': 5000n, 'address-1': 7000n });
  expect(await openPayouts(sql)).toEqual([]);
});

async function closeSlice(sql: Sql, number: number): Promise<void> {
  const hash = Buffer.from(pattern(`slice/${number}`, 48));
  for (const service of [0, 1])
    await sql`insert into slices (service, number, window_work, opened_height, closed_height, total, root, leaves,
        slice_cuts, window_thousandths, fee_ppm, target, previous, chain)
      values (${service}, ${number}, 1, ${number}, ${number + 1}, 0, ${hash}, '', 1, 1000, 0, ${Buffer.alloc(32, 1)},
        ${hash}, ${hash})`;
}

test('a repetition that the wallet turns away frees no number: the first request may have been paid', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  let draw = 0.4;
  const wallet = new ShakyWallet(() => draw);
  const asked: (string | null | undefined)[] = [];
  let turnedAway = 0;
  const send = wallet.sendMany.bind(wallet);
  wallet.sendMany = async (requestId: string, recipients: readonly Recipient[], payloadText?: string | null) => {
    asked.push(payloadText);
    return turnedAway-- > 0 ? { kind: 'later', reason: 'token refused', isUnused: true } : send(requestId, recipients);
  };
  await closeSlice(sql, 1);
  await loopOf(sql, wallet).round('pay');
  expect(wallet.requests.size).toBe(1);
  // The same amount is due again, and the books are further on.
  await sql`update accounts set balance = 5000`;
  await closeSlice(sql, 2);
  draw = 0.9;
  turnedAway = 1;
  for (let i = 0; i < 3; i++) {
    await loopOf(sql, wallet).round('pay');
    for (const request of wallet.requests.values()) request.fate = { state: 'finalized', height: 1, fee: 10n };
  }
  expect(Object.fromEntries(wallet.received())).toEqual({ 'address-0': 10_000n });
  const rows = await sql<{ number: bigint; slice: number }[]>`select number, books_slice as slice from payouts
    where state = 'finalized' order by number`;
  // What each transaction carries: that of the first request under its number.
  expect(rows.map(({ number, slice }) => `${number} ${slice}`)).toEqual(['1 1', '2 2']);
  expect(asked.map((text) => text?.split(' ').slice(1, 3).join(' '))).toEqual(['1 1', '1 1', '1 1', '2 2']);
});

async function addNewcomer(sql: Sql): Promise<void> {
  await sql`insert into accounts (payload, address, balance) values (${Buffer.from(pattern('new', 49))}, 'new', 7000)`;
}

test('a minimum that is edited counts for the next reservation after its notice, and changes nothing that is reserved', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n, 3000n, 900n]);
  const edits = new Edits(
    { name: 'pool', payoutMin: MINIMUM, feePpm: { pplns: 0, solo: 0 }, sliceCuts: 4 },
    { sql, chain: () => undefined, now: Date.now },
  );
  const set = async (atoms: bigint | null) => {
    await edits.change('payout_min', atoms === null ? null : formatCoins(atoms), { host: 'here', token: '' });
    // As if it had been announced days ago.
    await sql`update settings set value = (select jsonb_agg(e || jsonb_build_object('at',
        (e ->> 'at')::bigint - 200000000)) from jsonb_array_elements(value::jsonb) e)::text where name = 'payout_min_schedule'`;
  };
  const items = async () => (await openPayouts(sql)).flatMap(({ items }) => items.map(({ amount }) => amount));
  // Away between the reservation and the request: what is reserved is below the minimum that comes then.
  await set(4000n);
  await loopOf(sql, new ShakyWallet(() => 0.12)).round('pay');
  expect(await items()).toEqual([5000n]);
  await set(100_000n);
  const wallet = new ShakyWallet(() => 0.9);
  await loopOf(sql, wallet).round('pay');
  for (const request of wallet.requests.values()) request.fate = { state: 'finalized', height: 1, fee: 10n };
  await loopOf(sql, wallet).round('pay');
  expect(Object.fromEntries(wallet.received())).toEqual({ 'address-0': 5000n });
  await set(null);
  await loopOf(sql, wallet).round('pay');
  expect(await items()).toEqual([3000n]);
  const [sum] = await sql<{ n: bigint }[]>`select sum(balance + in_flight + paid)::bigint as n from accounts`;
  expect(sum?.n).toBe(8900n);
});

test('paused payouts reserve and send nothing and still follow what is under way', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  const wallet = new ShakyWallet(() => 0.9);
  expect(await loopOf(sql, wallet).round('follow')).toMatchObject({ reserved: 0 });
  expect(await openPayouts(sql)).toEqual([]);
  await sql.begin((transaction) => reservePayout(transaction, randomUUID(), { minimum: MINIMUM }));
  expect(await loopOf(sql, wallet).round('follow')).toMatchObject({ submitted: 0 });
  expect(wallet.requests.size).toBe(0);
  expect(await loopOf(sql, wallet).round('send')).toMatchObject({ submitted: 1 });
});

test('a pause counts in the middle of a round: nothing more of it is sent', async () => {
  const { sql } = await server.fresh();
  await accounts(
    sql,
    Array.from({ length: 20 }, () => 5000n),
  );
  const wallet = new ShakyWallet(() => 0.9);
  const pausing: PayoutWallet = {
    ...Object.fromEntries(METHODS.map((name) => [name, wallet[name].bind(wallet)])),
    async sendMany(requestId, recipients) {
      await pausePayouts(sql, true);
      return wallet.sendMany(requestId, recipients);
    },
  } as PayoutWallet;
  expect(await loopOf(sql, pausing).round('pay')).toMatchObject({ reserved: 3, submitted: 1 });
  await pausePayouts(sql, false);
  expect(await loopOf(sql, wallet).round('send')).toMatchObject({ submitted: 2 });
  expect(wallet.requests.size).toBe(3);
});

test('everybody who is due is served, however many they are, before the interval begins', async () => {
  const { sql } = await server.fresh();
  await accounts(
    sql,
    Array.from({ length: 300 }, () => 5000n),
  );
  const wallet = new ShakyWallet(() => 0.9);
  const loop = loopOf(sql, wallet);
  expect(await loop.round('pay')).toMatchObject({ reserved: 20, submitted: 20, isComplete: false });
  for (let i = 0; i < 10; i++) {
    for (const request of wallet.requests.values()) request.fate = { state: 'finalized', height: 1, fee: 10n };
    if ((await loop.round('pay')).isComplete) break;
  }
  const [row] = await sql<{ due: number }[]>`select count(*)::int as due from accounts where balance >= ${MINIMUM}`;
  expect(row?.due).toBe(0);
});

test('a payout whose answer names others, is unclear, or cannot be looked up first stays one request, and is paid once', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  const wallet = new ShakyWallet(() => 0.9);
  const loop = loopOf(sql, wallet);
  const send = wallet.sendMany.bind(wallet);
  const payments = wallet.payments.bind(wallet);
  let answers: Awaited<ReturnType<PayoutWallet['sendMany']>>[] = [];
  const asked: string[] = [];
  wallet.sendMany = async (requestId: string, recipients: readonly Recipient[]) => {
    asked.push(requestId);
    const [answer] = answers.splice(0, 1);
    return answer ?? send(requestId, recipients);
  };
  const roundWith = async (...next: typeof answers) => {
    answers = next;
    const { submitted } = await loop.round('pay');
    const [open] = await openPayouts(sql);
    return { asked: asked.length, submitted, state: open?.state, transaction: open?.transactionId };
  };
  const others = { transactionId: 'ab'.repeat(48), fee: 1n, recipients: [{ address: 'another', amount: 5000n }] };
  const submitting = { submitted: 0, state: 'submitting', transaction: null };
  expect(await roundWith({ kind: 'ok', value: others })).toEqual({ ...submitting, asked: 1 });
  const unclear = { kind: 'unknown', reason: 'the node refused it', transactionId: null } as const;
  expect(await roundWith(unclear)).toEqual({ ...submitting, asked: 2 });
  // A repetition is signed anew where the wallet has no record: without its word nobody knows until when it can execute.
  wallet.payments = async (prefix, after) =>
    prefix === asked[0] ? { kind: 'later', reason: 'away', isUnused: true } : payments(prefix, after);
  expect(await roundWith()).toEqual({ ...submitting, asked: 2 });
  wallet.payments = payments;
  await send(asked[0] as string, [{ address: 'address-0', amount: 5000n }]);
  const transactionId = wallet.requests.get(asked[0] as string)?.id as string;
  const signed = { submitted: 1, state: 'submitted', transaction: transactionId };
  expect(await roundWith({ ...unclear, transactionId })).toEqual({ ...signed, asked: 3 });
  for (let i = 0; i < 2; i++) {
    for (const request of wallet.requests.values()) request.fate = { state: 'finalized', height: 1, fee: 10n };
    await roundWith();
  }
  expect([new Set(asked).size, await openPayouts(sql)]).toEqual([1, []]);
  expect(Object.fromEntries(wallet.received())).toEqual({ 'address-0': 5000n });
});

test('a recipient that the wallet names waits for a person alone; where it names none, each is asked for alone', async () => {
  for (const named of [1, null]) {
    const { sql } = await server.fresh();
    await accounts(sql, [5000n, 4000n, 3000n]);
    const wallet = new ShakyWallet(() => 0.9);
    const send = wallet.sendMany.bind(wallet);
    wallet.sendMany = async (requestId: string, recipients: readonly Recipient[]) =>
      recipients.some(({ address }) => address === 'address-1')
        ? { kind: 'wrong', reason: 'no such address', recipient: named }
        : send(requestId, recipients);
    const said: unknown[] = [];
    const log = { ...quietLog, error: (_: string, fields: object) => void said.push(fields) } as never;
    await loopOf(sql, wallet, { log }).round('pay');
    const paid = [...wallet.requests.values()].flatMap(({ recipients }) => recipients.map(({ address }) => address));
    expect(paid).toEqual(['address-0', 'address-2']);
    const waiting = (await openPayouts(sql)).filter(({ needsPerson }) => needsPerson !== null);
    expect(waiting.map(({ items }) => items.map(({ address }) => address))).toEqual([['address-1']]);
    expect(said).toEqual([{ address: 'address-1', reason: 'no such address' }]);
  }
});

test('a wallet that has stopped its payments is asked for none, with its reason; merges are four at a time, and none more once there is nothing to merge', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  const wallet = new ShakyWallet(() => 0.9);
  const status = wallet.status.bind(wallet);
  let said = { stopped: 'two copies of it run' as string | null, outputs: 65 };
  wallet.status = async () => {
    const answer = await status();
    return answer.kind === 'ok' ? { kind: 'ok', value: { ...answer.value, ...said } } : answer;
  };
  let merge: Awaited<ReturnType<PayoutWallet['compound']>> = { kind: 'ok', value: { state: 'open', fee: 3n } };
  const merges: string[] = [];
  wallet.compound = async (...ids: string[]) => {
    merges.push(...ids.map((id) => id.slice(-1)));
    return merge;
  };
  const loop = loopOf(sql, wallet);
  expect(await loop.round('pay')).toMatchObject({ reserved: 0, submitted: 0 });
  expect([await payoutsHeld(sql), merges, wallet.requests.size]).toEqual([
    'the wallet has stopped its payments: two copies of it run',
    [],
    0,
  ]);
  said = { ...said, stopped: null };
  expect(await loop.round('pay')).toMatchObject({ reserved: 1, submitted: 1 });
  expect(await payoutsHeld(sql)).toBeNull();
  const asked = async () => {
    await loop.round('pay');
    return merges.splice(0).join('');
  };
  expect(merges.splice(0).join('')).toBe('1234');
  expect(await asked()).toBe('1234');
  merge = { kind: 'ok', value: { state: 'finalized', fee: 3n } };
  // Those that are over make room; a merge that was over at once ends the round's.
  expect(await asked()).toBe('12345');
  merge = { kind: 'refused', reason: 'nothing to merge', tooManyOutputs: false };
  expect(await asked()).toBe('6');
  said = { ...said, outputs: 64 };
  expect(await asked()).toBe('');
});

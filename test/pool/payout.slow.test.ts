/**
 * Payouts against a wallet that loses answers, refuses, forgets and voids, over a real PostgreSQL: whatever happens, each
 * account gets its balance once. The wallet here is the edge of a unit test; the whole path runs against the real daemon.
 */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { audit } from '../../pool/audit/audit.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { PAYOUT_DEFAULTS, PayoutLoop } from '../../pool/payout/payout-loop.ts';
import { openPayouts } from '../../pool/payout/payout-states.ts';
import type { PaymentFate, PayoutWallet, Recipient, WalletAnswer } from '../../pool/payout/payout-wallet.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { count, seed } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { databaseServer } from './database-fixture.ts';

const server = databaseServer();
const MINIMUM = 1000n;

function random(from: number): () => number {
  let value = from >>> 0;
  return () => {
    value = (Math.imul(value ^ (value >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return value / 2 ** 32;
  };
}

/** Keeps the daemon's promises (one payment per request id) and is as unreliable as the contract allows. */
class ShakyWallet implements PayoutWallet {
  readonly requests = new Map<string, { id: string; recipients: readonly Recipient[]; fate: PaymentFate }>();
  table = 'first';
  readonly #draw: () => number;

  constructor(draw: () => number) {
    this.#draw = draw;
  }

  async status(): Promise<WalletAnswer<{ requestTable: string; spendable: bigint; outputs: number }>> {
    return this.#draw() < 0.1
      ? { kind: 'later', reason: 'away' }
      : { kind: 'ok', value: { requestTable: this.table, spendable: 10n ** 15n, outputs: 1 } };
  }

  async sendMany(requestId: string, recipients: readonly Recipient[]) {
    const roll = this.#draw();
    const known = this.requests.get(requestId);
    if (known === undefined && roll < 0.15) return { kind: 'later' as const, reason: 'node down' };
    if (known === undefined && roll < 0.3) return { kind: 'refused' as const, reason: 'funds', tooManyOutputs: false };
    const request = known ?? {
      id: Buffer.from(pattern(requestId, 48)).toString('hex'),
      recipients,
      fate: { state: 'open' } as PaymentFate,
    };
    this.requests.set(requestId, request);
    if (roll < 0.5) return { kind: 'later' as const, reason: 'the answer was lost' };
    if (roll < 0.6) return { kind: 'unknown' as const, reason: 'sent, no answer' };
    return { kind: 'ok' as const, value: { transactionId: request.id, fee: 10n } };
  }

  async compound(): Promise<WalletAnswer<{ state: PaymentFate['state']; fee: bigint }>> {
    return { kind: 'refused', reason: 'nothing to merge', tooManyOutputs: false };
  }

  async fate(transactionId: string): Promise<WalletAnswer<PaymentFate>> {
    if (this.#draw() < 0.2) return { kind: 'later', reason: 'away' };
    for (const request of this.requests.values()) {
      if (request.id !== transactionId) continue;
      if (request.fate.state === 'open' && this.#draw() < 0.5)
        request.fate = this.#draw() < 0.2 ? { state: 'void', reason: 'expired' } : { state: 'finalized', height: 1 };
      return { kind: 'ok', value: request.fate };
    }
    return { kind: 'later', reason: 'not known' };
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

const loopOf = (sql: Sql, wallet: PayoutWallet) =>
  new PayoutLoop(
    { ...PAYOUT_DEFAULTS, term: 0n, minimum: MINIMUM },
    { sql, wallet, log: quietLog, newId: () => randomUUID() },
  );

test('each balance is paid once, whatever the wallet does, and a new loop goes on where a dead one stopped', async () => {
  for (let round = 0; round < count({ full: 2, deep: 50 }); round++) {
    const { sql } = await server.fresh();
    const draw = random(seed + round);
    const balances = Array.from({ length: 25 }, () => BigInt(Math.floor(draw() * 5000)));
    await accounts(sql, balances);
    const wallet = new ShakyWallet(draw);
    for (let i = 0; i < 400; i++) {
      await loopOf(sql, wallet).round(true);
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

test('a wallet with another request table stops what it may have paid before, and pays what is new', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  const lost = new ShakyWallet(() => 0.4);
  await loopOf(sql, lost).round(true);
  expect((await openPayouts(sql))[0]?.state).toBe('submitting');
  const restored = new ShakyWallet(() => 0.9);
  restored.table = 'second';
  await addNewcomer(sql);
  for (let i = 0; i < 3; i++) await loopOf(sql, restored).round(true);
  const stuck = (await openPayouts(sql)).find((payout) => payout.needsPerson !== null);
  expect(stuck?.needsPerson).toMatch(/another request table/);
  expect([...restored.requests.values()].flatMap((request) => request.recipients.map((r) => r.address))).toEqual([
    'new',
  ]);
});

async function addNewcomer(sql: Sql): Promise<void> {
  await sql`insert into accounts (payload, address, balance) values (${Buffer.from(pattern('new', 49))}, 'new', 7000)`;
}

test('paused payouts reserve nothing and still follow what is under way', async () => {
  const { sql } = await server.fresh();
  await accounts(sql, [5000n]);
  expect(await loopOf(sql, new ShakyWallet(() => 0.9)).round(false)).toMatchObject({ reserved: 0 });
  expect(await openPayouts(sql)).toEqual([]);
});

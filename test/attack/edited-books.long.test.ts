/**
 * Somebody with a hand in the database of a running pool: an account whose address, balance or history was edited is not paid, the others are, and
 * the operator sees which account and why. The triggers are taken away first, as such a person would.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { audit } from '../../pool/audit/audit.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import { AccountCheck, RETRY_MILLIS } from '../../pool/payout/account-check.ts';
import { PAYOUT_DEFAULTS, PayoutLoop } from '../../pool/payout/payout-loop.ts';
import { payoutSeries } from '../../pool/payout/payout-series.ts';
import { openPayouts } from '../../pool/payout/payout-states.ts';
import type { PayoutWallet, Recipient, WalletPayment } from '../../pool/payout/payout-wallet.ts';
import { formatAddress } from '../../protocol/address.ts';
import { readCommitment } from '../../protocol/books/books-commitment.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { blockRecord, shareRecord } from '../pool/book-records.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { quietLog } from '../quiet-log.ts';

const MINERS = 5;
const LISTS_A_NOTE = 8;
const addressOf = (name: string) => formatAddress(account(name), 'development');
const THIEF = addressOf('thief');

let books: BooksBed;
let slice = 0;

/** Pays at once, once for each request, and keeps what it was asked. */
class Wallet implements Partial<PayoutWallet> {
  readonly paid = new Map<string, readonly Recipient[]>();
  readonly payloads: (string | null | undefined)[] = [];
  isSilent = false;

  status = async () =>
    ({
      kind: 'ok',
      value: {
        requestTable: 'table',
        spendable: 10n ** 15n,
        outputs: 1,
        indexedHeight: 1,
        isCaughtUp: true,
        validityCuts: 1000,
        stopped: null,
      },
    }) as const;
  sendMany = async (requestId: string, recipients: readonly Recipient[], payload?: string | null) => {
    this.payloads.push(payload);
    if (this.isSilent) return { kind: 'later', reason: 'no answer', isUnused: false } as const;
    if (!this.paid.has(requestId)) this.paid.set(requestId, recipients);
    const value = { transactionId: toHex(pattern(requestId, 48)), fee: 10n, recipients: this.paid.get(requestId)! };
    return { kind: 'ok', value } as const;
  };
  fate = async () => ({ kind: 'ok', value: { state: 'finalized', height: 1, fee: 10n } }) as const;
  payments = async (prefix: string) => {
    const value: WalletPayment[] = [...this.paid]
      .filter(([id]) => id.startsWith(prefix))
      .map(([requestId, recipients]) => ({
        requestId,
        recipients,
        transactionId: toHex(pattern(requestId, 48)),
        fee: 10n,
        createdMillis: 1,
        fate: { state: 'finalized', height: 1, fee: 10n },
      }));
    return { kind: 'ok', value } as const;
  };
  paidSince = async () => ({ kind: 'ok', value: [] }) as const;
  compound = async () => ({ kind: 'refused', reason: 'nothing', tooManyOutputs: false }) as const;

  get addresses(): string[] {
    return [...this.paid.values()].flatMap((recipients) => recipients.map(({ address }) => address)).sort();
  }
}

let wallet: Wallet;
let loop: PayoutLoop;
let said: { message: string; fields: Record<string, unknown> }[];

/** A pool that has just come up: nothing is remembered of before. */
function startPool(now: () => number = () => performance.now()): void {
  const log = { ...quietLog, error: (message: string, fields = {}) => void said.push({ message, fields }) };
  const check = new AccountCheck({ network: 'development' }, { sql: books.sql, log: log as never, now });
  loop = new PayoutLoop(
    { ...PAYOUT_DEFAULTS, term: books.term, minimum: 1n, series: payoutSeries(account('pool')) },
    {
      sql: books.sql,
      wallet: wallet as never as PayoutWallet,
      log: log as never,
      now: Date.now,
      newId: () => randomUUID(),
      isCaughtUp: async () => true,
      failures: (ids) => check.failures(ids),
    },
  );
}

/** Work of every miner, and a block whose reward is credited to them. */
async function earn(): Promise<void> {
  await books.take([...Array(MINERS).keys()].map((miner) => shareRecord('pplns', miner, BigInt(100 + miner))));
  await books.take([blockRecord('pplns', `block ${slice}`, slice * SLICE_CUTS, 0)]);
  await books.height(++slice * SLICE_CUTS);
  const blockId = pattern(`block ${slice - 1}`, 48);
  const transactionId = fromHex(rewardTransaction(toHex(blockId)));
  await books.fenced((tx) =>
    recordPaid(tx, { blockId, transactionId, outputIndex: 0, amount: 1_000_003n, height: 96 }),
  );
  await books.fenced((tx) =>
    makeCredits(tx, new ClosedWork(), { sliceCuts: SLICE_CUTS, listsANote: LISTS_A_NOTE }, 10_000),
  );
}

beforeAll(async () => {
  books = await openBooks();
  await books.height(0);
  for (const table of [
    'slices',
    'credit_lists',
    'blocks',
    'payouts',
    'payout_items',
    'accounts',
    'account_names',
    'credit_totals',
  ])
    await books.sql.unsafe(`alter table ${table} disable trigger user`);
  await books.sql.unsafe('alter table payout_items drop constraint payout_items_payout_id_fkey');
  wallet = new Wallet();
});
afterAll(() => books.close());
beforeEach(async () => {
  wallet = Object.assign(new Wallet(), { paid: wallet.paid });
  said = [];
  await earn();
  startPool();
});

/** Puts an edit back and lets the operator release what waited: then everybody is paid, so the next test starts even. */
async function mend(edit: string): Promise<void> {
  await books.sql.unsafe(edit);
  await books.sql`update payouts set needs_person = null where needs_person is not null`;
  startPool();
  for (let i = 0; i < 4; i++) await loop.round('pay');
  expect(await openPayouts(books.sql)).toEqual([]);
}
const waiting = async () => (await openPayouts(books.sql)).filter(({ needsPerson }) => needsPerson !== null);
const one = `(select id from accounts where address = '${addressOf('miner 1')}')`;

test('with honest books everybody is paid, and the transaction carries the head of the books', async () => {
  await loop.round('pay');
  expect(wallet.addresses).toEqual([...Array(MINERS).keys()].map((n) => addressOf(`miner ${n}`)).sort());
  expect(readCommitment(`00${toHex(utf8(wallet.payloads[0] as string))}`)).toMatchObject({ number: 1, slice: 0 });
  expect(said).toEqual([]);
});

test('a request that is repeated carries the same head, whatever closed meanwhile', async () => {
  wallet.isSilent = true;
  await loop.round('pay');
  await earn();
  startPool();
  wallet.isSilent = false;
  await loop.round('send');
  expect(wallet.payloads.length).toBeGreaterThanOrEqual(2);
  expect(new Set(wallet.payloads).size).toBe(1);
});

const EDITS: readonly (readonly [name: string, edit: string, undo: string, why: RegExp])[] = [
  [
    'the address of an account',
    `update accounts set address = '${THIEF}' where id = ${one}`,
    `update accounts set address = '${addressOf('miner 1')}' where address = '${THIEF}'`,
    /its address is not that of its payload/,
  ],
  [
    'a balance',
    `update accounts set balance = balance + 5000000 where id = ${one}`,
    `update payout_items set amount = amount - 5000000 where amount > 5000000; update accounts set in_flight = in_flight - 5000000 where id = ${one}`,
    /balance is 0 in the books and -5000000/,
  ],
  [
    'what was paid',
    `update accounts set balance = balance + paid, paid = 0 where id = ${one}`,
    `update payout_items i set amount = i.amount - s.paid from (select sum(i.amount) as paid from payout_items i join payouts p on p.id = i.payout_id where p.state = 'finalized' and i.account_id = ${one}) s where i.account_id = ${one} and i.payout_id in (select id from payouts where state = 'reserved');
     update accounts a set paid = s.paid, in_flight = a.in_flight - s.paid from (select sum(i.amount) as paid from payout_items i join payouts p on p.id = i.payout_id where p.state = 'finalized' and i.account_id = ${one}) s where a.id = ${one}`,
    /paid is 0 in the books/,
  ],
];
for (const [name, edit, undo, why] of EDITS)
  test(`edited: ${name}: that account waits for a person, the others are paid`, async () => {
    const before = wallet.addresses.length;
    await books.sql.unsafe(edit);
    await loop.round('pay');
    expect(wallet.addresses.length).toBe(before + MINERS - 1);
    expect(wallet.addresses).not.toContain(THIEF);
    const [held] = await waiting();
    expect(held?.items).toHaveLength(1);
    expect(held?.needsPerson).toMatch(why);
    expect(said).toMatchObject([
      { message: 'an account is not paid: its books fail the audit', fields: { reason: expect.stringMatching(why) } },
    ]);
    // Released without being mended, it is refused again.
    await books.sql`update payouts set needs_person = null where needs_person is not null`;
    await loop.round('pay');
    expect(wallet.addresses.length).toBe(before + MINERS - 1);
    await mend(undo);
  });

test('edited: address and payload together, between reserving and sending', async () => {
  wallet.isSilent = true;
  await loop.round('pay');
  const before = wallet.addresses.length;
  const payload = (name: string) => toHex(account(name));
  await books.sql.unsafe(
    `update accounts set address = '${THIEF}', payload = '\\x${payload('thief')}' where id = ${one}`,
  );
  wallet.isSilent = false;
  for (let i = 0; i < 3; i++) await loop.round('pay');
  expect(wallet.addresses).not.toContain(THIEF);
  expect(wallet.addresses.length).toBe(before + MINERS - 1);
  expect((await waiting())[0]?.needsPerson).toMatch(/its payload was changed/);
  await mend(
    `update accounts set address = '${addressOf('miner 1')}', payload = '\\x${payload('miner 1')}' where address = '${THIEF}'`,
  );
});

const rename = (table: string, from: string, to: string) =>
  `update ${table} set ${table === 'accounts' ? `address = '${addressOf(to)}',` : ''} payload = '\\x${toHex(account(to))}'
    where payload = '\\x${toHex(account(from))}'`;
/** A miner whom nobody has paid yet, with credits: the wallet's record has no word of it. */
async function newcomer(miner: number): Promise<void> {
  await payRounds();
  await books.take([shareRecord('pplns', miner, 100n)]);
  for (let i = 0; i < 2; i++) await earn();
}
const payRounds = async () => {
  for (let i = 0; i < 3; i++) await loop.round('pay');
};
const saidOf = () => said.map(({ fields }) => fields.reason);

test('edited: address and payload together, and the pool starts anew: the others are paid', async () => {
  const before = wallet.addresses.length;
  await books.sql.unsafe(rename('accounts', 'miner 1', 'thief'));
  startPool();
  await payRounds();
  expect(wallet.addresses).not.toContain(THIEF);
  expect(wallet.addresses.length).toBe(before + MINERS - 1);
  expect(saidOf()).toEqual(['its payload was changed']);
  const { findings } = await audit(books.sql, { network: 'development' });
  expect(findings.map(({ what }) => what)).toContainEqual(expect.stringMatching(/^account \d+: payload/));
  await mend(rename('accounts', 'thief', 'miner 1'));
});

test('edited: the payload that an account was made with: that account waits, the others are paid, and it is paid when it was mended', async () => {
  const before = wallet.addresses.length;
  await books.sql.unsafe(rename('account_names', 'miner 1', 'thief'));
  let now = 0;
  startPool(() => now);
  await payRounds();
  expect(wallet.addresses.length).toBe(before + MINERS - 1);
  expect(saidOf()).toEqual(['its payload was changed']);
  await books.sql.unsafe(rename('account_names', 'thief', 'miner 1'));
  await books.sql`update payouts set needs_person = null where needs_person is not null`;
  now += RETRY_MILLIS;
  await payRounds();
  expect(wallet.addresses.length).toBe(before + MINERS);
});

test('edited: address and payload of an account that was never paid, before one more list is made and the pool starts anew', async () => {
  await newcomer(MINERS);
  await books.sql.unsafe(rename('accounts', `miner ${MINERS}`, 'thief'));
  await earn();
  const before = wallet.addresses.length;
  startPool();
  await payRounds();
  expect(wallet.addresses).not.toContain(THIEF);
  expect(wallet.addresses.length).toBe(before + MINERS);
  expect(saidOf()).toEqual(['its payload was changed']);
  // The list that was made meanwhile names the true owner: once the account is put right, everybody is paid.
  await mend(rename('accounts', 'thief', `miner ${MINERS}`));
  expect(wallet.addresses).toContain(addressOf(`miner ${MINERS}`));
});

test('edited: a list, its account and its balance, with the pool stopped: the list does not give its root', async () => {
  const value = 'set_byte(credits, 9, get_byte(credits, 9) # 1)';
  await books.sql.unsafe(`create table kept as select id, credits from credit_lists;
    update credit_lists set credits = ${value} where id = (select max(id) from credit_lists)`);
  startPool();
  const before = wallet.addresses.length;
  await loop.round('pay');
  expect(wallet.addresses.length).toBe(before);
  expect((await waiting())[0]?.needsPerson).toMatch(/credit list \d+ does not (add up|give its root)/);
  await mend('update credit_lists c set credits = k.credits from kept k where k.id = c.id; drop table kept');
});

test('a payment row that is deleted, with the money put back, is not paid again', async () => {
  await loop.round('pay');
  const before = wallet.addresses.length;
  const [row] = await books.sql<{ id: string }[]>`select id from payouts where number = 1`;
  await books.sql.unsafe(`with gone as (delete from payout_items where payout_id = '${row?.id}' returning account_id, amount)
    update accounts a set balance = a.balance + g.amount, paid = a.paid - g.amount from gone g where a.id = g.account_id;
    delete from payouts where id = '${row?.id}'`);
  startPool();
  for (let i = 0; i < 3; i++) await loop.round('pay');
  expect(wallet.addresses.length).toBe(before);
  const [again] = await books.sql<{ id: string }[]>`select id from payouts where number = 1`;
  expect(again).toBeDefined();
});

test('the lists before the newest note of all credits are not read again', async () => {
  for (let i = 0; i < LISTS_A_NOTE; i++) await earn();
  await payRounds();
  await earn();
  const [note] = await books.sql<{ list: number; newest: number }[]>`select max(list_id) as list,
    (select max(id) from credit_lists) as newest from credit_totals`;
  expect((note?.newest ?? 0) - (note?.list ?? 0)).toBeLessThan(LISTS_A_NOTE);
  await books.sql`create table kept as select id, credits from credit_lists`;
  await books.sql`update credit_lists set credits = '\\x00' where id < ${(note?.list ?? 0) - 1}`;
  const before = wallet.addresses.length;
  startPool();
  await payRounds();
  expect(said).toEqual([]);
  expect(wallet.addresses.length).toBe(before + MINERS);
  await mend('update credit_lists c set credits = k.credits from kept k where k.id = c.id; drop table kept');
});

test('edited: a note of all credits: an older one is taken, and it is reported', async () => {
  await books.sql`update credit_totals set credited = credited + 1 where list_id = (select max(list_id) from credit_totals)`;
  const before = wallet.addresses.length;
  startPool();
  await payRounds();
  expect(said).toMatchObject([{ message: 'the note of all credits does not add up: an older one is taken' }]);
  expect(wallet.addresses.length).toBe(before + MINERS);
  await mend(
    'update credit_totals set credited = credited - 1 where list_id = (select max(list_id) from credit_totals)',
  );
});

test('edited: all that says whose account it is, after it was checked: it is not paid; a list that was mended is read again after a while, and who has no credit is no failure', async () => {
  let now = 0;
  const check = new AccountCheck({ network: 'development' }, { sql: books.sql, now: () => now });
  const ids = (await books.sql<{ id: number; address: string }[]>`select id, address from accounts order by id`).map(
    (row) => [row.address, row.id] as const,
  );
  const idOf = (name: string) => new Map(ids).get(addressOf(name)) as number;
  const [first, second] = [idOf('miner 1'), idOf('miner 2')];
  const failing = async (...accounts: number[]) => Object.fromEntries(await check.failures(accounts));
  const [stranger] = await books.sql<{ id: number }[]>`insert into accounts (payload, address)
    values (${Buffer.from(account('stranger'))}, ${addressOf('stranger')}) returning id`;
  await books.sql`insert into account_names select id, payload from accounts where id = ${stranger?.id as number}
    on conflict do nothing`;
  expect(await failing(stranger?.id as number, first)).toEqual({});
  for (const table of ['accounts', 'account_names']) await books.sql.unsafe(rename(table, 'miner 1', 'later thief'));
  expect(await failing(first)).toEqual({ [first]: 'its payload was changed' });
  for (const table of ['accounts', 'account_names']) await books.sql.unsafe(rename(table, 'later thief', 'miner 1'));
  expect(await failing(first)).toEqual({});
  // What a check that has just come up reads first.
  const anew = new AccountCheck({ network: 'development' }, { sql: books.sql, now: () => now });
  const flip = () => books.sql`update credit_totals set root = set_byte(root, 0, get_byte(root, 0) # 1)`;
  await flip();
  const failures = async () => [...(await anew.failures([second])).values()];
  expect(await failures()).toEqual([expect.stringMatching(/^the note of all credits .* does not give its root/)]);
  await flip();
  now += RETRY_MILLIS - 1;
  expect(await failures()).toHaveLength(1);
  now += 1;
  expect(await failures()).toEqual([]);
});

// The last one: the lists that it leaves have another payload.
test('edited: both tables that say whose account it is, before one more list is made: nobody steals, and the list is named', async () => {
  await newcomer(MINERS + 1);
  for (const table of ['account_names', 'accounts'])
    await books.sql.unsafe(rename(table, `miner ${MINERS + 1}`, 'thief'));
  // However many lists and notes come after it.
  for (const lists of [1, 2 * LISTS_A_NOTE]) {
    for (let i = 0; i < lists; i++) await earn();
    await books.sql`update payouts set needs_person = null where needs_person is not null`;
    said = [];
    startPool();
    await payRounds();
    expect(wallet.addresses).not.toContain(THIEF);
    expect(saidOf()).toContainEqual(expect.stringMatching(/does not give its root/));
  }
});

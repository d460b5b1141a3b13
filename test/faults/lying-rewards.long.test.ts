/** A node that lies about rewards to the accountant: nothing is credited from nothing, what is held is shown, and the truth is taken when it comes. */
import { expect, test } from 'vitest';
import { Accountant } from '../../pool/accountant/accountant.ts';
import { audit } from '../../pool/audit/audit.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import type { BlockDocument } from '../../protocol/api/documents.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { workHalves } from '../../protocol/ledger/work-reward.ts';
import { INTERVAL_CUTS, NETWORKS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { databaseServer } from '../pool/database-fixture.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { cut, TOLD_TARGET, ToldChain } from '../pool/told-chain.ts';
import { quietLog } from '../quiet-log.ts';

const server = databaseServer();
const START = Date.UTC(2026, 2, 10);
const account = (i: number) => Uint8Array.of(0, ...pattern(`liar/${i}`, 48));
const POOL = account(99);
const ANCHOR = 3;
const DUE = workHalves(0, ANCHOR, INTERVAL_CUTS);
const idOf = (n: number) => pattern(`liar/block/${n}`, 48);

let sequence = 0;
const entry = (record: JournalRecord) => ({
  bootId: 'aa'.repeat(8),
  sequence: sequence++,
  record: encodeRecord(record),
});
const share = (who: number) =>
  entry({
    kind: 'share',
    service: 'pplns',
    account: account(who),
    worker: 'rig',
    work: 100n,
    atMillis: START,
    identity: freshIdentity(),
  });
const block = (blockId: Bytes, anchorHeight = ANCHOR, carried = { fees: 0n, mass: 0 }) =>
  entry({
    kind: 'block',
    service: 'pplns',
    account: account(1),
    worker: 'rig',
    blockId,
    anchorHeight,
    target: TOLD_TARGET,
    extranonce: new Uint8Array(1),
    atMillis: START,
    carried,
  });

async function bed(more: { powHash?: (header: Bytes) => Promise<Bytes>; log?: object } = {}) {
  sequence = 0;
  const { sql } = await server.fresh();
  const chain = new ToldChain(POOL);
  const [term] = await sql<{ number: bigint }[]>`select number from term`;
  let now = 0;
  const make = () =>
    new Accountant(
      {
        sliceCuts: 10,
        windowThousandths: 1000n,
        services: [0, 1],
        feePpm: new Map(),
        network: NETWORKS.development,
        poolAddress: POOL,
        maxFeePerMass: 1_000n,
        term: (term as { number: bigint }).number,
      },
      { sql, chain, log: quietLog, steadyNow: () => now, now: () => START, ...more } as never,
    );
  const accountant = make();
  await accountant.start();
  await accountant.takeIn([share(1), share(2)]);
  const follow = async (...items: ReturnType<typeof cut>[]) => {
    chain.items = items;
    // Every look comes later than the wait between two looks at what is held.
    now += 10_000;
    await accountant.follow(new AbortController().signal);
  };
  return { sql, chain, accountant, follow, pass: (millis: number) => (now += millis) };
}

const blockOf = async (sql: Sql, id = idOf(0)) =>
  (
    await sql<
      { state: string; reward: bigint | null; claimed: string | null; reason: string | null }[]
    >`select state, reward,
      claimed_reward::text as claimed, reason from blocks where block_id = ${Buffer.from(id)}`
  )[0];
const credited = async (sql: Sql) =>
  BigInt((await sql<{ n: string }[]>`select coalesce(sum(balance), 0)::text as n from accounts`)[0]?.n ?? 0);
const sound = async (sql: Sql) => {
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
  expect((await balanceSheet(sql)).gap).toBe(0n);
};

test.each([
  ['an amount above the schedule', DUE + 1n, {}],
  ['an amount that no database column takes', 9_999_999_999_999_999_999n, {}],
  ['another output', DUE, { outpoint: { transaction_id: 'ab'.repeat(48), output_index: 0 } }],
  ['another cut', DUE, { paid_height: 50 }],
])('%s is held and credits nobody; the truth is credited when it comes', async (_, amount, changes) => {
  const { sql, chain, accountant, follow } = await bed();
  await accountant.takeIn([block(idOf(0))]);
  const lie = chain.pay(idOf(0), ANCHOR, amount, undefined, changes);
  await follow(cut(0), cut(99, [lie]), cut(120), cut(300));
  expect(await blockOf(sql)).toMatchObject({ state: 'held', reward: null, claimed: String(amount) });
  expect(await credited(sql)).toBe(0n);
  await sound(sql);
  chain.pay(idOf(0), ANCHOR, DUE);
  await follow(cut(301), cut(600));
  expect(await blockOf(sql)).toMatchObject({ state: 'paid', reward: DUE, claimed: null, reason: null });
  expect(await credited(sql)).toBe(DUE);
  await sound(sql);
});

test('asked for again and again, a lie is judged by what was known when its cut was read', async () => {
  const { sql, chain, accountant, follow } = await bed();
  await accountant.takeIn([block(idOf(0), 200)]);
  // Others were paid for the anchor before: nothing is carried over.
  const others = (n: number) => ({
    block_id: toHex(idOf(n)),
    transaction_id: 'cd'.repeat(48),
    output_index: 0,
    amount: '1',
  });
  chain.pay(idOf(0), 200, workHalves(0, 200, INTERVAL_CUTS));
  await follow(cut(295, [others(50)]), cut(296, [others(51), others(52)]), cut(300), cut(400), cut(700));
  expect(await blockOf(sql)).toMatchObject({ state: 'held' });
  expect(await credited(sql)).toBe(0n);
});

test('a slice with a held block is credited without it after a while, and the block counts with a later one', async () => {
  const { sql, chain, accountant, follow } = await bed();
  await accountant.takeIn([block(idOf(0)), block(idOf(1), 4)]);
  const [honest, lie] = [chain.pay(idOf(0), ANCHOR, DUE), chain.pay(idOf(1), 4, 10n ** 15n)];
  await follow(cut(0), cut(99, [honest]), cut(100, [lie]), cut(150));
  expect(await credited(sql)).toBe(0n);
  await follow(cut(197), cut(260));
  expect(await credited(sql)).toBe(DUE);
  chain.pay(idOf(1), 4, workHalves(4, 4, INTERVAL_CUTS));
  await follow(cut(261), cut(500));
  expect(await credited(sql)).toBe(DUE + workHalves(4, 4, INTERVAL_CUTS));
  await sound(sql);
});

test('nodes that disagree hold a reward, whichever of them lies; one that is away is waited for, not for ever', async () => {
  const said: string[] = [];
  const saying = (level: string) => (_: string, fields: { reason?: string }) =>
    void said.push(`${level}: ${fields.reason}`);
  const log = { ...quietLog, warn: saying('warn'), error: saying('error') };
  const { sql, chain, accountant, follow, pass } = await bed({ log });
  await accountant.takeIn([block(idOf(0))]);
  let other: (id: string) => Promise<BlockDocument | undefined> = async () => undefined;
  chain.others = [{ name: 'second', headHeight: async () => 10_000, block: (id) => other(id) }];
  const reward = chain.pay(idOf(0), ANCHOR, DUE);
  await follow(cut(0), cut(99, [reward]), cut(110));
  expect(await blockOf(sql)).toMatchObject({ state: 'held', reason: 'nodes disagree about the reward' });
  const waits = { state: 'held', reason: 'waits for a node that is away or behind' };
  const away = () => Promise.reject(new Error('away'));
  other = away;
  await follow(cut(111));
  expect(await blockOf(sql)).toMatchObject(waits);
  pass(100_000);
  // It answers, and is away once more: that is another absence.
  other = async () => undefined;
  await follow(cut(112));
  expect(await blockOf(sql)).toMatchObject({ reason: 'nodes disagree about the reward' });
  other = away;
  await follow(cut(113));
  pass(100_000);
  await follow(cut(114));
  expect(await blockOf(sql)).toMatchObject(waits);
  const [disagree, wait] = ['error: nodes disagree about the reward', `warn: ${waits.reason}`];
  expect(said).toEqual([disagree, wait, disagree, wait]);
  pass(21_000);
  await follow(cut(115));
  expect(await blockOf(sql)).toMatchObject({ state: 'paid', reward: DUE });
  await sound(sql);
});

test('the first node says that nothing was paid and the second that it was: held, not expired', async () => {
  const { sql, chain, accountant, follow } = await bed();
  await accountant.takeIn([block(idOf(0))]);
  chain.pay(idOf(0), ANCHOR, DUE);
  const truth = chain.documents.get(toHex(idOf(0))) as never;
  chain.documents.clear();
  chain.others = [{ name: 'second', headHeight: async () => 10_000, block: async () => truth }];
  await follow(cut(0), cut(99), cut(110));
  expect(await blockOf(sql)).toMatchObject({ state: 'held', reason: 'nodes disagree about the reward' });
});

test('the operator accepts an amount, and that amount alone', async () => {
  const { sql, chain, accountant, follow } = await bed();
  const fees = 10n ** 12n;
  await accountant.takeIn([block(idOf(0), ANCHOR, { fees, mass: 10_000 })]);
  const reward = chain.pay(idOf(0), ANCHOR, DUE + fees);
  await follow(cut(0), cut(99, [reward]), cut(110));
  expect((await blockOf(sql))?.reason).toContain('--max-fee-per-mass');
  await sql`update blocks set operator_accepts = ${String(DUE)}::numeric`;
  await follow(cut(111));
  expect(await blockOf(sql)).toMatchObject({ state: 'held' });
  await sql`update blocks set operator_accepts = ${String(DUE + fees)}::numeric`;
  await follow(cut(112), cut(300));
  expect(await blockOf(sql)).toMatchObject({ state: 'paid', reward: DUE + fees });
  await sound(sql);
});

test('blocks that nobody found are not adopted without work, however much they pay the pool', async () => {
  const { sql, chain, follow } = await bed({ powHash: async () => new Uint8Array(32).fill(255) });
  const lies = Array.from({ length: 5 }, (_, n) => chain.pay(idOf(n), ANCHOR, 1n));
  for (const [id, document] of chain.documents) chain.documents.set(id, { ...document, header_hex: '00'.repeat(312) });
  await follow(cut(0), cut(99, lies), cut(300));
  expect((await sql`select 1 from blocks`).length).toBe(0);
  expect(await credited(sql)).toBe(0n);
});

test('a node that told another amount before, or of another height, stops nothing', async () => {
  const said: unknown[] = [];
  const log = { ...quietLog, error: (_: string, fields: object) => void said.push(fields) };
  const { sql, chain, accountant, follow } = await bed({ log });
  await accountant.takeIn([block(idOf(0))]);
  const reward = chain.pay(idOf(0), ANCHOR, DUE);
  await follow(cut(0), cut(99, [reward]), cut(110));
  // The old code threw here at every try: the books stood still.
  await follow(cut(111, [{ ...reward, amount: '5' }]), cut(112));
  expect(said).toMatchObject([{ block: toHex(idOf(0)), said: '5' }]);
  expect(await blockOf(sql)).toMatchObject({ state: 'paid', reward: DUE });
  const [height] = await sql`select value from settings where name = 'chain_height'`;
  expect(height?.value).toBe('112');
});

test('heights that time does not allow open no slices, and the books wait', async () => {
  const { sql, follow } = await bed();
  for (const height of [50_000, 1e9, 2 ** 52]) {
    await expect(follow(cut(height))).rejects.toThrow('there can be');
    await expect(follow({ type: 'missed', data: { from: 1, to: height } } as never)).rejects.toThrow('there can be');
  }
  expect((await sql`select 1 from slices where service = 0`).length).toBe(1);
  await follow(cut(1), cut(12));
  expect((await sql`select 1 from slices where service = 0`).length).toBe(2);
});

test('a node of another chain, or one that was rolled back under the books, is not followed', async () => {
  const { sql, chain, follow } = await bed();
  const ids = new Map([[10, 'aa'.repeat(48)]]);
  let chainId = '11'.repeat(48);
  Object.assign(chain, { chainId: async () => chainId, cutIdAt: async (height: number) => ids.get(height) });
  await follow(cut(10, [], 'aa'.repeat(48)));
  chainId = '22'.repeat(48);
  await expect(follow(cut(11))).rejects.toMatchObject({ code: 'chain_changed' });
  chainId = '11'.repeat(48);
  ids.set(10, 'bb'.repeat(48));
  await expect(follow(cut(11))).rejects.toMatchObject({ code: 'chain_changed' });
  ids.delete(10);
  await expect(follow(cut(11))).rejects.toMatchObject({ code: 'chain_changed' });
  ids.set(10, 'aa'.repeat(48));
  await follow(cut(11, [], 'cc'.repeat(48)));
  expect((await sql`select value from settings where name = 'chain_height'`)[0]?.value).toBe('11');
});

test('a development chain of short intervals: its honest rewards are credited, and the length is believed once', async () => {
  const { sql, chain, accountant, follow } = await bed();
  let said = 24;
  Object.assign(chain, { intervalCuts: async () => said });
  await accountant.takeIn([block(idOf(0)), block(idOf(1), 30)]);
  const [first, second] = [workHalves(0, ANCHOR, 24), workHalves(ANCHOR + 1, 30, 24)];
  expect(first).toBeGreaterThan(DUE);
  const rewards = [chain.pay(idOf(0), ANCHOR, first), chain.pay(idOf(1), 30, second + 1n)];
  await follow(cut(0), cut(99, [rewards[0] as object]), cut(126, [rewards[1] as object]), cut(300));
  expect(await blockOf(sql)).toMatchObject({ state: 'paid', reward: first });
  expect(await blockOf(sql, idOf(1))).toMatchObject({ state: 'held', reward: null });
  // Neither another length nor one that no chain has is believed later: either would change what a reward may be.
  for (const lie of [36, 34_560, 25, 0, -24, Number.NaN]) {
    said = lie;
    await expect(follow(cut(301))).rejects.toMatchObject({ code: 'chain_changed' });
  }
  said = 24;
  chain.pay(idOf(1), 30, second);
  await follow(cut(301), cut(600));
  expect(await blockOf(sql, idOf(1))).toMatchObject({ state: 'paid', reward: second });
  await sound(sql);
});

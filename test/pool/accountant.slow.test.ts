/** The accountant where things go wrong around it: failed transactions, gaps in the chain, journals that come late, old shares. */
import { expect, test } from 'vitest';
import { extranonceOf, ownerBytes } from '../../bridge/session/extranonce.ts';
import { Accountant } from '../../pool/accountant/accountant.ts';
import type { Chain } from '../../pool/accountant/chain.ts';
import { BooksView } from '../../pool/api/books/books-view.ts';
import { audit } from '../../pool/audit/audit.ts';
import { EntryGapError } from '../../pool/books/intake.ts';
import { dropOldShares } from '../../pool/books/partitions.ts';
import type { Sql } from '../../pool/database/connect.ts';
import type { JournalEntry } from '../../pool/journal/journal.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { formatAddress } from '../../protocol/address.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { SOLO_MARK } from '../../protocol/books/block-service.ts';
import { toHex } from '../../protocol/bytes.ts';
import { INTERVAL_CUTS, NETWORKS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';
import { databaseServer } from './database-fixture.ts';
import { freshIdentity } from './fresh-identity.ts';
import { cut, ToldChain, TOLD_TARGET as target } from './told-chain.ts';

const server = databaseServer();
const DAY_MILLIS = 86_400_000;
const START = Date.UTC(2026, 2, 10);
type ShareRecord = Extract<JournalRecord, { kind: 'share' }>;
const account = (i: number) => Uint8Array.of(0, ...pattern(`accountant/${i}`, 48));

type Journals = { mayTell(bootId: string): Promise<boolean> };

async function accountantOf(sql: Sql, chain: Chain, source?: Journals, fee = 0n): Promise<Accountant> {
  sequence = 0;
  const [term] = await sql<{ number: bigint }[]>`select number from term`;
  const rules = {
    sliceCuts: 10,
    windowThousandths: 1000n,
    services: [0, 1],
    feePpm: new Map([0, 1].map((each) => [each, fee])),
  };
  const options = {
    ...rules,
    network: NETWORKS.development,
    poolAddress: account(99),
    term: (term as { number: bigint }).number,
  };
  return new Accountant(options, { sql, chain, log: quietLog, ...(source === undefined ? {} : { source }) });
}

let sequence = 0;
const entry = (record: JournalRecord): JournalEntry => ({
  bootId: 'aa'.repeat(8),
  sequence: sequence++,
  record: encodeRecord(record),
});
const share = (who: number, atMillis = START, more: Partial<ShareRecord> = {}): JournalEntry =>
  entry({
    kind: 'share',
    service: 'pplns',
    account: account(who),
    worker: 'rig',
    work: 100n,
    atMillis,
    identity: freshIdentity(),
    ...more,
  });
const blockId = pattern('accountant/block', 48);
const block = (anchorHeight: number, id = blockId): JournalEntry =>
  entry({
    kind: 'block',
    service: 'pplns',
    account: account(1),
    worker: 'rig',
    blockId: id,
    anchorHeight,
    target,
    extranonce: new Uint8Array(1),
    atMillis: START,
  });
const follow = (accountant: Accountant) => accountant.follow(new AbortController().signal);

test('a transaction that failed gave nobody an account: the next one makes it anew', async () => {
  const { sql } = await server.fresh();
  const accountant = await accountantOf(sql, new ToldChain(account(99)));
  await accountant.start();
  await sql.unsafe(`create function fail() returns trigger language plpgsql as $$ begin raise 'full'; end $$;
    create trigger fail before update on effort for each row execute function fail()`);
  const entries = [share(1), share(2)];
  await expect(accountant.takeIn(entries)).rejects.toThrow('full');
  await sql`drop trigger fail on effort`;
  expect(await accountant.takeIn(entries)).toEqual({
    taken: 2,
    repeated: 0,
    shares: 2,
    lost: 0,
    doubled: 0,
    unread: 0,
  });
  const [row] = await sql`select count(*)::int as n from open_work join accounts on id = account_id`;
  expect(row?.n).toBe(2);
  // Nor a row to a worker: an account that is known, and a worker of it that is new.
  await sql`create trigger fail before update on effort for each row execute function fail()`;
  const solo = [share(1, START, { service: 'solo' })];
  await expect(accountant.takeIn(solo)).rejects.toThrow('full');
  await sql`drop trigger fail on effort`;
  await accountant.takeIn(solo);
  expect(await sql`select 1 from shares s join workers w on w.id = s.worker_id and w.service = s.service`).toHaveLength(
    3,
  );
  // Shares that an earlier version wrote have no identity, and each of them counts.
  const old = [share(1, START, { identity: null }), share(1, START, { identity: null })];
  expect(await accountant.takeIn(old)).toMatchObject({ shares: 2, doubled: 0 });
});

test('entries that do not join the position are refused, and only a journal can say that some are gone', async () => {
  const { sql } = await server.fresh();
  const accountant = await accountantOf(sql, new ToldChain(account(99)));
  await accountant.start();
  const entries = Array.from({ length: 8 }, () => share(1)) as [JournalEntry, ...JournalEntry[]];
  await expect(accountant.takeIn(entries.slice(1))).rejects.toThrow(EntryGapError);
  expect(await accountant.takeIn(entries.slice(0, 3))).toMatchObject({ taken: 3 });
  // One from the middle of a batch too, and then nothing of the batch counts.
  await expect(accountant.takeIn([...entries.slice(2, 5), ...entries.slice(6)])).rejects.toThrow(/up to 4 .* take 6/);
  expect(await accountant.takeIn(entries.slice(1, 5))).toMatchObject({ taken: 2, repeated: 2 });
  const sixth = entries[6] as JournalEntry;
  await expect(accountant.takeIn([{ ...sixth, after: 5 }])).rejects.toThrow(EntryGapError);
  expect(await accountant.takeIn([{ ...sixth, after: 4 }, ...entries.slice(7)])).toMatchObject({ taken: 2, lost: 1 });
  const [row] = await sql`select count(*)::int as n from shares`;
  expect(row?.n).toBe(7);
  // The end of the journal is missing, up to 9: those are counted, and the books stand behind them.
  const end = { ...sixth, sequence: 9, after: 7, record: new Uint8Array(0) };
  expect(await accountant.takeIn([end])).toMatchObject({ taken: 0, lost: 2, unread: 0 });
  expect(await accountant.takeIn([end])).toMatchObject({ repeated: 1, lost: 0 });
  const holes = await sql`select after::int, until::int from journal_holes`;
  expect([...holes]).toEqual([
    { after: 4, until: 6 },
    { after: 7, until: 10 },
  ]);
});

test('a fee of a restart counts for no work that was done before it, however far the books were behind', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const feesOf = async () =>
    (
      await sql<{ fee: number; slices: string }[]>`select fee_ppm as fee, min(number) || '-' || max(number) as slices
        from slices where service = 0 group by fee_ppm order by fee_ppm`
    ).map(({ fee, slices }) => `${fee}: ${slices}`);
  await (await accountantOf(sql, chain, undefined, 30_000n)).start();
  // The books stay in slice 0. The pool starts again in slice 5, and once more in slice 8, each time with another fee.
  chain.head = 55;
  await (await accountantOf(sql, chain, undefined, 20_000n)).start();
  chain.head = 81;
  const last = await accountantOf(sql, chain, undefined, 10_000n);
  await last.start();
  chain.head = 120;
  chain.items = Array.from({ length: 120 }, (_, height) => cut(height, []));
  await follow(last);
  expect(await feesOf()).toEqual(['10000: 9-11', '20000: 6-8', '30000: 0-5']);
  // A higher one holds only after its notice, which the next starts do not renew.
  const raised = await accountantOf(sql, chain, undefined, 990_000n);
  await raised.start();
  chain.head = 300;
  chain.items = Array.from({ length: 180 }, (_, i) => cut(120 + i, []));
  await follow(raised);
  expect((await feesOf())[0]).toBe('10000: 9-29');
  const [row] = await sql<{ value: string }[]>`select value from settings where name = 'terms_in_force'`;
  expect(JSON.parse(row?.value as string).services[0].fees).toEqual([
    { from: 9, ppm: 10_000 },
    { from: 13 + INTERVAL_CUTS / 10, ppm: 990_000 },
  ]);
  expect(await sql`select 1 from noted_terms`).toHaveLength(0);
});

test('terms that somebody changed outside the pool keep the books waiting, with a remedy; without the row they go on', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  await (await accountantOf(sql, chain)).start();
  for (const value of ['{}', 'null', 'x', '{"through":0,"terms":{"0":{"window":"2","fee":-1}}}']) {
    await sql`update settings set value = ${value} where name = 'terms_in_force'`;
    await expect((await accountantOf(sql, chain)).start()).rejects.toMatchObject({
      code: 'terms_unreadable',
      message: expect.stringContaining('or delete it'),
    });
  }
  await sql`delete from settings where name = 'terms_in_force'`;
  await (await accountantOf(sql, chain)).start();
});

test('cuts that say nothing are read at one go, and no slice, reward or expiry is passed over', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  await accountant.takeIn([share(1), block(3)]);
  const paying = chain.pay(blockId, 3, 1000n);
  chain.items = Array.from({ length: 600 }, (_, height) => cut(height, height === 99 ? [paying] : []));
  await follow(accountant);
  const [height] = await sql`select value from settings where name = 'chain_height'`;
  expect(height?.value).toBe('599');
  const [slices] = await sql`select count(*)::int as n from slices where service = 0`;
  expect(slices?.n).toBe(60);
  const [paid] = await sql`select state, settled_height::int as at, credit_list is not null as credited from blocks`;
  expect(paid).toEqual({ state: 'paid', at: 99, credited: true });
});

test('a block is paid though its journal came after a gap in which nobody could read its reward', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  await accountant.takeIn([share(1), share(2)]);
  chain.items = [cut(0), { type: 'missed', data: { from: 1, to: 500 } }];
  await follow(accountant);
  chain.pay(blockId, 3, 1001n);
  await accountant.takeIn([block(3)]);
  chain.items = [cut(501)];
  await follow(accountant);
  const [paid] = await sql`select state, reward, settled_height::int as at from blocks`;
  expect(paid).toEqual({ state: 'paid', reward: 1001n, at: 99 });
  const balances = await sql<{ balance: bigint }[]>`select balance from accounts order by balance desc`;
  expect(balances.map((row) => row.balance)).toEqual([501n, 500n]);
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

test('work is paid under the fee it was done under: a list has the lowest fee of its window', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain, undefined, 10_000n);
  await accountant.start();
  await accountant.takeIn([share(1)]);
  chain.items = [cut(0), cut(10)];
  await follow(accountant);
  // The work is in slice 0; the block is anchored in slice 2, whose fee was raised.
  await sql`update settings set value = '[{"from":2,"ppm":990000}]' where name = 'edit_fee_pplns'`;
  await sql`insert into settings values ('edit_fee_pplns', '[{"from":2,"ppm":990000}]') on conflict do nothing`;
  await accountant.takeIn([block(23)]);
  const paying = chain.pay(blockId, 23, 1000n);
  chain.items = [cut(20), cut(30), cut(119, [paying]), cut(250)];
  await follow(accountant);
  const fees = await sql`select number, fee_ppm from slices where service = 0 and number in (1, 2) order by number`;
  expect([...fees]).toEqual([
    { number: 1, fee_ppm: 10_000 },
    { number: 2, fee_ppm: 990_000 },
  ]);
  const lists = await sql`select slice, fee_ppm, fee, credited from credit_lists`;
  expect([...lists]).toEqual([{ slice: 2, fee_ppm: 10_000, fee: 10n, credited: 990n }]);
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

test('a reward that comes to light after its slice was credited is divided with the slice that is open then', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  await accountant.takeIn([share(1), block(3)]);
  const paying = chain.pay(blockId, 3, 1000n);
  chain.items = [cut(0), cut(10), cut(99, [paying]), cut(200)];
  await follow(accountant);
  const lists = () => sql<{ slice: number; reward: bigint }[]>`select slice, reward from credit_lists order by id`;
  expect([...(await lists())]).toEqual([{ slice: 0, reward: 1000n }]);

  const late = pattern('accountant/late', 48);
  chain.pay(late, 4, 501n);
  await accountant.takeIn([share(2), share(2), block(4, late)]);
  // Told again and again, it counts once.
  chain.items = [cut(205), cut(206), cut(210), cut(400)];
  await follow(accountant);
  expect([...(await lists())]).toEqual([
    { slice: 0, reward: 1000n },
    { slice: 20, reward: 501n },
  ]);
  const [total] = await sql<{ total: string }[]>`select sum(balance)::text as total from accounts`;
  expect(total?.total).toBe('1501');
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

test('a late journal loses its raw shares before its slice is old, and the audit does not take that for a difference', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  const days = [0, 1, 2, -5, 3, 4];
  for (const [slice, day] of days.entries()) {
    chain.items = [cut(slice * 10)];
    await follow(accountant);
    await accountant.takeIn([share(slice, START + day * DAY_MILLIS), share(9, START + slice * DAY_MILLIS)]);
  }
  chain.items = [cut(days.length * 10)];
  await follow(accountant);
  expect(await dropOldShares(sql, START)).toEqual(['shares_2026_03_05']);
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
  // Slices after the one that lost shares are still checked.
  await sql`update shares set work = work + 1 where slice = 4`;
  expect((await audit(sql, { network: 'development' })).findings.length).toBeGreaterThan(0);
});

test('a reward waits for the journal that may name its finder, and a solo block is not divided', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const asked: string[] = [];
  let isBehind = true;
  const source = { mayTell: async (boot: string) => asked.push(boot) > 0 && isBehind };
  const accountant = await accountantOf(sql, chain, source);
  await accountant.start();
  await accountant.takeIn([share(2)]);
  const extranonce = extranonceOf(
    '',
    ownerBytes({ bootId: pattern('accountant/boot', 8), thread: 0, connection: 0 }),
    0,
  );
  const paying = chain.pay(blockId, 3, 1000n, extranonce);
  chain.items = [cut(0), cut(99, [paying]), cut(200)];
  const following = follow(accountant);
  await expect.poll(() => asked.length).toBeGreaterThan(2);
  expect(new Set(asked)).toEqual(new Set([toHex(pattern('accountant/boot', 8))]));
  expect((await sql`select 1 from blocks`).length).toBe(0);
  const record = { kind: 'block', service: 'solo', account: account(1), worker: 'rig', blockId } as const;
  await accountant.takeIn([entry({ ...record, anchorHeight: 3, target, extranonce, atMillis: START })]);
  isBehind = false;
  await following;
  const [balance] = await sql`select balance from accounts where payload = ${Buffer.from(account(1))}`;
  expect(balance?.balance).toBe(1000n);
});

test('a block of nobody is of the service that it shows itself, so that no verifier contradicts the books', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  await accountant.takeIn([share(2)]);
  const foundBy = (thread: number) =>
    extranonceOf('', ownerBytes({ bootId: pattern('accountant/stranger', 8), thread, connection: 0 }), 0);
  const extranonces = [foundBy(SOLO_MARK), foundBy(1), Uint8Array.of(0)];
  const paying = extranonces.map((extranonce, i) => chain.pay(pattern(`nobody ${i}`, 48), 3, 1000n, extranonce));
  chain.items = [cut(0), cut(99, paying), cut(200)];
  await follow(accountant);
  const rows = await sql<{ block_id: Buffer; service: number }[]>`select block_id, service from blocks`;
  const services = new Map(rows.map((row) => [row.block_id.toString('hex'), row.service]));
  expect(extranonces.map((_, i) => services.get(toHex(pattern(`nobody ${i}`, 48))))).toEqual([1, 0, 0]);
});

test('a block whose anchor lies before the pool’s first slice is one of the first slice, which is published', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  chain.head = 25;
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  await accountant.takeIn([share(1), block(18)]);
  const nobody = pattern('accountant/early', 48);
  chain.items = [cut(30), cut(113, [chain.pay(nobody, 17, 500n)]), cut(114, [chain.pay(blockId, 18, 1000n)]), cut(300)];
  await follow(accountant);
  const view = new BooksView({ network: 'development', address: 'pool' }, { sql });
  const { slices } = await view.slices(0, { cursor: undefined, limit: 200 });
  const listed = slices.filter(({ credits }) => credits !== null);
  expect(listed.map(({ slice, credits }) => [slice, credits?.reward_atoms])).toEqual([[2, '1500']]);
  // Its finder finds it there.
  const { blocks } = await view.blocks(0, 2);
  expect(blocks.map((each) => [each.block_id, each.credited_with]).sort()).toEqual(
    [nobody, blockId].map((id) => [toHex(id), 2]).sort(),
  );
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

test('a list waits for a reward that is held no longer than 96 cuts after the cut that pays it, also after an outage', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  const dear = pattern('accountant/dear', 48);
  await accountant.takeIn([share(1), block(3), block(4, dear)]);
  chain.pay(blockId, 3, 1000n);
  chain.pay(dear, 4, 1000n, undefined, { paid_height: 200 });
  chain.items = [cut(0), { type: 'missed', data: { from: 1, to: 500 } }];
  await follow(accountant);
  const [held] = await sql`select state, settled_height::int as at from blocks where block_id = ${Buffer.from(dear)}`;
  expect(held).toEqual({ state: 'held', at: 100 });
  const lists = await sql<{ slice: number; reward: bigint }[]>`select slice, reward from credit_lists`;
  expect([...lists]).toEqual([{ slice: 0, reward: 1000n }]);
});

test('blocks that nobody’s journal named are adopted, whatever their finder, also when the pool was away for longer than events reach back', async () => {
  const { sql } = await server.fresh();
  const chain = new ToldChain(account(99));
  const accountant = await accountantOf(sql, chain);
  await accountant.start();
  await accountant.takeIn([share(1), share(2), block(3)]);
  const [first, second, foreign, renamed] = ['unnamed 1', 'unnamed 2', 'foreign', 'renamed'].map((name) =>
    pattern(`accountant/${name}`, 48),
  ) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
  chain.unheard.push(
    cut(99, [chain.pay(blockId, 3, 1000n), chain.pay(first, 3, 501n)]),
    cut(296, [chain.pay(second, 200, 300n)]),
    // Nothing of this is the pool's.
    cut(310, [chain.pay(foreign, 214, 40n)]),
    cut(320, [chain.pay(renamed, 224, 50n)]),
    cut(400, [{ block_id: 'ff'.repeat(48), transaction_id: 'ff'.repeat(48), output_index: 0, amount: '7' }]),
  );
  for (const [id, changes] of [
    [foreign, { payout: formatAddress(account(98), 'development') }],
    [renamed, { block_id: toHex(foreign) }],
  ] as const)
    chain.documents.set(toHex(id), { ...chain.documents.get(toHex(id)), ...changes });
  // A node that is away while they are asked for: the books wait, and miss none.
  const cutsThatPaid = chain.cutsThatPaid.bind(chain);
  const missed = { type: 'missed', data: { from: 1, to: 500 } } as const;
  for (const error of [new Error('away'), new ApiError('client_no_answer', 0, 'away')]) {
    chain.cutsThatPaid = () => {
      throw error;
    };
    chain.items = [cut(0), missed];
    await expect(follow(accountant)).rejects.toThrow('away');
  }
  chain.cutsThatPaid = cutsThatPaid;
  chain.items = [cut(0), missed];
  await follow(accountant);
  const paid = await sql<
    { reward: bigint; at: number; slice: number }[]
  >`select reward, settled_height::int as at, slice
    from blocks where state = 'paid' order by reward`;
  expect([...paid]).toEqual([
    { reward: 300n, at: 296, slice: 20 },
    { reward: 501n, at: 99, slice: 0 },
    { reward: 1000n, at: 99, slice: 0 },
  ]);
  expect(await sql`select 1 from blocks`).toHaveLength(paid.length);
  const lists = await sql<{ slice: number; reward: bigint }[]>`select slice, reward from credit_lists order by slice`;
  expect([...lists]).toEqual([
    { slice: 0, reward: 1501n },
    { slice: 20, reward: 300n },
  ]);
  const [height] = await sql`select value from settings where name = 'chain_height'`;
  expect(height?.value).toBe('500');
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

/**
 * The books against a model: random shares, replays, blocks and rewards go into a real PostgreSQL; a few lines of plain
 * arithmetic over everything that happened say what every account must have. The audit agrees, and finds any tampering.
 */
import { expect, test } from 'vitest';
import { audit, auditMoment } from '../../pool/audit/audit.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits, PPLNS, SOLO } from '../../pool/books/credits.ts';
import { Intake, UNKNOWN_FINDER } from '../../pool/books/intake.ts';
import { expireBlocks, recordPaid } from '../../pool/books/rewards.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import { advanceSlices } from '../../pool/books/slices.ts';
import { fenced, TermLostError, tryElection } from '../../pool/books/term.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import type { JournalEntry } from '../../pool/journal/journal.ts';
import { encodeRecord, type JournalRecord, type Service } from '../../pool/journal/journal-record.ts';
import { toHex } from '../../protocol/bytes.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { until } from '../until.ts';
import { databaseServer } from './database-fixture.ts';
import { freshIdentity } from './fresh-identity.ts';

const server = databaseServer();
const SLICE_CUTS = 10;
const WINDOW = 96;
const FEES = new Map([
  [PPLNS, 10_000n],
  [SOLO, 5_000n],
]);
const slices = {
  network: NETWORKS.development,
  sliceCuts: SLICE_CUTS,
  windowThousandths: 2500n,
  services: [PPLNS, SOLO],
  feePpm: FEES,
};
const target = targetOfWork(1_000_000n);

const account = (i: number) => Uint8Array.of(0, ...pattern(`miner/${i}`, 48));
const worker = (i: number) => `rig-${i % 3}`;

/** What happened, kept in the plainest form, and what follows from it. */
class Model {
  readonly shares: { service: Service; slice: number; account: string; work: bigint }[] = [];
  readonly blocks: { service: Service; slice: number; finder: string; reward: bigint }[] = [];

  income(): Map<string, bigint> {
    const income = new Map<string, bigint>();
    const add = (name: string, amount: bigint) => income.set(name, (income.get(name) ?? 0n) + amount);
    for (const block of this.blocks.filter((b) => b.service === 'solo'))
      add(block.finder, block.reward - (block.reward * 5_000n) / 1_000_000n);
    const groups = new Map<number, bigint>();
    for (const block of this.blocks.filter((b) => b.service === 'pplns'))
      groups.set(block.slice, (groups.get(block.slice) ?? 0n) + block.reward);
    for (const [slice, reward] of groups) this.#divide(slice, reward - (reward * 10_000n) / 1_000_000n, add);
    return income;
  }

  /** PPLNS written down once more, with fractions of a common denominator instead of scaled weights. */
  #divide(slice: number, amount: bigint, add: (name: string, amount: bigint) => void): void {
    const pplns = this.shares.filter((share) => share.service === 'pplns');
    const total = (s: number) => pplns.filter((x) => x.slice === s).reduce((sum, x) => sum + x.work, 0n);
    const worked = [...new Set(pplns.map((x) => x.slice))].sort((a, b) => b - a);
    let parts = worked.filter((s) => s < slice);
    if (parts.length === 0) parts = worked.filter((s) => s >= slice).slice(-1);
    const newest = parts.slice(0, 12).reduce((sum, part) => sum + total(part), 0n);
    const windowWork = newest > 2_500_000n ? newest : 2_500_000n;
    let left = windowWork;
    const scores = new Map<string, { n: bigint; d: bigint }>();
    for (const part of parts) {
      if (left === 0n) break;
      const all = total(part);
      const counted = all < left ? all : left;
      left -= counted;
      for (const share of pplns.filter((x) => x.slice === part)) {
        const before = scores.get(share.account) ?? { n: 0n, d: 1n };
        scores.set(share.account, { n: before.n * all + share.work * counted * before.d, d: before.d * all });
      }
    }
    const all = windowWork - left;
    const rows = [...scores].map(([name, { n, d }]) => ({
      name,
      floor: (amount * n) / (d * all),
      rest: Number(((((amount * n) % (d * all)) * 10n ** 15n) / (d * all)).toString()),
    }));
    let over = amount - rows.reduce((sum, row) => sum + row.floor, 0n);
    for (const row of rows.sort((a, b) => b.rest - a.rest || (a.name < b.name ? -1 : 1))) {
      add(row.name, row.floor + (over > 0n ? 1n : 0n));
      if (over > 0n) over--;
    }
  }
}

async function live(sql: Sql, cuts: number, from: number): Promise<Model> {
  const draw = randomOf(from);
  const closed = new ClosedWork();
  const model = new Model();
  const intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
  const [term] = await sql<{ number: bigint }[]>`select number from term`;
  const run = <T>(work: Parameters<typeof fenced<T>>[2]) => fenced(sql, term!.number, work);
  const sequences = ['aa00000000000000', 'bb00000000000000'].map((bootId) => ({ bootId, next: 0 }));
  let taken: JournalEntry[] = [];
  const pending: { blockId: Uint8Array; anchor: number; reward: bigint; service: Service; finder: string }[] = [];
  let blocks = 0;
  for (let height = 0; height < cuts; height++) {
    await run((tx) => advanceSlices(tx, slices, { height, targetOf: () => target }));
    const entries: JournalEntry[] = [];
    const push = (record: JournalRecord) => {
      const boot = sequences[draw(2)]!;
      entries.push({ bootId: boot.bootId, sequence: boot.next++, record: encodeRecord(record) });
    };
    for (let i = draw(6); i > 0; i--) {
      const who = draw(12);
      const service: Service = draw(4) === 0 ? 'solo' : 'pplns';
      const work = BigInt(1 + draw(300_000));
      push({
        kind: 'share',
        service,
        account: account(who),
        worker: worker(draw(9)),
        work,
        atMillis: 1.7e12 + height,
        identity: freshIdentity(height),
      });
      model.shares.push({ service, slice: Math.floor(height / SLICE_CUTS), account: toHex(account(who)), work });
    }
    if (draw(4) === 0) {
      const who = draw(12);
      const service: Service = draw(3) === 0 ? 'solo' : 'pplns';
      const blockId = pattern(`block/${from}/${blocks++}`, 48);
      const common = { service, account: account(who), worker: worker(0), atMillis: 1.7e12 + height };
      push({ kind: 'block', ...common, blockId, anchorHeight: height, target, extranonce: new Uint8Array(1) });
      const reward = draw(5) === 0 ? 0n : BigInt(1 + draw(1_000_000_000));
      pending.push({ blockId, anchor: height, reward, service, finder: toHex(account(who)) });
    }
    // Each boot's entries stay in order; batches come again in part, as after a crash before the acknowledgement.
    const again = draw(3) === 0 ? taken.slice(draw(taken.length + 1)) : [];
    await run((tx) => intake.take(tx, [...again, ...entries]));
    taken = entries;
    await run(async (tx) => {
      for (const block of pending.filter((b) => b.anchor + WINDOW === height && b.reward > 0n)) {
        const { blockId, reward } = block;
        const paid = { blockId, transactionId: pattern('tx', 48), outputIndex: 0, amount: reward, height };
        expect(await recordPaid(tx, paid)).toBe(true);
        if (draw(2) === 0) await recordPaid(tx, paid);
        const slice = Math.floor(block.anchor / SLICE_CUTS);
        model.blocks.push({ service: block.service, slice, finder: block.finder, reward });
      }
      await expireBlocks(tx, height, WINDOW);
      await makeCredits(tx, closed, { sliceCuts: SLICE_CUTS }, height);
    });
  }
  return model;
}

test('every account has its share of each window to the atom, and the audit agrees', async () => {
  for (let round = 0; round < count({ full: 1, deep: 20 }); round++) {
    const { sql } = await server.fresh();
    const cuts = count({ full: 20, deep: 26 }) * SLICE_CUTS;
    const model = await live(sql, cuts, seed + round);
    const credited = new Set(
      (await sql<{ service: number; slice: number }[]>`select service, slice from credit_lists`).map(
        (row) => `${row.service}/${row.slice}`,
      ),
    );
    const settled = new Model();
    settled.shares.push(...model.shares);
    settled.blocks.push(
      ...model.blocks.filter((b) => credited.has(`${b.service === 'pplns' ? PPLNS : SOLO}/${b.slice}`)),
    );
    expect(settled.blocks.length).toBeGreaterThan(10);
    const income = settled.income();
    const rows = await sql<{ payload: Buffer; balance: bigint }[]>`select payload, balance from accounts`;
    for (const row of rows) expect(row.balance).toBe(income.get(row.payload.toString('hex')) ?? 0n);
    expect((await balanceSheet(sql)).gap).toBe(0n);
    const report = await audit(sql, { network: 'development' });
    expect(report.findings).toEqual([]);
    expect(report.lists).toBeGreaterThan(8);
    const [expired] = await sql`select count(*)::int as n from blocks where state = 'expired' and reward is null`;
    expect(expired?.n).toBeGreaterThan(0);
    await sql`update accounts set balance = balance + 1 where id = (select min(id) from accounts)`;
    expect((await audit(sql, { network: 'development' })).findings.map((finding) => finding.what)).toContain(
      'the balance sheet',
    );
  }
});

test('the audit finds a changed slice, credit list, reward and raw share', async () => {
  const { sql } = await server.fresh();
  await live(sql, 16 * SLICE_CUTS, seed + 99);
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
  const changes = [
    `update slices set leaves = set_byte(leaves, 4, get_byte(leaves, 4) # 1) where number = 3 and service = 0`,
    `update credit_lists set credits = set_byte(credits, 4, get_byte(credits, 4) # 1) where id = 1`,
    `update blocks set reward = reward + 1 where block_id = (select min(block_id) from blocks where credit_list = 1)`,
    `update shares set work = work + 1 where slice = 4 and service = 0`,
  ];
  for (const change of changes) {
    await sql
      .begin(async (tx) => {
        for (const table of ['slices', 'credit_lists', 'blocks'])
          await tx.unsafe(`alter table ${table} disable trigger user`);
        await tx.unsafe(change);
        const report = await auditMoment(tx as unknown as Sql, { network: 'development' });
        expect(report.findings.length, change).toBeGreaterThan(0);
        throw new Error('undo');
      })
      .catch((error: Error) => expect(error.message).toBe('undo'));
  }
});

test('one accountant at a time, and one whose term is over can write nothing', async () => {
  const { sql, url } = await server.fresh();
  const [one, two] = [connectDatabase(url, { max: 1 }), connectDatabase(url, { max: 1 })];
  const first = await tryElection(one, 'one');
  expect(await tryElection(two, 'two')).toBeUndefined();
  await fenced(sql, first!.number, (tx) => tx`insert into settings values ('a', '1')`);
  await first!.release();
  const second = await tryElection(two, 'two');
  expect(second!.number).toBeGreaterThan(first!.number);
  await expect(fenced(sql, first!.number, (tx) => tx`insert into settings values ('b', '2')`)).rejects.toThrow(
    TermLostError,
  );
  expect((await sql`select name from settings`).map((row) => row.name)).toEqual(['a']);
  await second!.release();
  for (const connection of [one, two]) await connection.end({ timeout: 1 });
});

test('an accountant whose database was replaced in the running server, and has another one since, can write nothing', async () => {
  const [before, putBack] = [await server.fresh(), await server.fresh()];
  const terms = [];
  for (const { url } of [before, putBack]) {
    const connection = connectDatabase(url, { max: 1 });
    terms.push((await tryElection(connection, 'somebody'))!);
    await terms.at(-1)!.release();
    await connection.end({ timeout: 1 });
  }
  const [old, present] = terms.map(({ number }) => number);
  const write = (term: bigint) => fenced(putBack.sql, term, (tx) => tx`insert into settings values ('a', '1')`);
  await expect(write(old!)).rejects.toThrow(TermLostError);
  await write(present!);
});

test('an accountant that does nothing on its connection loses the term, and can write nothing when it goes on', async () => {
  const { sql, url } = await server.fresh();
  const [one, two] = [connectDatabase(url, { max: 1 }), connectDatabase(url, { max: 1 })];
  const first = await tryElection(one, 'one');
  // It stopped within a transaction of its term: the server waits for the rest of what it copies.
  const hung = connectDatabase(url, { max: 1 });
  const copying = Promise.withResolvers<void>();
  const held = hung.begin(async (tx) => {
    await tx`select number from term for share`;
    const rest = await tx`copy settings from stdin`.writable();
    rest.on('error', () => undefined);
    copying.resolve();
    await new Promise((resolve) => rest.on('close', resolve));
    throw new Error('cut');
  });
  const cut = expect(held).rejects.toThrow();
  await copying.promise;
  // A backup that is read slowly (pg_dump) has locks on all tables for as long.
  const dump = connectDatabase(url, { max: 1 });
  const [read, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const dumped = dump.begin('isolation level repeatable read read only', async (tx) => {
    await tx`select * from term`;
    read.resolve();
    await over.promise;
    return tx`select number from term`;
  });
  await read.promise;
  // With the real time it keeps the term, because it asks every second; this is a second as long as a process may hang.
  expect(await tryElection(two, 'two')).toBeUndefined();
  const second = await until(() => tryElection(two, 'two', 0));
  await first!.lost;
  expect(second.number).toBeGreaterThan(first!.number);
  await expect(fenced(sql, first!.number, (tx) => tx`insert into settings values ('b', '2')`)).rejects.toThrow(
    TermLostError,
  );
  await cut;
  over.resolve();
  expect(await dumped).toEqual([{ number: first!.number }]);
  await first!.release();
  await second.release();
  for (const connection of [one, two, hung, dump]) await connection.end({ timeout: 1 });
});

test('a transaction in which a program does nothing ends, with its locks, where the program asked for that', async () => {
  const { sql, url } = await server.fresh();
  const hung = connectDatabase(url, { max: 1, idleTransactionMillis: 50 });
  const lock = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const held = hung.begin(async (tx) => {
    await tx`select number from term for share`;
    lock.resolve();
    await end.promise;
    await tx`insert into settings values ('c', '3')`;
  });
  const ended = expect(held).rejects.toThrow();
  await lock.promise;
  const isHeld = () => sql`select from pg_locks where relation = 'term'::regclass and pid <> pg_backend_pid()`;
  await until(async () => (await isHeld()).length === 0);
  end.resolve();
  await ended;
  expect(await sql`select from settings where name = 'c'`).toHaveLength(0);
  await hung.end({ timeout: 1 });
});

test('an accountant whose connection is cut knows it, and a new one can be elected', async () => {
  const { sql, url } = await server.fresh();
  const connection = connectDatabase(url, { max: 1 });
  const first = await tryElection(connection, 'one');
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  await first!.lost;
  await first!.release();
  await connection.end({ timeout: 1 });
  const other = connectDatabase(url, { max: 1 });
  const second = await tryElection(other, 'two');
  expect(second!.number).toBeGreaterThan(first!.number);
  await second!.release();
  await other.end({ timeout: 1 });
});

test('a journal that comes after the chain names the finder that was not on record', async () => {
  const { sql } = await server.fresh();
  const intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
  const [term] = await sql<{ number: bigint }[]>`select number from term`;
  const run = <T>(work: Parameters<typeof fenced<T>>[2]) => fenced(sql, term!.number, work);
  await run((tx) => advanceSlices(tx, slices, { height: 0, targetOf: () => target }));
  const block = {
    kind: 'block' as const,
    blockId: pattern('late', 48),
    anchorHeight: 0,
    target,
    extranonce: new Uint8Array(1),
    atMillis: 1.7e12,
  };
  await run((tx) => intake.adoptBlock(tx, { ...block, service: 'pplns', account: account(0), worker: UNKNOWN_FINDER }));
  // Work done since the block was found: a name put right must not take it away.
  await sql`update effort set work = 5`;
  const record = encodeRecord({ ...block, service: 'solo', account: account(1), worker: 'rig' });
  await run((tx) => intake.take(tx, [{ bootId: 'aa00000000000000', sequence: 0, record }]));
  expect((await sql<{ work: string }[]>`select work from effort`).map(({ work }) => work)).toEqual(['5', '5']);
  const finders = () => sql<{ name: string; service: number }[]>`select w.name, b.service from blocks b
    join workers w on w.id = b.worker_id`;
  expect([...(await finders())]).toEqual([{ name: 'rig', service: SOLO }]);
  const thief = encodeRecord({ ...block, service: 'solo', account: account(2), worker: 'thief' });
  await run((tx) => intake.take(tx, [{ bootId: 'aa00000000000000', sequence: 1, record: thief }]));
  expect([...(await finders())]).toEqual([{ name: 'rig', service: SOLO }]);
});

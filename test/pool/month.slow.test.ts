/**
 * A month of a pool on a fast clock: thousands of miners join, leave and hop, blocks are paid and expire, payouts get lost
 * and void, clocks jump, and whatever keeps the books is killed. Accountants and PostgreSQL are real, separate processes;
 * the chain, the wallet and the miners are played. At the end `svc-pool audit` passes, and every credit list, every
 * account's income and every payment is what a model of its own says, to the atom.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { UNKNOWN_FINDER } from '../../pool/books/intake.ts';
import { unpackCredits } from '../../pool/books/packed.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import { positionsOf } from '../../pool/feed/positions.ts';
import type { JournalRecord } from '../../pool/journal/journal-record.ts';
import { SERVICES } from '../../pool/journal/journal-record.ts';
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { runToEnd } from '../../stack/process.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { MonthChain } from './month-chain.ts';
import { MonthDatabase } from './month-database.ts';
import { MONTH, type MonthEdge } from './month-edge.ts';
import { MonthFrontEnd } from './month-front-end.ts';
import { expectedLists, type PaidBlock, type WorkedSlice } from './month-income.ts';
import { MonthInstances } from './month-instances.ts';
import { MonthMiners } from './month-miners.ts';
import { MonthWallet } from './month-wallet.ts';

const ACCOUNTS = count({ full: 100, deep: 3_000 });
const SLICES = count({ full: 54, deep: 4_320 });
const FAULTS = ['instance', 'elections', 'connections', 'backend', 'server', 'node', 'front end', 'clock'] as const;
/** How often each of them strikes. */
const STRIKES = count({ full: 1, deep: 10 });
const OUTAGES = count({ full: 1, deep: 12 });
const WAIT_MILLIS = 600_000;
const poolAddress = Uint8Array.of(0, ...pattern('month/pool', 48));

type Fault = (typeof FAULTS)[number];
type Unwritten = { readonly record: JournalRecord; readonly rewardHeight: number; readonly slice: number };

class Month {
  readonly draw = randomOf(seed);
  readonly chain = new MonthChain(poolAddress, this.#target());
  readonly wallet = new MonthWallet(randomOf(seed + 1), () => this.chain.head);
  readonly miners = new MonthMiners({ accounts: ACCOUNTS, slices: SLICES }, this.draw);
  readonly database: MonthDatabase;
  readonly frontEnd: MonthFrontEnd;
  readonly instances: MonthInstances;
  readonly slices: WorkedSlice[] = [];
  readonly struck = new Map<Fault, number>();
  #unwritten: Unwritten[] = [];
  /** Blocks that expired and that no journal ever named: the pool cannot know of them. */
  readonly unknown = new Set<string>();
  shares = 0;
  adopted = 0;

  constructor(database: MonthDatabase, frontEnd: MonthFrontEnd) {
    this.database = database;
    this.frontEnd = frontEnd;
    this.instances = new MonthInstances(
      { databaseUrl: database.relayUrl, poolAddress: toHex(poolAddress) },
      { edgeOf: (name) => this.#edge(name), nowMillis: () => this.chain.nowMillis },
    );
  }

  #edge(name: string): MonthEdge {
    const { chain, wallet, frontEnd } = this;
    return {
      cuts: (after) => chain.cuts(after),
      targetAt: (height) => chain.targetAt(height),
      headHeight: () => chain.headHeight(),
      block: (id) => chain.block(id),
      begin: () => frontEnd.begin(name),
      take: (max, wait) => frontEnd.take(name, max, wait),
      committed: (bootId, through) => frontEnd.committed(bootId, through),
      isCaughtUp: () => frontEnd.isCaughtUp(),
      mayTell: (bootId) => frontEnd.mayTell(bootId),
      status: () => wallet.status(),
      sendMany: (id, recipients) => wallet.sendMany(id, recipients),
      compound: (id) => wallet.compound(id),
      fate: (id) => wallet.fate(id),
      payment: (id) => wallet.payment(id),
      payments: (prefix, after) => wallet.payments(prefix, after),
      paidSince: (height) => wallet.paidSince(height),
    };
  }

  /** Sometimes four blocks of the network are more work than the pool's twelve slices, sometimes less. */
  #target(): bigint {
    return targetOfWork(BigInt(ACCOUNTS) * 10_000_000_000n * BigInt(1 + this.draw(8)));
  }

  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const end = Date.now() + WAIT_MILLIS;
    for (let wait = 1; !(await isSo()); wait = Math.min(50, wait + 1)) {
      if (this.instances.deaths.length > 0) throw new Error(this.instances.deaths.join(', '));
      if (Date.now() > end) throw new Error(`waited too long for ${what}`);
      await sleep(wait);
    }
  }

  /** The books have read the chain to its head. */
  untilRead(): Promise<void> {
    return this.until('cuts', async () => {
      const [row] = await this.database.ask(
        (sql) => sql<{ value: string }[]>`select value from settings where name = 'chain_height'`,
      );
      return Number(row?.value ?? -1) >= this.chain.head;
    });
  }

  async strike(fault: Fault): Promise<void> {
    const { database, instances, chain, draw } = this;
    this.struck.set(fault, (this.struck.get(fault) ?? 0) + 1);
    await sleep(draw(60));
    if (fault === 'instance') await instances.kill(draw);
    if (fault === 'elections') await database.cut('elections');
    if (fault === 'connections') await database.cut('all');
    if (fault === 'backend') await database.killBackend(draw);
    if (fault === 'server') await database.killServer();
    if (fault === 'node') await chain.leaveFor(500);
    if (fault === 'clock') chain.skewMillis = (draw(7) - 3) * 8 * 3_600_000;
  }

  /** The chain goes on into a slice, and blocks are found on the way. */
  goOn(slice: number, isForgotten: boolean): void {
    const { chain, draw } = this;
    const before = chain.head;
    const height = Math.max(before + 1, slice * MONTH.sliceCuts + draw(MONTH.sliceCuts));
    // What was found during an outage is not the pool's, and what is paid in it nobody would see.
    const from = isForgotten ? Math.max(slice * MONTH.sliceCuts, height - REGISTRATION_WINDOW / 2) : before + 1;
    const target = this.#target();
    for (let n = draw(10) < 4 ? 0 : 1 + draw(3); n > 0; n--) {
      const anchor = from + draw(height - from + 1);
      this.#find(slice, anchor, target);
    }
    chain.goOn(height, target, isForgotten);
    this.slices.push({ number: slice, target, work: new Map() });
  }

  #find(slice: number, anchor: number, target: bigint): void {
    const { chain, draw } = this;
    const id = pattern(`month/block/${chain.blocks.size}`, 48);
    const amount = BigInt(1 + draw(2 ** 31));
    const height = anchor + REGISTRATION_WINDOW;
    const base = { id: toHex(id), anchor, target };
    const finder = draw(10) === 0 ? undefined : this.miners.finder(slice);
    if (finder === undefined) {
      chain.add({ ...base, finder, extranonce: Uint8Array.of(0, 1, 2, 3), reward: { amount, height } });
      return;
    }
    const { account, name, service, worker, extranonce } = finder;
    const reward = draw(6) === 0 ? undefined : { amount, height };
    chain.add({ ...base, finder: { service, account: name, worker }, extranonce, reward });
    const atMillis = chain.nowMillis;
    const block = { kind: 'block', service, account, worker, blockId: id, anchorHeight: anchor } as const;
    const record: JournalRecord = { ...block, target, extranonce, atMillis };
    // Some records come late, and some never: the front end died between the node's answer and the journal.
    const isNever = draw(8) === 0;
    if (isNever && reward === undefined) this.unknown.add(base.id);
    const writtenIn = isNever ? Number.POSITIVE_INFINITY : Math.min(slice + Math.max(0, draw(12) - 8), SLICES - 1);
    this.#unwritten.push({ record, rewardHeight: reward === undefined ? -1 : height, slice: writtenIn });
  }

  /** Block records whose time has come; before an outage all whose reward would go by unseen. */
  #blocksToWrite(slice: number, isBeforeOutage: boolean): JournalRecord[] {
    const isDue = (block: Unwritten) =>
      block.slice <= slice || (isBeforeOutage && block.rewardHeight > this.chain.head);
    const due = this.#unwritten.filter(isDue);
    this.#unwritten = this.#unwritten.filter((block) => !isDue(block));
    this.adopted = this.#unwritten.filter((block) => block.rewardHeight >= 0).length;
    return due.map((block) => block.record);
  }

  /** Miners work in the slice that is open, and the books take their shares in. */
  async work(slice: number, dies: boolean, isBeforeOutage: boolean): Promise<void> {
    const { frontEnd, chain } = this;
    const { work } = this.slices.at(-1) as WorkedSlice;
    const at = { slice, boot: frontEnd.boot, bootId: frontEnd.bootId, nowMillis: chain.nowMillis };
    // Once in a while nobody is there.
    const records = this.draw(100) === 0 ? [] : this.miners.shares(at, work);
    this.shares += records.filter((record) => record.kind === 'share').length;
    await frontEnd.keep([...records, ...this.#blocksToWrite(slice, isBeforeOutage)], dies);
  }

  /** All blocks are settled and credited, all that is due is paid out. */
  async comeToRest(): Promise<void> {
    const { chain, database } = this;
    chain.goOn(chain.head + 3 * MONTH.sliceCuts, await chain.targetAt(chain.head));
    await this.until('payouts', async () => {
      chain.goOn(chain.head + 50, await chain.targetAt(chain.head));
      await this.untilRead();
      const [row] = await database.ask(
        (sql) => sql<{ n: number }[]>`select (select count(*) from accounts where balance >= ${MONTH.payoutMin})::int
          + (select count(*) from payouts where state not in ('finalized', 'void'))::int
          + (select count(*) from compoundings where state not in ('finalized', 'void'))::int as n`,
      );
      return row?.n === 0;
    });
  }
}

/** Which things happen in which slice; what falls into an outage happens after it. */
function planOf<T>(draw: (below: number) => number, things: readonly T[], from: number, to: number) {
  const plan = things.map((thing) => ({ slice: from + draw(to - from), thing })).sort((a, b) => a.slice - b.slice);
  return (slice: number): T | undefined => ((plan[0]?.slice ?? slice + 1) <= slice ? plan.shift()?.thing : undefined);
}

async function play(month: Month): Promise<void> {
  const { draw, frontEnd, instances } = month;
  const strikes = FAULTS.flatMap((fault) => Array.from({ length: STRIKES }, () => fault));
  const lengths = Array.from({ length: OUTAGES }, () => 2 + draw(5));
  const faultIn = planOf(draw, strikes, 3, SLICES - 30);
  const outageIn = planOf(draw, lengths, 20, SLICES - 30);
  instances.start();
  instances.start();
  let isForgotten = false;
  for (let slice = 0; slice < SLICES; ) {
    const outage = outageIn(slice);
    const fault = faultIn(slice);
    const isEarly = draw(2) === 0;
    const strike = async (isNow: boolean) => {
      if (fault !== undefined && isNow) await month.strike(fault);
    };
    month.goOn(slice, isForgotten);
    await Promise.all([strike(isEarly), month.untilRead()]);
    await month.work(slice, fault === 'front end', outage !== undefined);
    await Promise.all([strike(!isEarly), month.until('shares', () => frontEnd.isEmpty)]);
    // The chain goes on without the pool for longer than anybody can replay.
    isForgotten = outage !== undefined;
    slice += outage ?? 1;
  }
  await month.comeToRest();
}

async function expectBooks(month: Month): Promise<void> {
  const { chain, wallet } = month;
  const { sql, url } = month.database;
  // Blocks: each has its fate and its finder.
  const found = [...chain.blocks.values()].filter(
    (block) => block.finder !== undefined && !month.unknown.has(block.id),
  );
  const rows = await sql<{ id: string; state: string; reward: bigint | null; finder: Buffer; worker: string }[]>`select
    encode(b.block_id, 'hex') as id, b.state, b.reward, a.payload as finder, w.name as worker
    from blocks b join accounts a on a.id = b.account_id join workers w on w.id = b.worker_id`;
  const booked = new Map(
    rows.map(({ id, state, reward, finder, worker }) => [
      id,
      { state, reward, finder: finder.toString('hex'), worker },
    ]),
  );
  expect(booked.size).toBe(found.length);
  for (const { id, reward, finder } of found)
    expect(booked.get(id)).toEqual({
      state: reward === undefined ? 'expired' : 'paid',
      reward: reward?.amount ?? null,
      finder: finder?.account,
      worker: finder?.worker,
    });
  expect(rows.filter((row) => row.worker === UNKNOWN_FINDER)).toEqual([]);

  // Credit lists: each account's part of each window.
  const paid = found.flatMap(({ anchor, finder, reward }): PaidBlock[] =>
    reward === undefined || finder === undefined
      ? []
      : [
          {
            slice: Math.floor(anchor / MONTH.sliceCuts),
            service: finder.service,
            finder: finder.account,
            amount: reward.amount,
          },
        ],
  );
  const expected = expectedLists(month.slices, paid);
  const accounts = await sql<
    { id: number; address: string; payload: Buffer; income: bigint; paid: bigint; in_flight: bigint }[]
  >`
    select id, address, payload, balance + in_flight + paid as income, paid, in_flight from accounts`;
  const nameOf = new Map(accounts.map((row) => [row.id, row.payload.toString('hex')]));
  const lists = await sql<
    { service: number; slice: number; reward: bigint; fee: bigint; credits: Buffer }[]
  >`select service,
    slice, reward, fee, credits from credit_lists`;
  expect(lists.length).toBe(expected.size);
  const income = new Map<string, bigint>();
  for (const { service, slice, reward, fee, credits } of lists) {
    const list = expected.get(`${SERVICES[service]}/${slice}`);
    const booked = new Map(unpackCredits(credits).map((row) => [nameOf.get(row.accountId) as string, row.value]));
    expect({ reward, fee, credits: booked }, `list of slice ${slice}`).toEqual(list);
    let credited = 0n;
    for (const [account, atoms] of list?.credits ?? []) {
      credited += atoms;
      income.set(account, (income.get(account) ?? 0n) + atoms);
    }
    expect(credited + fee).toBe(reward);
  }
  for (const row of accounts) expect(row.income, row.address).toBe(income.get(row.payload.toString('hex')) ?? 0n);
  const names = new Set(nameOf.values());
  for (const account of income.keys()) expect(names.has(account), account).toBe(true);

  // Payments: each address has what the books say, once.
  const sent = wallet.paid();
  for (const row of accounts)
    expect([row.paid, row.in_flight], row.address).toEqual([sent.byAddress.get(row.address) ?? 0n, 0n]);
  const [fees] = await sql<
    { fees: bigint }[]
  >`select coalesce(sum(fee), 0)::bigint as fees from payouts where state = 'finalized'`;
  expect(fees?.fees).toBe(sent.fees);
  expect(await sql`select 1 from payouts where needs_person is not null`).toEqual([]);
  const sheet = await balanceSheet(sql);
  expect([sheet.gap, sheet.uncredited]).toEqual([0n, 0n]);
  expect(sheet.rewards).toBe(paid.reduce((sum, block) => sum + block.amount, 0n));
  // What a pool writes at its first start: the audit takes from it whose books these are.
  await sql`insert into settings values ('pool_address', ${formatAddress(poolAddress, 'development')})`;
  expect(await runToEnd('svc-pool', ['audit', '--database', url])).toMatch(/every atom/);

  // And it was not a quiet month.
  const expired = found.filter((block) => block.reward === undefined).length;
  const [term] = await sql<{ number: bigint }[]>`select number from term`;
  for (const fault of FAULTS) expect(month.struck.get(fault) ?? 0, fault).toBe(STRIKES);
  for (const happened of [paid.length, expired, month.adopted, wallet.lost, sent.payments])
    expect(happened).toBeGreaterThan(0);
  console.log(
    `a month of ${month.slices.length} slices and ${chain.head} cuts: ${accounts.length} accounts, ${month.shares} shares, ${paid.length} blocks paid (${month.adopted} that no journal named), ${expired} expired, ${lists.length} credit lists, ${sent.payments} payments, ${wallet.lost} lost answers, ${term?.number} terms, ${FAULTS.length * STRIKES} faults, ${OUTAGES} outages`,
  );
}

test(
  'a month of joining, leaving, hopping and dying, and every atom is where it belongs',
  lasts(120, 'it is a month of a pool'),
  async () => {
    const database = new MonthDatabase(temporaryDirectory());
    onTestFinished(() => database.close());
    await database.start();
    const frontEnd = await MonthFrontEnd.open(temporaryDirectory(), (boots) => positionsOf(database.sql)(boots));
    onTestFinished(() => frontEnd.close());
    const month = new Month(database, frontEnd);
    onTestFinished(() => month.instances.close());
    try {
      await play(month);
      await month.instances.close();
      await expectBooks(month);
    } catch (error) {
      console.error(
        `SVC_TEST_SEED=${seed}, at slice ${month.slices.at(-1)?.number}, instances said:\n${month.instances.complaints}`,
      );
      throw error;
    }
  },
);

/**
 * The accountant is behind: the database was away, the pool was restarted, its node stood still. A share's slice follows from when
 * the share was done, not from when it is read (books rule 2): nobody is paid for a block with work that was done after it was found.
 */
import { expect, test } from 'vitest';
import { Accountant } from '../../pool/accountant/accountant.ts';
import { audit } from '../../pool/audit/audit.ts';
import { unpackWork } from '../../pool/books/packed.ts';
import type { Sql } from '../../pool/database/connect.ts';
import type { JournalEntry } from '../../pool/journal/journal.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { databaseServer } from '../pool/database-fixture.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { cut, ToldChain, TOLD_TARGET as target } from '../pool/told-chain.ts';

const server = databaseServer();
const START = Date.UTC(2026, 2, 10);
const SLICE_CUTS = 10;
const account = (i: number) => Uint8Array.of(0, ...pattern(`late/${i}`, 48));
const POOL = account(99);

/** A front end's journal. */
function journal(boot: string) {
  let sequence = 0;
  const entry = (record: JournalRecord): JournalEntry => ({
    bootId: boot,
    sequence: sequence++,
    record: encodeRecord(record),
  });
  const common = { service: 'pplns', worker: 'rig', atMillis: START } as const;
  return {
    share: (who: number, anchor: number | null, work = 100n) =>
      entry({
        ...common,
        kind: 'share',
        account: account(who),
        work,
        identity: anchor === null ? null : freshIdentity(anchor),
      }),
    block: (who: number, anchorHeight: number, blockId: Uint8Array<ArrayBuffer>) =>
      entry({
        ...common,
        kind: 'block',
        account: account(who),
        blockId,
        anchorHeight,
        target,
        extranonce: new Uint8Array(1),
      }),
  };
}

async function bed() {
  const { sql } = await server.fresh();
  const chain = new ToldChain(POOL);
  const logged: string[] = [];
  const sink = { write: (line: string) => void logged.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('test', { filter: readLevelFilter('warn'), format: 'text' }, { sink, now: Date.now });
  const options = {
    sliceCuts: SLICE_CUTS,
    windowThousandths: 1000n,
    services: [0, 1],
    feePpm: new Map(),
    network: NETWORKS.development,
    poolAddress: POOL,
    term: 0n,
  };
  /** A term of its own: what the one before knew is in the books or nowhere. */
  const open = async () => {
    const accountant = new Accountant(options, { sql, chain, log });
    await accountant.start();
    return accountant;
  };
  const follow = async (accountant: Accountant, ...heights: number[]) => {
    chain.items = heights.map((height) => cut(height));
    await accountant.follow(new AbortController().signal);
  };
  return { sql, chain, logged, open, follow };
}

/** Work by miner of each closed slice that has any. */
async function slicesOf(sql: Sql): Promise<Record<number, Record<number, number>>> {
  const accounts = await sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts`;
  const who = new Map(
    accounts.map(({ id, payload }) => [id, [1, 2, 3].find((i) => payload.equals(account(i))) as number]),
  );
  const rows = await sql<{ number: number; leaves: Buffer }[]>`select number, leaves from slices
    where service = 0 and closed_height is not null and total > 0 order by number`;
  return Object.fromEntries(
    rows.map(({ number, leaves }) => [
      number,
      Object.fromEntries(unpackWork(leaves).map(({ accountId, value }) => [who.get(accountId), Number(value)])),
    ]),
  );
}

const endsOf = async (sql: Sql, boot: string) =>
  [
    ...(await sql<{ slice: number; through: number }[]>`select slice, through::int from slice_ends
      where boot_id = ${Buffer.from(boot, 'hex')} order by slice`),
  ].map(({ slice, through }) => [slice, through]);

const BOOT = 'aa'.repeat(8);

test('work done after a block was found is not in its window, however late the accountant reads it', async () => {
  const { sql, chain, open, follow } = await bed();
  await open();
  // The accountant is away. Miner 1 works in slice 0; a block is found in slice 1; miner 2 comes after that.
  const { share, block } = journal(BOOT);
  const blockId = pattern('late/block', 48);
  const entries = [share(1, 3), share(1, 9), block(1, 12, blockId), share(2, 14, 700n), share(2, 25, 900n)];
  chain.pay(blockId, 12, 1000n);
  chain.head = 60;
  const accountant = await open();
  await accountant.takeIn(entries);
  await follow(accountant, 60, 108, 140);
  const balances = await sql<{ payload: Buffer; balance: bigint }[]>`select payload, balance from accounts`;
  const balanceOf = (who: number) => balances.find(({ payload }) => payload.equals(account(who)))?.balance;
  expect([balanceOf(1), balanceOf(2)]).toEqual([1000n, 0n]);
  expect(await slicesOf(sql)).toEqual({ 0: { 1: 200 }, 1: { 2: 700 }, 2: { 2: 900 } });
  expect(await endsOf(sql, BOOT)).toEqual([
    [0, 2],
    [1, 3],
    [2, 4],
  ]);
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

test('a journal that comes after its slice closed counts in the open one, and slices of a journal never go back', async () => {
  const { sql, chain, open, follow } = await bed();
  const first = await open();
  const { share } = journal(BOOT);
  const other = journal('bb'.repeat(8));
  await first.takeIn([share(1, 5)]);
  await follow(first, 12);
  // Of slice 0, and read in slice 1: late. Then one of slice 2, before the chain is there, and one more of slice 1 that was on its way.
  await first.takeIn([share(1, 9, 7n), share(1, 21, 11n), share(2, 19, 13n)]);
  // Another term: the journal's position is in the books.
  const second = await open();
  await second.takeIn([share(2, 18, 17n), other.share(3, 18, 19n), share(3, null, 23n)]);
  chain.head = 40;
  await follow(second, 20, 30, 40);
  expect(await slicesOf(sql)).toEqual({ 0: { 1: 100 }, 1: { 1: 7, 3: 19 }, 2: { 1: 11, 2: 30, 3: 23 } });
  expect(await endsOf(sql, BOOT)).toEqual([
    [0, 0],
    [1, 1],
    [2, 5],
  ]);
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

test('shares wait for a node that is away, and one that lies to a front end does not keep its work out of the books', async () => {
  const { sql, chain, logged, open, follow } = await bed();
  const accountant = await open();
  const { share } = journal(BOOT);
  const far = share(1, 35);
  chain.headHeight = async () => {
    throw new Error('away');
  };
  await expect(accountant.takeIn([far])).rejects.toThrow('away');
  chain.headHeight = async () => 33;
  await accountant.takeIn([far, share(1, Number.MAX_SAFE_INTEGER, 7n), share(2, 36, 11n)]);
  await accountant.takeIn([share(2, 1_000_000, 13n)]);
  expect(logged.join('')).toContain('far beyond the chain');
  await follow(accountant, 40);
  expect(await slicesOf(sql)).toEqual({ 3: { 1: 107, 2: 24 } });
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
});

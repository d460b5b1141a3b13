/**
 * Receipts as miners live with them: svc-miner's own watch, with its files, at the pool's own API over books in a real PostgreSQL. A pool that books less than it
 * accepted is noticed in the first slice, and the evidence convinces everybody who has the pool's key. An honest pool is never accused, whichever front end or miner ends.
 * With real programs that are killed: honesty.deep.slow.test.ts.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PoolBooks } from '../../miner/books/pool-books.ts';
import { fetchFromNode } from '../../miner/client/transport-node.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { type VerifyEvidenceValues, verifyEvidence } from '../../pool/evidence/verify-evidence.ts';
import { openPoolKey, type PoolKey } from '../../pool/receipts/pool-key.ts';
import { formatAddress } from '../../protocol/address.ts';
import { poolKeyName } from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ApiBed } from '../api/api-bed.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { openPoolApiBed } from './api-bed.ts';
import { account, SLICE_CUTS } from './books-bed.ts';
import { freshIdentity } from './fresh-identity.ts';
import { type FrontEnd, openFrontEnd, openReceipts, type ReceiptsBed } from './receipts-bed.ts';

const addressOf = (miner: string): string => formatAddress(account(miner), 'development');

type Pool = { readonly bed: ReceiptsBed; readonly ends: FrontEnd[]; readonly key: PoolKey; readonly api: string };

/** The books of the bed have two slices; the third is open. */
const FIRST_SLICE = 2;

async function openPool(boots: readonly number[]): Promise<Pool> {
  const { books, web, close } = await openPoolApiBed();
  onTestFinished(close);
  const path = join(temporaryDirectory(), 'pool.key');
  const key = (await openPoolKey(path, {
    sql: books.sql,
    log: quietLog,
    claimed: Promise.resolve(undefined),
  })) as PoolKey;
  const ends: FrontEnd[] = [];
  for (const boot of boots) ends.push(await openFrontEnd(ends[0]?.directory, boot));
  const bed = await openReceipts(key, ends, books);
  await bed.look();
  return { bed, ends, key, api: `http://127.0.0.1:${web.address.port}/p` };
}

/** The open slice closes, and each front end that lives gives its receipts. */
async function close({ bed }: Pool, slice: number): Promise<void> {
  await bed.books.height((slice + 1) * SLICE_CUTS);
  await bed.look();
  await bed.maker.round();
}

class Miner {
  readonly #pool: Pool;
  readonly #name: string;
  readonly #worker: string;
  readonly #watches: 'worker' | 'address';
  readonly dataDir = temporaryDirectory();
  readonly alarms: string[] = [];
  answers = 0;
  books: PoolBooks;

  constructor(pool: Pool, name: string, worker = 'rig', watches: 'worker' | 'address' = 'worker') {
    this.#pool = pool;
    this.#name = name;
    this.#worker = worker;
    this.#watches = watches;
    this.books = this.#start();
  }

  #start(): PoolBooks {
    const fetch = fetchFromNode({ pins: [] });
    const books = new PoolBooks(
      {
        dataDir: this.dataDir,
        network: 'development',
        pools: ['pool'],
        address: addressOf(this.#name),
        worker: this.#worker,
        watches: this.#watches,
        api: this.#pool.api,
        poolKey: undefined,
        payoutThreshold: undefined,
        nodeApi: undefined,
      },
      {
        note: (_level, message, { alarm }) => void (alarm === undefined || this.alarms.push(message)),
        now: () => performance.now(),
        wall: Date.now,
        random: () => 1,
        fetch: async (...asked) => {
          const answer = await fetch(...asked);
          this.answers++;
          return answer;
        },
      },
    );
    onTestFinished(() => books.stop());
    books.of(0)?.offered({ key: this.#pool.key.publicKey, api: this.#pool.api });
    return books;
  }

  /** What is accepted counts from the pool's first answer on. */
  async begun(): Promise<this> {
    const before = this.answers;
    await until(() => this.answers > before);
    return this;
  }

  async startAgain(): Promise<void> {
    await this.books.stop();
    this.books = this.#start();
  }

  /** A share of it is on record at a front end, and is answered. */
  async share(end: FrontEnd, work: bigint, worker = this.#worker): Promise<void> {
    const share = { service: 'pplns', account: account(this.#name), worker, work } as const;
    await end.write([{ kind: 'share', ...share, atMillis: Date.now(), identity: freshIdentity() }]);
    this.books.of(0)?.told(end.bootId, work, 'pplns');
  }

  /** Asks until it has compared a slice. */
  readTo(slice: number): Promise<unknown> {
    return until(() => {
      this.books.check();
      return this.books.figures.newest >= slice && this.books.figures.compared > 0;
    });
  }

  get evidence(): string[] {
    return readdirSync(this.dataDir).filter((name) => name.startsWith('evidence-'));
  }
}

/** The operator keeps back a twentieth of one account's work: between the journals and the books, by the database. */
async function skim(sql: Sql, address: string): Promise<void> {
  await sql.unsafe(`create function skim() returns trigger language plpgsql as $$ begin
      if exists (select 1 from accounts where id = new.account_id and address = '${address}')
      then new.work := greatest(1, floor(new.work * 0.95)); end if;
      return new; end $$`);
  await sql`create trigger skim before insert on open_work for each row execute function skim()`;
}

async function verify(file: string, values: Partial<VerifyEvidenceValues>) {
  const said: string[] = [];
  const terminal = { out: (line: string) => void said.push(line), err: (line: string) => void said.push(line) };
  const all = { poolKey: undefined, poolApi: undefined, nodeApi: undefined, json: false, ...values };
  return { code: await verifyEvidence(file, all, terminal as never), text: said.join('') };
}

test('a pool that drops a twentieth of one miner’s work is convicted by that miner in the first slice, and by nobody else', async () => {
  const pool = await openPool([0xab]);
  const { bed, ends, key, api } = pool;
  const [end] = ends as [FrontEnd];
  await skim(bed.books.sql, addressOf('robbed'));
  const robbed = await new Miner(pool, 'robbed').begun();
  const well = await new Miner(pool, 'well').begun();
  for (const miner of [robbed, well]) for (let i = 0; i < 3; i++) await miner.share(end, 1_000n);
  await bed.take(end);
  await close(pool, FIRST_SLICE);
  await Promise.all([robbed.readTo(FIRST_SLICE), well.readTo(FIRST_SLICE)]);
  await until(() => robbed.alarms.length > 0);
  expect(robbed.alarms).toEqual([expect.stringContaining('THE POOL BOOKED LESS WORK THAN IT SIGNED FOR')]);
  expect([well.alarms, well.evidence]).toEqual([[], []]);

  // A third party has the file, and the key from where it trusts it to be right.
  const file = join(robbed.dataDir, robbed.evidence[0] as string);
  const name = toHex(key.publicKey);
  const convicted = await verify(file, { poolKey: name });
  expect(convicted).toMatchObject({ code: 0 });
  expect(convicted.text).toContain('CONVICTS the pool: it signed for 3000 hashes');
  expect(convicted.text).toContain(`Account ${addressOf('robbed')}, pplns, slice ${FIRST_SLICE}`);
  expect(await verify(file, { poolKey: poolKeyName(key.publicKey), json: true })).toMatchObject({ code: 0 });
  const published = await verify(file, { poolApi: api });
  expect(published.text).toContain('The pool publishes this key.');
  expect(published.text).toContain('The pool publishes this slice as it signed it.');
  const node = await ApiBed.forTest();
  const committed = await verify(file, { poolApi: api, nodeApi: node.base });
  expect(committed).toMatchObject({ code: 0, text: expect.stringContaining('No payout commits these books') });
  expect(await verify(file, { poolKey: '00'.repeat(1952) })).toMatchObject({ code: 1 });
});

test('an honest pool of two instances is accused of nothing: one is killed with shares that nobody took, miners start again, one name is on both', async () => {
  const pool = await openPool([0xa1, 0xb1, 0xa2]);
  const { bed, ends } = pool;
  const [a, b, nextA] = ends as [FrontEnd, FrontEnd, FrontEnd];
  const named: readonly [worker: string, end: FrontEnd][] = [
    ['rig1', a],
    ['rig2', b],
    // The same name twice, on both instances.
    ['rig3', a],
    ['rig3', b],
  ];
  const miners: { readonly miner: Miner; end: FrontEnd }[] = [];
  for (const [worker, end] of named) miners.push({ miner: await new Miner(pool, 'honest', worker).begun(), end });
  const work = async () => {
    for (const { miner, end } of miners) await miner.share(end, 700n);
  };
  // A front end gives no receipts of a slice that has none of its work.
  const readTo = (slice: number, from: readonly FrontEnd[]) =>
    Promise.all(miners.filter(({ end }) => from.includes(end)).map(({ miner }) => miner.readTo(slice)));
  let slice = FIRST_SLICE;
  const closeSlice = async (taken: readonly FrontEnd[]) => {
    for (const end of taken) await bed.take(end, { marked: true });
    await close(pool, slice);
    await readTo(slice++, taken);
  };
  await work();
  await closeSlice([a, b]);

  // One is killed: what it answered last lies in its journal, and the slice closes without it.
  await work();
  await closeSlice([b]);
  for (const each of miners) if (each.end === a) each.end = nextA;
  await miners[0]?.miner.startAgain();
  await work();
  // It started again, and sends what the one before had left.
  await closeSlice([a, b, nextA]);
  await miners[3]?.miner.startAgain();
  await work();
  await closeSlice([b, nextA]);
  await work();
  await closeSlice([b, nextA]);
  for (const { miner } of miners) {
    expect(miner.alarms).toEqual([]);
    expect(miner.evidence).toEqual([]);
    expect(miner.books.figures.alarms).toBe(0);
  }
  // The boot that was killed has its receipts too.
  const rows = await bed.books.sql<{ n: number }[]>`select count(distinct boot_id)::int as n from receipt_sheets`;
  expect(rows[0]?.n).toBe(3);
});

test('a farm is shown the work of all its rigs by one receipt of each sheet; a pool that books less of it is convicted by the proxy', async () => {
  const pool = await openPool([0xab, 0xac]);
  const { bed, ends, api } = pool;
  await skim(bed.books.sql, addressOf('robbed'));
  const farms: Miner[] = [];
  for (const name of ['robbed', 'well']) farms.push(await new Miner(pool, name, '', 'address').begun());
  const [robbed, well] = farms as [Miner, Miner];
  const RIGS = 70;
  const work = async () => {
    for (const farm of farms)
      for (let i = 0; i < RIGS; i++) await farm.share(ends[i % 2] as FrontEnd, 1_000n, `rig-${i}`);
  };
  await work();
  for (const end of ends) await bed.take(end);
  await bed.books.height((FIRST_SLICE + 1) * SLICE_CUTS);
  await bed.look();
  // In the next slice.
  await work();
  await bed.maker.round();

  type Sheets = {
    slices: { sheets: { account_open?: string; receipts: Record<'open' | 'account_work', string>[] }[] }[];
  };
  const sheets = async (query: string) => {
    const answer = await fetch(`${api}/api/v1/miners/${addressOf('well')}/receipt-sheets?${query}`);
    return ((await answer.json()) as Sheets).slices.flatMap((slice) => slice.sheets);
  };
  const whole = await sheets('of=account');
  expect(whole.map(({ account_open: open, receipts }) => [open, receipts.map((each) => each.account_work)])).toEqual([
    ['35000', ['35000']],
    ['35000', ['35000']],
  ]);
  const each = (await sheets('')).map(({ receipts }) => receipts.reduce((sum, { open }) => sum + Number(open), 0));
  expect(each).toEqual([35_000, 35_000]);

  await Promise.all(farms.map((farm) => farm.readTo(FIRST_SLICE)));
  await until(() => robbed.alarms.length > 0);
  expect(robbed.alarms).toEqual([expect.stringContaining('THE POOL BOOKED LESS WORK THAN IT SIGNED FOR')]);
  expect(well.alarms).toEqual([]);
  const convicted = await verify(join(robbed.dataDir, robbed.evidence[0] as string), { poolApi: api });
  expect(convicted.text).toContain('CONVICTS the pool: it signed for 70000 hashes');
});

/**
 * At the deep level: receipts, as miners live with them: svc-miner, svc-pool, PostgreSQL and Redis as processes. A pool that books less than it accepted is noticed by the
 * miner within a slice, and its evidence convinces everybody who has the pool's key. An honest pool is never accused, whatever is killed.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { poolKeyName } from '../../protocol/books/receipt.ts';
import { fromHex } from '../../protocol/bytes.ts';
import type { Evidence } from '../../protocol/evidence/receipt-evidence.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { Program } from '../bridge/program.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { count } from '../level.ts';
import { MAIN, RunningMiner } from '../miner/running-miner.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { Fleet, type Instance } from './fleet.ts';

/** Slices of three seconds. Miners of a twentieth of one core find some ten shares a second, and all of them a block. */
const CHAIN = { blockWork: 80_000, cutMillis: 250 };

/** What is waited for comes in seconds; a busy machine may take minutes. */

const SHORT_WAITS = new URL('./short-waits-preload.mjs', import.meta.url).href;

type Books = { compared_slices: number; newest_slice: number; alarms: number };

class Miner {
  readonly dataDir: string;
  readonly #words: readonly string[];
  running: RunningMiner;

  constructor(urls: readonly string[], api: string, user: string, more: readonly string[] = []) {
    this.dataDir = temporaryDirectory();
    this.#words = [
      ...urls.flatMap((url) => ['-o', url]),
      '-u',
      user,
      '-p',
      'd=2000',
      '--no-gpu',
      '--cpu-threads',
      '1',
      '--throttle',
      '5',
      '--data-dir',
      this.dataDir,
      '--pool-api',
      api,
      '--api-bind',
      '127.0.0.1:0',
      '--metrics-bind',
      'off',
      ...more,
    ];
    this.running = this.#start();
  }

  #start(): RunningMiner {
    return new RunningMiner(this.#words, { program: [process.execPath, '--import', SHORT_WAITS, MAIN] });
  }

  async books(): Promise<Books> {
    const api = await this.running.addressOf('api');
    const stats = (await (await fetch(`${api}/v1/stats`)).json()) as { books: Books };
    return stats.books;
  }

  async killAndStart(): Promise<void> {
    this.running.child.kill('SIGKILL');
    await this.running.ended();
    this.running = this.#start();
  }

  get said(): string {
    return `${this.running.out}\n${this.running.err}`;
  }

  get evidence(): string[] {
    return readdirSync(this.dataDir)
      .filter((name) => name.startsWith('evidence-'))
      .map((name) => join(this.dataDir, name));
  }
}

const stratum = (instance: Instance, version: 1 | 2 = 1): string =>
  `stratum${version === 2 ? '2' : ''}+tcp://127.0.0.1:${instance.ports.pplns}`;

async function verify(...words: string[]): Promise<{ code: number; text: string }> {
  const program = new Program('svc-pool', ['verify-evidence', ...words]);
  const code = (await program.exited) ?? -1;
  return { code, text: program.output };
}

/** The operator keeps back a twentieth of one account's work: between the journals and the books, by the database. */
async function skim(sql: Sql, address: string): Promise<void> {
  await sql.unsafe(`create function skim() returns trigger language plpgsql as $$ begin
      if exists (select 1 from accounts where id = new.account_id and address = '${address}')
      then new.work := greatest(1, floor(new.work * 0.95)); end if;
      return new; end $$`);
  await sql`create trigger skim before insert on open_work for each row execute function skim()`;
}

test('a pool that drops a twentieth of one miner’s work is convicted by that miner, and by nobody else', async () => {
  const fleet = await Fleet.start(CHAIN);
  const pool = await fleet.add('a');
  const [victim, other] = [addressOf(1), addressOf(2)];
  await skim(fleet.books(), victim);
  const ledger = ['--node-api', fleet.api];
  const robbed = new Miner([stratum(pool)], pool.web, `${victim}.rig1`, ledger);
  const well = new Miner([stratum(pool, 2)], pool.web, `${other}.rig1`, ledger);
  await robbed.running.says(/THE POOL BOOKED LESS WORK THAN IT SIGNED FOR/);
  // It was the first slice that could be compared: nothing before it passed as good.
  const [file] = robbed.evidence as [string];
  const evidence = JSON.parse(readFileSync(file, 'utf8')) as Evidence;
  const before = await robbed.books();
  expect(before.alarms).toBeGreaterThan(0);
  await until(async () => (await well.books()).compared_slices >= 2);
  expect(well.evidence).toEqual([]);
  expect(well.said).not.toContain('alarm=');
  // A third party has the file, and the key from where it trusts it to be right.
  const terms = (await (await fetch(`${pool.web}/api/v1/terms`)).json()) as { pool_key: string };
  const convicted = await verify(file, '--pool-key', terms.pool_key);
  expect(convicted).toMatchObject({ code: 0 });
  expect(convicted.text).toMatch(/CONVICTS the pool: it signed for \d+ hashes/);
  expect(await verify(file, '--pool-key', poolKeyName(fromHex(terms.pool_key)), '--json')).toMatchObject({ code: 0 });
  const published = await verify(file, '--pool-api', pool.web);
  expect(published.text).toContain('The pool publishes this key.');
  expect(published.text).toContain('The pool publishes this slice as it signed it.');
  const committed = await verify(file, '--pool-api', pool.web, '--node-api', fleet.api);
  expect(committed).toMatchObject({ code: 0 });
  expect(committed.text).toMatch(
    /The payout [0-9a-f]{96} at height \d+ commits these books|No payout commits these books/,
  );
  expect(await verify(file, '--pool-key', '00'.repeat(1952))).toMatchObject({ code: 1 });
  const [receipt] = evidence.receipts;
  expect(receipt).toMatchObject({ address: victim, worker: 'rig1' });
  // And it goes on mining.
  expect(robbed.running.exit).toBeUndefined();
});

test('an honest pool of two instances is accused of nothing: kill -9 of pools and miners, reconnects, both wires', async () => {
  const fleet = await Fleet.start(CHAIN);
  const [pplns, web] = (await freePorts(2)) as [number, number];
  const fixed = { pplns, web };
  let first = await fleet.add('a', fixed);
  mkdirSync(join(fleet.directory, 'b'), { recursive: true });
  copyFileSync(join(fleet.directory, 'a', 'pool.key'), join(fleet.directory, 'b', 'pool.key'));
  const second = await fleet.add('b');
  const user = `${addressOf(1)}.rig`;
  const ledger = ['--node-api', fleet.api];
  const miners = [
    new Miner([stratum(first)], second.web, `${user}1`, ledger),
    new Miner([stratum(first, 2), stratum(second, 2)], second.web, `${user}2`, ledger),
    // The same name twice, on both instances.
    new Miner([stratum(second, 2)], second.web, `${user}3`),
    new Miner([stratum(first)], second.web, `${user}3`),
  ];
  const comparedBy = (least: number) =>
    until(
      async () => {
        for (const miner of miners) if ((await miner.books()).compared_slices < least) return false;
        return true;
      },
      { why: () => miners.map((miner) => miner.said).join('\n') },
    );
  await comparedBy(1);
  for (let round = 0; round < count({ quick: 1, full: 1, deep: 6 }); round++) {
    await first.program.stop('SIGKILL');
    await sleep(1_500);
    first = await fleet.add('a', fixed);
    await miners[round % miners.length]?.killAndStart();
    await sleep(2_000);
  }
  const newest = Math.max(
    ...(await Promise.all(miners.map((miner) => miner.books()))).map((books) => books.newest_slice),
  );
  await until(
    async () => {
      for (const miner of miners) if ((await miner.books()).newest_slice < newest + 2) return false;
      return true;
    },
    { why: () => miners.map((miner) => miner.said).join('\n') },
  );
  for (const miner of miners) {
    expect(miner.said).not.toContain('alarm=');
    expect(miner.evidence).toEqual([]);
    expect((await miner.books()).alarms).toBe(0);
  }
  // The boot that was killed has its receipts from the next start, at every instance.
  const sql = fleet.books();
  const boots = async () =>
    (await sql<{ n: number }[]>`select count(distinct boot_id)::int as n from receipt_sheets`)[0]?.n;
  await expect.poll(boots).toBeGreaterThanOrEqual(3);
});

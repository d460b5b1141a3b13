/**
 * kill -9 of real, separate processes under load: pool, its PostgreSQL, wallet and node, in random order. Afterwards every
 * share that was answered `accepted` is in the books exactly once, every reward on the chain has its finder, and every
 * miner has on the chain what the books say it was paid.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { chainOfApi } from '../../pool/accountant/chain.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import type { Sql } from '../../pool/database/connect.ts';
import type { Service } from '../../pool/journal/journal-record.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { runToEnd } from '../../stack/process.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { lasts } from '../watch/limits.ts';
import { KillableStack, VICTIMS, type Victim } from './killable.ts';
import { bookedShares } from './rig.ts';

const SHARE_WORK = 4n;
/** Some shares a second of each rig: what dies is under load, and the processor is not. */
const REST_MILLIS = 120;

/** What one connection was answered. A share in flight when the connection broke may or may not be in the books. */
type Life = { service: Service; account: number; worker: string; accepted: number; work: bigint; unanswered: bigint };

/** A miner that connects again for as long as it is wanted, under a new worker name each time. */
class Rig {
  readonly lives: Life[] = [];
  readonly done: Promise<void>;
  #wanted = true;

  constructor(service: Service, account: number, port: () => number) {
    this.done = this.#run(service, account, port);
  }

  async #run(service: Service, account: number, port: () => number): Promise<void> {
    while (this.#wanted) {
      const worker = `life-${this.lives.length}`;
      const life: Life = { service, account, worker, accepted: 0, work: 0n, unanswered: 0n };
      const client = await V1Client.open(port()).catch(() => undefined);
      if (client === undefined) {
        await sleep(100);
        continue;
      }
      this.lives.push(life);
      await Promise.race([this.#mine(client, life).catch(() => undefined), client.closed]);
      client.close();
      await sleep(50);
    }
  }

  async #mine(client: V1Client, life: Life): Promise<void> {
    await client.login(`${addressOf(life.account)}.${life.worker}`, `d=${SHARE_WORK}`);
    let from = 0n;
    while (this.#wanted) {
      const job = client.jobs.at(-1) as (typeof client.jobs)[number];
      const { nonce, next } = mine(job, client.prefix, from);
      from = next;
      life.unanswered = workOfTarget(job.shareTarget);
      const code = await client.submitCode(job.jobId, nonce);
      if (code === 0) {
        life.accepted++;
        life.work += life.unanswered;
      }
      life.unanswered = 0n;
      await sleep(REST_MILLIS);
    }
  }

  async stop(): Promise<void> {
    this.#wanted = false;
    await this.done;
  }
}

/** Each once, then at random. */
function* victims(rounds: number): Generator<Victim> {
  const draw = randomOf(seed);
  const once = [...VICTIMS];
  for (let i = 0; i < rounds; i++)
    yield once.length > 0 ? (once.splice(draw(once.length), 1)[0] as Victim) : (VICTIMS[draw(4)] as Victim);
}

type Row = { n: number };
const number = async (rows: Promise<Row[]>) => ((await rows)[0] as Row).n;

/** All shares taken, all blocks settled and credited, all balances paid. */
async function quiet(sql: Sql): Promise<boolean> {
  const open = sql<Row[]>`select (select count(*) from blocks where state <> 'expired' and credit_list is null)::int
    + (select count(*) from payouts where state not in ('finalized', 'void'))::int
    + (select count(*) from accounts where balance >= 1000000)::int as n`;
  return (await number(open)) === 0;
}

async function expectShares(sql: Sql, lives: readonly Life[]): Promise<void> {
  const books = await bookedShares(sql);
  for (const life of lives) {
    const row = books.get(`${addressOf(life.account)}/${life.service}/${life.worker}`);
    const isLastKept = row !== undefined && row.accepted === life.accepted + 1 && life.unanswered > 0n;
    expect(row?.accepted ?? 0, life.worker).toBe(life.accepted + (isLastKept ? 1 : 0));
    expect(BigInt(row?.work ?? 0), life.worker).toBe(life.work + (isLastKept ? life.unanswered : 0n));
  }
  expect(books.size).toBeLessThanOrEqual(lives.length);
  expect(await number(sql`select (count(*) - count(distinct (boot_id, sequence)))::int as n from shares`)).toBe(0);
}

/** Every reward that the chain paid the pool, by block. */
async function rewardsOfPool(api: string, address: string): Promise<Map<string, bigint>> {
  const client = createApiClient({ baseUrl: api, attempts: 3, timeoutMillis: 60_000 }, apiClientDependencies());
  const chain = chainOfApi(client, apiClientDependencies());
  const head = await chain.headHeight();
  const rewards = new Map<string, bigint>();
  for await (const item of chain.cuts(0, AbortSignal.timeout(240_000))) {
    if (item.type === 'missed') throw new Error('the node forgot the first cuts');
    for (const reward of item.data.rewards)
      if ((await chain.block(reward.block_id))?.payout === address) rewards.set(reward.block_id, BigInt(reward.amount));
    if (item.data.cut.height >= head) break;
  }
  return rewards;
}

async function expectMoney(sql: Sql, api: string, rigs: readonly number[]): Promise<void> {
  expect((await balanceSheet(sql)).gap).toBe(0n);
  const [pool] = await sql<{ value: string }[]>`select value from settings where name = 'pool_address'`;
  type Block = { id: string; reward: bigint; worker: string };
  const blocks = await sql<Block[]>`select encode(b.block_id, 'hex') as id, b.reward, w.name as worker
    from blocks b join workers w on w.id = b.worker_id where b.state = 'paid'`;
  const onChain = await rewardsOfPool(api, pool?.value as string);
  expect(new Map(blocks.map((block) => [block.id, block.reward]))).toEqual(onChain);
  expect(blocks.length).toBeGreaterThan(0);
  for (const block of blocks) expect(block.worker).toMatch(/^life-\d+$/);
  for (const account of rigs) {
    const answer = await fetch(`${api}/v1/address/${addressOf(account)}/balance`);
    const { balance } = (await answer.json()) as { balance: string };
    const [row] = await sql<{ paid: bigint }[]>`select paid from accounts where address = ${addressOf(account)}`;
    expect(BigInt(balance)).toBe(row?.paid ?? 0n);
  }
  expect(await number(sql`select count(*)::int as n from payouts where state = 'finalized'`)).toBeGreaterThan(0);
  expect(await number(sql`select count(*)::int as n from payouts where needs_person is not null`)).toBe(0);
}

test(
  'whatever is killed, nothing answered is lost, nothing is paid twice and every reward has its finder',
  lasts(180, 'it ends programs many times, and waits for them to come back'),
  async () => {
    const stack = new KillableStack();
    await stack.start();
    const rigs = [
      new Rig('pplns', 1, () => stack.ports.pplns),
      new Rig('pplns', 2, () => stack.ports.pplns),
      new Rig('solo', 3, () => stack.ports.solo),
    ];
    const accepted = () => rigs.flatMap((rig) => rig.lives).reduce((sum, life) => sum + life.accepted, 0);
    for (const victim of victims(count({ full: 4, deep: 60 }))) {
      const before = accepted();
      await expect.poll(() => accepted() - before).toBeGreaterThan(10);
      await stack.kill(victim);
    }
    const before = accepted();
    await expect.poll(() => accepted() - before).toBeGreaterThan(10);
    for (const rig of rigs) await rig.stop();

    // Payouts are carried by blocks; from here on they are somebody else's, so that the pool's books come to rest.
    const bridge = await stack.startBridge();
    const other = new Rig('solo', 4, () => bridge);
    const lives = rigs.flatMap((rig) => rig.lives);
    const sql = stack.books();
    await expect.poll(() => quiet(sql), { interval: 100 }).toBe(true);
    await other.stop();
    await expectShares(sql, lives);
    await expectMoney(sql, stack.api, [1, 2, 3]);
    await sql.end({ timeout: 1 });
    expect(await stack.stopPool()).toBe(0);
    expect(await runToEnd('svc-pool', ['audit', '--data-dir', stack.poolDirectory])).toMatch(/every atom/);
  },
);

/**
 * Anyone can log in, and a login costs nothing: it must leave nothing behind. What a connection owns is written with its first
 * accepted share or block. A block that is the first share of its connection is the hard case: its finder is on record
 * before a node hears of it, so kill -9 at that moment costs the finder nothing. Pools, Redis, PostgreSQL, node and
 * wallet are real and processes of their own; the instance that is killed is not the one that keeps the books.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { toHex } from '../../protocol/bytes.ts';
import { blockId, decodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { runToEnd } from '../../stack/process.ts';
import { addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { count } from '../level.ts';
import { Fleet } from '../pool/fleet.ts';

const BLOCK_WORK = 32;
const LOGINS = count({ full: 200, deep: 20_000 });
const FINDER = 4_000_000;

/** A nonce whose hash is a block, and the block's name. */
function findBlock(job: Job, prefix: Uint8Array) {
  const { nonce } = mine(job, prefix, 0n, targetToBytes(decodeHeader(job.header).target));
  const header = Uint8Array.from(job.header);
  header.set(nonce, NONCE_OFFSET);
  return { nonce, id: toHex(blockId(header)) };
}

test("logins leave no row; a block that is a first share is its finder's, also after kill -9", async () => {
  const fleet = await Fleet.start({ blockWork: BLOCK_WORK, cutMillis: 100 });
  await fleet.add('keeps-the-books');
  const front = await fleet.add('front');
  const login = async (number: number) => {
    const Client = number % 2 === 0 ? V1Client : V2Client;
    const client = await Client.open(number % 3 === 0 ? front.ports.solo : front.ports.pplns);
    await client.login(`${addressOf(number)}.stranger-${number}`, '');
    expect(client.jobs.length).toBeGreaterThan(0);
    client.close();
  };
  for (let next = 0; next < LOGINS; next += 20)
    await Promise.all(Array.from({ length: 20 }, (_, i) => login(next + i)));

  const finder = await V1Client.open(front.ports.solo);
  await finder.login(`${addressOf(FINDER)}.first`, `d=${BLOCK_WORK}`);
  // A template is good for minutes: what counts is that nothing was sent before.
  const job = finder.jobs.at(-1) as Job;
  const { nonce, id } = findBlock(job, finder.prefix);
  finder.send({ method: 'mining.submit', params: { jobId: job.jobId, nonce } });
  while ((await fetch(`${fleet.api}/v1/blocks/${id}`)).status !== 200) await sleep(2);
  await front.program.stop('SIGKILL');

  const sql = fleet.books();
  await fleet.add('front');
  type Block = { id: string; worker: string; address: string; state: string; credited: boolean };
  const blocks = () => sql<Block[]>`select encode(b.block_id, 'hex') as id, w.name as worker, a.address, b.state,
      b.credit_list is not null as credited
    from blocks b join workers w on w.id = b.worker_id join accounts a on a.id = b.account_id`;
  const address = addressOf(FINDER);
  await expect
    .poll(async () => (await blocks()).map((block) => ({ ...block })))
    .toEqual([{ id, worker: 'first', address, state: 'paid', credited: true }]);
  // A payout may be under way already.
  const [owed] = await sql<{ sum: string }[]>`select (balance + in_flight + paid)::text as sum from accounts
    where address = ${address}`;
  expect(Number(owed?.sum)).toBeGreaterThan(0);
  const rows = async (table: string) =>
    (await sql<{ n: number }[]>`select count(*)::int as n from ${sql(table)}`)[0]?.n ?? 0;
  expect({
    accounts: await rows('accounts'),
    workers: await rows('workers'),
    ownerships: await rows('ownerships'),
  }).toEqual({ accounts: 1, workers: 1, ownerships: 1 });
  const audited = ['audit', '--database', fleet.postgres.url, '--node-api', fleet.api];
  expect(await runToEnd('svc-pool', audited)).toMatch(/every atom/);
});

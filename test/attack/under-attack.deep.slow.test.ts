/**
 * A whole pool under attack while everybody who checks it looks on: strangers invent workers of a miner's address, workers
 * and accounts of their own, and thousands of them fall silent at once, which is news for the miner. The miner is a real
 * svc-miner that watches the books; `svc-pool audit`, `audit --public` and the page's checker run again and again. Nobody
 * accuses the pool, every payment is made, and the miner is told of each, and of its own silent rig. The attackers
 * are a process of their own. Five seconds; at the deep level ten minutes (SVC_TEST_ATTACK_SECONDS says how many).
 */
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import { formatAddress } from '../../protocol/address.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type AddressProofRequest, addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { count, seed } from '../level.ts';
import { MAIN, RunningMiner } from '../miner/running-miner.ts';
import { key, keyed } from '../pool/api-bed.ts';
import { KillableStack } from '../pool/killable.ts';
import { svcPool } from '../pool/svc-pool.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import type { AttackReport, AttackTask } from './attackers-process.ts';
import { mineAs, type Sent } from './invented-work.ts';

const SECONDS = Number(process.env.SVC_TEST_ATTACK_SECONDS ?? count({ full: 5, deep: 600 }));
/** A slice has twelve cuts. A miner keeps up with slices of 15 seconds and more; shorter ones are reported after ten minutes. */
const CUT_MILLIS = SECONDS >= 300 ? 1_500 : 150;
const SILENT = SECONDS >= 300 ? '30s' : '5s';
const BLOCK_WORK = 40_000;
/** Work of an honest share: a name has to do an eighth of it to have figures of its own. */
const HONEST_WORK = 1_000;
const ATTACKERS = 8;
/** As the pool of the test is started: smaller balances are not paid. */
const LEAST_PAID = 1_000_000n;

/** Blocks are found faster here than a webhook is called. */
const NEWS = ['payments', 'workers'];

const victim = formatAddress(keyed, 'development');
const SHORT_WAITS = new URL('../pool/short-waits-preload.mjs', import.meta.url).href;

/** Strangers that invent names, until they are stopped. */
function strangers(task: AttackTask): () => Promise<AttackReport> {
  const attackers = fork(new URL('./attackers-process.ts', import.meta.url), {
    execPath: process.execPath,
    execArgv: [],
  });
  onTestFinished(() => void attackers.kill('SIGKILL'));
  const ended = new Promise<AttackReport>((resolve, reject) => {
    attackers.once('message', (report) => resolve(report as AttackReport));
    attackers.once('exit', (code) => reject(new Error(`the attackers ended with ${code}`)));
  });
  ended.catch(() => undefined);
  attackers.send(task);
  return () => {
    attackers.send('stop');
    return ended;
  };
}

/** What a webhook of the miner gets. */
async function receiver() {
  const got: { readonly kind: string; readonly data: Record<string, unknown> }[] = [];
  const server = createServer(async (request, response) => {
    got.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { got, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

async function setWebhook(web: string, url: string): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${web}/api/v1/miners/${victim}/webhook${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status, await response.clone().text()).toBe(200);
    return response.json();
  };
  const request = (await post('/request', { url, events: NEWS })) as AddressProofRequest;
  const proof = {
    version: 1,
    address: victim,
    challenge: request.challenge,
    public_key: toHex(rawPublicKey(key)),
    signature: toHex(signMessage(key, addressProofMessage(request))),
  };
  await post('', { url, events: NEWS, request, proof });
}

/** As a page reads: it waits as long as it is told to. */
async function read(web: string, path: string): Promise<unknown> {
  for (;;) {
    const response = await fetch(`${web}/api/v1/${path}`);
    if (response.ok) return response.json();
    await response.body?.cancel();
    if (response.status !== 429 && response.status !== 503) throw new Error(`${path}: ${response.status}`);
    await sleep(1_000 * Number(response.headers.get('retry-after') ?? 1));
  }
}

test(
  'under attack nobody who checks the pool accuses it, and no payment and no news of one is missed',
  lasts(SECONDS + 295, 'the attack, and the waits of an audit by anybody'),
  async () => {
    const stack = new KillableStack({
      cutMillis: CUT_MILLIS,
      initialWork: BLOCK_WORK,
      minimumWork: BLOCK_WORK,
      // A webhook gets one message a second: there must be fewer news than that.
      payoutInterval: '5s',
      poolWords: ['--miner-webhooks', 'private', '--silent-after', SILENT],
    });
    await stack.start();
    const sql = stack.books();
    const ledger = ['--node-api', stack.api];
    const dataDir = temporaryDirectory();
    const words = ['-o', `stratum+tcp://127.0.0.1:${stack.ports.pplns}`, '-u', `${victim}.rig1`];
    const miner = new RunningMiner(
      [
        ...words,
        ...['-p', `d=${HONEST_WORK}`, '--no-gpu', '--cpu-threads', '1', '--throttle', '5'],
        ...['--data-dir', dataDir, '--pool-api', stack.web, '--api-bind', '127.0.0.1:0', '--metrics-bind', 'off'],
        ...ledger,
      ],
      { program: [process.execPath, '--import', SHORT_WAITS, MAIN] },
    );
    const minerApi = await miner.addressOf('api');
    const books = async () =>
      ((await (await fetch(`${minerApi}/v1/stats`)).json()) as { books: Record<string, number> }).books;

    // The miner's account, and a rig of it that will fall silent; both have been here for long.
    const own: Sent = { shares: 0, hashes: 0n, work: new Map(), unanswered: new Map() };
    await mineAs(stack.ports.pplns, { who: victim, worker: 'old-rig', work: HONEST_WORK / 4, shares: 2 }, own);
    await until(async () => (await sql`select 1 from workers where name = 'old-rig'`).length > 0);
    await until(async () => (await sql`select 1 from workers where name = 'rig1'`).length > 0);
    await sql`update workers set since = now() - interval '9 days'`;
    const { got, url } = await receiver();
    await setWebhook(stack.web, url);
    await until(() => got.some(({ kind }) => kind === 'webhook_set'));
    // If it was silent for long by now, nobody was told: it comes once more, and falls silent again.
    await mineAs(stack.ports.pplns, { who: victim, worker: 'old-rig', work: HONEST_WORK / 4, shares: 2 }, own);

    let isOver = false;
    const failures: unknown[] = [];
    const began = performance.now();
    const seconds = () => (performance.now() - began) / 1_000;
    const stop = strangers({ port: stack.ports.pplns, victim, attackers: ATTACKERS, honestWork: HONEST_WORK, seed });
    const done = { audits: 0, publicAudits: 0, proofs: 0, proven: 0 };
    const database = stack.database;
    const audits = async () => {
      do {
        const ended = await svcPool('audit', '--database', database, ...ledger);
        expect(ended, `${ended.out}\n${ended.err}`).toMatchObject({ code: 0 });
        done.audits++;
        await sleep(SECONDS * 25);
      } while (!isOver);
    };
    const publicAudits = async () => {
      do {
        const ended = await svcPool('audit', '--public', stack.web, ...ledger, '--json');
        const report = JSON.parse(ended.out) as { verdict: string; differences: number };
        expect(report, ended.out).toMatchObject({ differences: 0, suspicions: [] });
        expect(['holds', 'unchecked']).toContain(report.verdict);
        done.publicAudits++;
      } while (!isOver);
    };
    const node = createApiClient({ baseUrl: stack.api }, apiClientDependencies());
    const pageChecks = async () => {
      const checked = new Set<number>();
      // The first list is due a hundred cuts after its slice: a short attack may be over by then.
      while (!isOver || (done.proofs === 0 && failures.length === 0)) {
        const page = (await read(stack.web, 'slices/pplns?limit=50')) as {
          slices: { slice: number; credits: object | null }[];
        };
        for (const { slice, credits } of page.slices) {
          if (credits === null || checked.has(slice) || failures.length > 0) continue;
          const proof = (await read(stack.web, `proofs/pplns/${slice}?address=${victim}`)) as PoolProof;
          const verdict = judgeProof(
            proof,
            await gatherEvidence(proof, { pool: (path) => read(stack.web, path), node }),
          );
          expect(verdict.verdict).not.toBe('false');
          if (verdict.verdict === 'proven') done.proven++;
          checked.add(slice);
          done.proofs++;
        }
        await sleep(500);
      }
    };
    // Half way, as if all of these workers had been kept for two days: now their silence is news.
    const silence = async () => {
      while (!isOver && seconds() < SECONDS / 2) await sleep(100);
      await sql`update workers set since = now() - interval '2 days' where name not in ('rig1', 'old-rig')`;
    };
    const clock = async () => {
      while (!isOver && seconds() < SECONDS) await sleep(100);
      isOver = true;
      return stop();
    };
    const attack = clock();
    await Promise.all(
      [audits(), publicAudits(), pageChecks(), silence()].map((work) =>
        work.catch((error: unknown) => {
          isOver = true;
          failures.push(error);
        }),
      ),
    );
    const sent = await attack;
    expect(failures).toEqual([]);

    // Every accepted share is in the books of its account.
    const booked = async (who: string) =>
      (
        await sql<{ work: string }[]>`select coalesce(sum(s.work), 0)::text as work from shares s
        join accounts a on a.id = s.account_id where a.address = ${who}`
      )[0]?.work;
    const unanswered = new Map(sent.unanswered);
    for (const [who, accepted] of sent.work)
      if (who !== victim) {
        const work = BigInt(accepted);
        const all = await until(async () => {
          const found = BigInt((await booked(who)) ?? 0);
          return found >= work && found;
        });
        expect(all).toBeLessThanOrEqual(work + BigInt(unanswered.get(who) ?? 0));
      }
    // No payment is missed: what is credited is paid, and the miner is told of each.
    type Sums = { balance: bigint; in_flight: bigint; paid: bigint };
    const sums = async () =>
      (await sql<Sums[]>`select balance, in_flight, paid from accounts where address = ${victim}`)[0] as Sums;
    const owed = await sums();
    const all = owed.balance + owed.in_flight + owed.paid;
    expect(all).toBeGreaterThan(LEAST_PAID);
    await until(async () => (await sums()).paid > all - LEAST_PAID);
    const paid = () => sql<{ id: string }[]>`select p.id from payouts p join payout_items i on i.payout_id = p.id
      join accounts a on a.id = i.account_id where p.state = 'finalized' and a.address = ${victim}`;
    const told = (kind: string) => got.filter((news) => news.kind === kind);
    const due = await paid();
    await until(() => {
      const ids = new Set(told('payout_final').map(({ data }) => data.payout_id));
      return due.every(({ id }) => ids.has(id));
    });
    await until(() => told('worker_silent').some(({ data }) => data.worker === 'old-rig'));
    // The miner has compared slices to the end, and accuses nobody.
    const { newest_slice: newest } = await books();
    await until(async () => ((await books()).newest_slice ?? 0) > (newest ?? 0));
    expect(`${miner.out}\n${miner.err}`).not.toMatch(/alarm=|CANNOT BE CHECKED/);
    expect((await books()).alarms).toBe(0);
    expect((await balanceSheet(sql)).gap).toBe(0n);
    type Rows = { workers: number; accounts: number; deadlocks: number; shares: number };
    const [rows] = await sql<Rows[]>`select
      (select count(*)::int from workers) as workers, (select count(*)::int from accounts) as accounts,
      (select count(*)::int from shares) as shares,
      (select deadlocks::int from pg_stat_database where datname = current_database()) as deadlocks`;
    expect(rows?.deadlocks).toBe(0);
    const news = { payments: told('payout_final').length, silent: told('worker_silent').length };
    const { names, accounts, shares, hashes } = sent;
    const invented = { names, accounts, shares, hashes: Number(hashes) };
    const checks = { ...done, miner: await books() };
    process.stdout.write(`${JSON.stringify({ seconds: Math.round(seconds()), invented, rows, news, checks })}\n`);
    await sql.end({ timeout: 1 });
    const ended = await svcPool('audit', '--database', database, ...ledger);
    expect(ended.out).toMatch(/every atom/);
  },
);

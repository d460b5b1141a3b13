/**
 * A restart of the whole pool costs miners nothing (docs/protocol/stratum.md, S55): the pool of this process is killed, then stopped, under sessions of both wire forms, over
 * TCP and WebSocket, on both ports. Every session goes on, shares found on jobs of before are accepted once, and what was told is booked. A process that is killed leaves its
 * files, and what it had in Redis, as they are at that moment: so does a copy of them that is made while it lives. With real programs: restarted-sessions.deep.slow.test.ts.
 */
import { cpSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { BansDocument } from '../../pool/api/operator/operator-documents.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { openPoolBed, type RunningPool } from './pool-bed.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';
import { bookedShares } from './rig.ts';

const LINES = [
  [V1Client, 'pplns', 'tcp'],
  [V2Client, 'pplns', 'tcp'],
  [V2Client, 'pplns', 'ws'],
  [V1Client, 'solo', 'tcp'],
] as const;

const NETWORK = '203.0.113.0/24';

/** One miner over all restarts. `told` are its accepted shares. */
class Miner {
  readonly #line: (typeof LINES)[number];
  readonly #number: number;
  #client!: V1Client | V2Client;
  #job!: Job;
  #from = 0n;
  #sent!: Bytes;
  told = 0;

  constructor(line: (typeof LINES)[number], number: number) {
    this.#line = line;
    this.#number = number;
  }

  get name(): string {
    return `${addressOf(this.#number)}/${this.#line[1]}/w`;
  }

  async connect(pool: RunningPool): Promise<void> {
    const [Form, service, transport] = this.#line;
    const before = this.#client as V1Client | V2Client | undefined;
    this.#client = await Form.open(pool.port(service, transport), transport);
    await this.#client.login(`${addressOf(this.#number)}.w`, 'd=4', before?.session ?? null);
    if (before === undefined) return;
    before.close();
    const { session, prefix, jobs } = this.#client;
    expect([session, toHex(prefix), jobs[0]?.clean]).toEqual([before.session, toHex(before.prefix), false]);
  }

  #find(): Bytes {
    const { nonce, next } = mine(this.#job, this.#client.prefix, this.#from);
    this.#from = next;
    return nonce;
  }

  /** A share on the newest job is accepted. */
  async work(): Promise<void> {
    this.#job = this.#client.jobs.at(-1) as Job;
    this.#sent = this.#find();
    expect(await this.#client.submitCode(this.#job.jobId, this.#sent)).toBe(0);
    this.told++;
  }

  /** What was answered counts once, and what was found on the job of before is accepted. */
  async goOn(): Promise<void> {
    expect(await this.#client.submitCode(this.#job.jobId, this.#sent)).toBe(CODE.duplicate);
    expect(await this.#client.submitCode(this.#job.jobId, this.#find())).toBe(0);
    this.told++;
    await this.work();
  }
}

/** The bans of operators, after one was set or lifted. */
async function bans(pool: RunningPool, method?: 'POST' | 'DELETE', body?: object): Promise<string[]> {
  const url = `http://127.0.0.1:${pool.web.port}/api/v1/operator/bans`;
  const authorization = `Bearer ${readFileSync(join(pool.dataDir, 'operator.token'), 'utf8').trim()}`;
  const headers = { authorization, 'content-type': 'application/json' };
  if (method !== undefined)
    expect((await fetch(url, { method, headers, body: JSON.stringify(body) })).status).toBe(200);
  const document = (await (await fetch(url, { headers: { authorization } })).json()) as BansDocument;
  return document.bans.map(({ key }) => key);
}

test.each([
  ['with Redis', true],
  ['without Redis', false],
])(
  'after a kill and after a stop every session goes on, %s; no share is lost, and what was told is booked',
  lasts(120, 'a pool is started three times'),
  async (_name, withRedis) => {
    let redis: RedisServer | undefined;
    if (withRedis) {
      redis = await startRedisServer();
      onTestFinished(() => redis?.stop());
    }
    const bed = await openPoolBed(redis === undefined ? [] : ['--redis', redis.url]);
    await bed.cut();
    const first = await bed.start();
    const miners = LINES.map((line, i) => new Miner(line, i + 1));
    const each = async (act: (miner: Miner) => Promise<void>) => void (await Promise.all(miners.map(act)));
    await each((miner) => miner.connect(first));
    await each((miner) => miner.work());

    expect(await bans(first, 'POST', { key: NETWORK, minutes: 60 })).toEqual([NETWORK]);

    const next = join(temporaryDirectory(), 'pool');
    await until(async () => (await bookedShares(bed.sql)).size === miners.length);
    await redis?.save();
    // Locks name the process that has them, which is this one.
    cpSync(first.dataDir, next, { recursive: true, filter: (path) => !/^lock\.\d+$/.test(basename(path)) });
    await first.stop();
    await redis?.restore();
    const killed = await bed.start(next);
    await each((miner) => miner.connect(killed));
    await each((miner) => miner.goOn());
    expect(await bans(killed)).toEqual([NETWORK]);
    expect(await bans(killed, 'DELETE', { key: NETWORK })).toEqual([]);

    await killed.stop();
    const stopped = await bed.start(next);
    await each((miner) => miner.connect(stopped));
    await each((miner) => miner.goOn());
    expect(await bans(stopped)).toEqual([]);

    const booked = async () =>
      new Map([...(await bookedShares(bed.sql))].map(([name, { accepted }]) => [name, accepted]));
    const told = new Map(miners.map((miner) => [miner.name, miner.told]));
    await until(async () => [...(await booked()).values()].reduce((sum, n) => sum + n, 0) >= miners.length * 5);
    expect(await booked()).toEqual(told);
  },
);

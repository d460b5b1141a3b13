/**
 * Miners for tests of whole pools: real connections of both wire forms, real hashes, one share in flight each. A rig notes
 * every job it was given and every answer it got.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Verifier } from '../../kernels/verifier.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { SERVICES, type Service } from '../../pool/journal/journal-record.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { meetsTarget, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { composeNonce } from '../../protocol/stratum/nonce.ts';
import { addressOf, V1Client, V2Client } from '../bridge/stratum-client.ts';

type Client = V1Client | V2Client;

/** Hashes tried at once; a share takes SHARE_WORK of them on average. */
const BATCH = 32;
const SHARE_WORK = 16;

/** One connection. A share in flight when it broke may or may not be in the books. */
export type Life = {
  readonly worker: string;
  readonly client: Client;
  accepted: number;
  work: bigint;
  unanswered: bigint;
};

export type RigOptions = {
  readonly number: number;
  readonly service: Service;
  readonly form: 'v1' | 'v2';
  /** Time between two shares. */
  readonly restMillis: number;
};

export type Ports = { readonly pplns: number; readonly solo: number };

export class Rig {
  readonly options: RigOptions;
  readonly lives: Life[] = [];
  /** Codes of refused shares, with their times. */
  readonly refused: { readonly code: number; readonly atMillis: number }[] = [];
  readonly #verifier: Verifier;
  #ports: Ports;
  #wanted = true;
  #moving: { readonly ports: Ports; readonly parted: () => void } | undefined;
  readonly #done: Promise<void>;

  constructor(options: RigOptions, ports: Ports, verifier: Verifier) {
    this.options = options;
    this.#ports = ports;
    this.#verifier = verifier;
    this.#done = this.#run();
  }

  get account(): string {
    return addressOf(this.options.number);
  }

  get accepted(): number {
    return this.lives.reduce((sum, life) => sum + life.accepted, 0);
  }

  get life(): Life | undefined {
    return this.lives.at(-1);
  }

  /** Where it connects to when its connection breaks. */
  turnTo(ports: Ports): void {
    this.#ports = ports;
  }

  /** Ends the connection, with nothing in flight, and takes the session up elsewhere once `shelved` says that it waits. */
  async move(ports: Ports, shelved: (session: string) => Promise<void>): Promise<void> {
    const before = this.life as Life;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#moving = { ports, parted: resolve };
    await promise;
    await shelved(before.client.session);
    this.#moving = undefined;
    await expect.poll(() => this.life !== before && (this.life?.accepted ?? 0) > 0).toBe(true);
    expect(this.life?.client.session).toBe(before.client.session);
    expect(this.life?.client.prefix).toEqual(before.client.prefix);
  }

  async stop(): Promise<void> {
    this.#wanted = false;
    await this.#done;
  }

  async #run(): Promise<void> {
    const { service, form, number } = this.options;
    let session: string | null = null;
    let worker = '';
    for (let names = 0; this.#wanted; ) {
      const open = form === 'v1' ? V1Client : V2Client;
      const client: Client | undefined = await open.open(this.#ports[service]).catch(() => undefined);
      if (client === undefined) {
        await sleep(100);
        continue;
      }
      if (session === null) worker = `rig-${number}-${names++}`;
      const life: Life = { worker, client, accepted: 0, work: 0n, unanswered: 0n };
      this.lives.push(life);
      await Promise.race([this.#mine(client, life, session).catch(() => undefined), client.closed]);
      client.close();
      session = null;
      if (this.#moving !== undefined) {
        this.#ports = this.#moving.ports;
        session = client.session;
        this.#moving.parted();
        while (this.#moving !== undefined) await sleep(5);
      } else await sleep(50);
    }
  }

  async #mine(client: Client, life: Life, session: string | null): Promise<void> {
    await client.login(`${this.account}.${life.worker}`, `d=${SHARE_WORK}`, session);
    let from = 0n;
    while (this.#wanted && this.#moving === undefined) {
      const job = client.jobs.at(-1) as Job;
      const nonce = await this.#search(job, client.prefix, from);
      from += BigInt(BATCH);
      if (nonce === undefined) continue;
      life.unanswered = workOfTarget(job.shareTarget);
      const code = await client.submitCode(job.jobId, nonce);
      if (code === 0) {
        life.accepted++;
        life.work += life.unanswered;
      } else this.refused.push({ code, atMillis: Date.now() });
      life.unanswered = 0n;
      await sleep(this.options.restMillis);
    }
  }

  async #search(job: Job, prefix: Bytes, from: bigint): Promise<Bytes | undefined> {
    const nonces = Array.from({ length: BATCH }, (_, i) => composeNonce(from + BigInt(i), prefix));
    const headers = nonces.map((nonce) => {
      const header = Uint8Array.from(job.header);
      header.set(nonce, 304);
      return header;
    });
    const target = targetToBytes(job.shareTarget);
    const hashes = await this.#verifier.hashMany(job.epoch, headers);
    return nonces[hashes.findIndex((hash) => meetsTarget(hash, target))];
  }
}

type Booked = { address: string; service: number; name: string; accepted: number; work: string };

/** What the raw shares in the books come to, by address, service and worker. */
export async function bookedShares(sql: Sql): Promise<Map<string, Booked>> {
  const rows = await sql<
    Booked[]
  >`select a.address, w.service, w.name, count(*)::int as accepted, sum(s.work)::text as work
    from shares s join workers w on w.id = s.worker_id join accounts a on a.id = w.account_id group by 1, 2, 3`;
  return new Map(rows.map((row) => [`${row.address}/${SERVICES[row.service]}/${row.name}`, row]));
}

/** What every rig was answered is in the books once; nothing else is. */
export async function expectShares(sql: Sql, rigs: readonly Rig[]): Promise<void> {
  const books = await bookedShares(sql);
  const accepted = [...books.values()].reduce((total, row) => total + row.accepted, 0);
  for (const rig of rigs)
    for (const [worker, lives] of Map.groupBy(rig.lives, (life) => life.worker)) {
      const key = `${rig.account}/${rig.options.service}/${worker}`;
      const row = books.get(key);
      books.delete(key);
      const sum = (of: (life: Life) => bigint) => lives.reduce((total, life) => total + of(life), 0n);
      const answered = sum((life) => BigInt(life.accepted));
      const last = lives.at(-1) as Life;
      const isLastKept = last.unanswered > 0n && BigInt(row?.accepted ?? 0) === answered + 1n;
      expect(BigInt(row?.accepted ?? 0), key).toBe(answered + (isLastKept ? 1n : 0n));
      expect(BigInt(row?.work ?? 0), key).toBe(sum((life) => life.work) + (isLastKept ? last.unanswered : 0n));
    }
  expect([...books.keys()]).toEqual([]);
  const [twice] = await sql<
    { n: number }[]
  >`select (count(*) - count(distinct (boot_id, sequence)))::int as n from shares`;
  expect(twice?.n).toBe(0);
  type Sums = { accepted: number; workers: string; shares: string };
  const [sums] = await sql<Sums[]>`select (select sum(accepted)::int from workers) as accepted,
    (select sum(work)::text from workers) as workers, (select sum(work)::text from shares) as shares`;
  expect(sums?.accepted).toBe(accepted);
  expect(sums?.workers).toBe(sums?.shares);
}

/**
 * Waits until every answered share is in the books, worker by worker: the sum may be reached before, by shares that were kept and
 * not answered when an instance died.
 */
export async function booksCaughtUp(sql: Sql, rigs: readonly Rig[]): Promise<void> {
  const answered = new Map<string, number>();
  for (const rig of rigs)
    for (const { worker, accepted } of rig.lives)
      answered.set(`${rig.account}/${worker}`, (answered.get(`${rig.account}/${worker}`) ?? 0) + accepted);
  const missing = async () => {
    const rows = await sql<{ name: string; n: number }[]>`select a.address || '/' || w.name as name, count(*)::int as n
      from shares s join workers w on w.id = s.worker_id join accounts a on a.id = w.account_id group by 1`.catch(
      () => [],
    );
    const taken = new Map(rows.map(({ name, n }) => [name, n]));
    return [...answered].filter(([name, n]) => (taken.get(name) ?? 0) < n).length;
  };
  await expect.poll(missing, { interval: 100 }).toBe(0);
}

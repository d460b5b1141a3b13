/**
 * A restart costs miners nothing (docs/protocol/stratum.md, S55): the real pool is killed and then stopped under rigs of
 * both wire forms, over TCP and WebSocket, on both ports, and a real svc-miner. Every session goes on, shares found on
 * jobs of before are accepted, and what was told is booked, to the share.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createVerifier, type Verifier } from '../../kernels/verifier.ts';
import type { Service } from '../../pool/journal/journal-record.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { composeNonce } from '../../protocol/stratum/nonce.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { Program } from '../bridge/program.ts';
import { addressOf, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { Fleet } from './fleet.ts';
import { bookedShares } from './rig.ts';

type Found = { readonly job: Job; readonly nonce: Bytes };
/** Some shares a second: what ends is under load, and the processor is not. */
const REST_MILLIS = 150;
const BATCH = 8;

let verifier: Verifier;
beforeAll(async () => {
  verifier = createVerifier({ network: NETWORKS.development, mode: 'light', threads: 1 });
  await verifier.prepare(0);
});
afterAll(() => verifier.close());

type RigOptions = {
  readonly number: number;
  readonly service: Service | 'bridge';
  readonly Form: typeof V1Client | typeof V2Client;
  readonly transport: 'tcp' | 'ws';
  readonly port: number;
};

/** Does what a miner does: it comes back with its session, and sends what was not answered and what it found meanwhile. */
class SteadyRig {
  readonly options: RigOptions;
  /** Accepted shares. */
  told = 0;
  unclear = 0;
  /** Since the last login. */
  toldLately = 0;
  readonly resumed: boolean[] = [];
  readonly refused: string[] = [];
  readonly #done: Promise<void>;
  #isWanted = true;
  #session: string | null = null;
  #from = 0n;
  #unanswered: Found | undefined;

  constructor(options: RigOptions) {
    this.options = options;
    this.#done = this.#run();
  }

  get name(): string {
    return `${addressOf(this.options.number)}/${this.options.service}/w`;
  }

  async stop(): Promise<void> {
    this.#isWanted = false;
    await this.#done;
  }

  async #run(): Promise<void> {
    const { Form, transport, port } = this.options;
    let last: { readonly job: Job; readonly prefix: Bytes } | undefined;
    while (this.#isWanted) {
      const client: V1Client | V2Client | undefined = await Form.open(port, transport).catch(() => undefined);
      if (client !== undefined) {
        await Promise.race([this.#mine(client, last).catch(() => undefined), client.closed]);
        const job = client.jobs.at(-1);
        if (job !== undefined) last = { job, prefix: client.prefix };
        client.close();
      }
      await sleep(50);
    }
  }

  async #mine(
    client: V1Client | V2Client,
    last: { readonly job: Job; readonly prefix: Bytes } | undefined,
  ): Promise<void> {
    await client.login(`${addressOf(this.options.number)}.w`, 'd=8', this.#session);
    const first = client.jobs[0] as Job;
    if (this.#session !== null) this.resumed.push(client.session === this.#session && !first.clean);
    this.#session = client.session;
    this.toldLately = 0;
    if (this.#unanswered !== undefined) await this.#submit(client, this.#unanswered, true);
    // On the job of before: it stays good for its grace.
    if (last !== undefined) await this.#submit(client, await this.#find(last.job, last.prefix), false);
    while (this.#isWanted) {
      await this.#submit(client, await this.#find(client.jobs.at(-1) as Job, client.prefix), false);
      await sleep(REST_MILLIS);
    }
  }

  async #find(job: Job, prefix: Bytes): Promise<Found> {
    const target = targetToBytes(job.shareTarget);
    for (;;) {
      const nonces = Array.from({ length: BATCH }, () => composeNonce(this.#from++, prefix));
      const headers = nonces.map((nonce) => {
        const header = Uint8Array.from(job.header);
        header.set(nonce, NONCE_OFFSET);
        return header;
      });
      const hashes = await verifier.hashMany(job.epoch, headers);
      const nonce = nonces[hashes.findIndex((hash) => meetsTarget(hash, target))];
      if (nonce !== undefined) return { job, nonce };
    }
  }

  async #submit(client: V1Client | V2Client, found: Found, isAgain: boolean): Promise<void> {
    this.#unanswered = found;
    const code = await client.submitCode(found.job.jobId, found.nonce);
    this.#unanswered = undefined;
    if (code === 0) this.told++;
    // In flight when the process ended: it is booked, and was not answered.
    else if (isAgain && code === CODE.duplicate) this.unclear++;
    else this.refused.push(`${code}${isAgain ? ' again' : ''}`);
    if (code === 0) this.toldLately++;
  }
}

const HOST = '127.0.0.1';

test.each([
  ['with Redis', true],
  ['without Redis', false],
])(
  'after kill -9 and after a stop every session goes on, %s; no share is lost, and what was told is booked',
  lasts(240, 'real programs are started, killed and started again'),
  async (_name, withRedis) => {
    const fleet = await Fleet.start({ blockWork: 1_000_000, cutMillis: 2_500, withRedis });
    const [pplns, solo, ws, web, alone] = (await freePorts(5)) as [number, number, number, number, number];
    const ports = { pplns, solo, ws, web };
    const start = () => fleet.add('a', ports);
    // Without a pool, the bridge keeps sessions in the same way.
    const bridge = () => {
      const words = ['--node', fleet.mining, '--data-dir', `${fleet.directory}/bridge`, '--listen', `${HOST}:${alone}`];
      const off = ['--listen-ws', 'off', '--stats-bind', 'off', '--metrics-bind', 'off', '--min-work', '1'];
      return new Program('svc-bridge', [...words, ...off, '--threads', '1', '--pow-mode', 'light']);
    };
    let [pool, front] = [await start(), bridge()];
    const tcp = 'tcp' as const;
    const rigs = [
      new SteadyRig({ number: 1, service: 'pplns', Form: V1Client, transport: tcp, port: pplns }),
      new SteadyRig({ number: 2, service: 'pplns', Form: V2Client, transport: tcp, port: pplns }),
      new SteadyRig({ number: 3, service: 'pplns', Form: V2Client, transport: 'ws', port: ws }),
      new SteadyRig({ number: 4, service: 'solo', Form: V1Client, transport: tcp, port: solo }),
      new SteadyRig({ number: 5, service: 'bridge', Form: V2Client, transport: tcp, port: alone }),
    ];
    const user = `${addressOf(6)}.real`;
    const words = [
      '-o',
      `stratum2+tcp://${HOST}:${pplns}`,
      '-u',
      user,
      '-p',
      'd=4000',
      '--no-gpu',
      '--cpu-threads',
      '1',
      '--throttle',
      '10',
    ];
    const miner = new Program('svc-miner', [...words, '--api-bind', `${HOST}:0`, '--metrics-bind', 'off']);
    const stats = `http://${await miner.until(/api listening address=(\S+)/)}/v1/stats`;
    /** Shares of the real miner that were answered. */
    const answered = async () =>
      ((await (await fetch(stats)).json()) as { shares: { accepted: number } }).shares.accepted;
    const sql = fleet.books();
    const booked = async () => new Map([...(await bookedShares(sql))].map(([name, { accepted }]) => [name, accepted]));
    const isReal = async () => ((await booked()).get(`${addressOf(6)}/pplns/real`) ?? 0) > 0;
    await until(isReal);
    /** A miner asks for its session for two minutes: on a machine that is very busy, a start takes longer. */
    const isSoon: boolean[] = [];
    for (const [round, signal] of (['SIGKILL', 'SIGTERM'] as const).entries()) {
      const work = () => rigs.every(({ toldLately }) => toldLately >= 5);
      await until(work);
      const stopped = performance.now();
      await Promise.all([pool.program.stop(signal), front.stop(signal)]);
      const before = await answered();
      front = bridge();
      pool = await start();
      await until(() => rigs.every(({ resumed, toldLately }) => resumed.length > round && toldLately >= 5));
      await until(async () => (await answered()) > before);
      isSoon.push(performance.now() - stopped < 100_000);
    }
    for (const rig of rigs) await rig.stop();
    // It logs the same line once a minute, and the last ones at its end.
    await miner.stop();
    expect(rigs.map(({ resumed }) => resumed)).toEqual(rigs.map(() => [true, true]));
    expect(rigs.map(({ refused }) => refused)).toEqual(rigs.map(() => []));
    const resumed = miner.output.match(/resumed=(true|false)/g)?.map((text) => text.endsWith('true'));
    for (const [round, soon] of isSoon.entries()) if (soon) expect(resumed?.[round + 1]).toBe(true);
    const ofPool = rigs.filter(({ options }) => options.service !== 'bridge');
    await until(async () => {
      const taken = await booked();
      return ofPool.every(({ name, told, unclear }) => (taken.get(name) ?? 0) >= told + unclear);
    });
    const taken = await booked();
    for (const { name, told, unclear } of ofPool) expect(taken.get(name), name).toBe(told + unclear);
  },
);

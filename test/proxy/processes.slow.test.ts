/**
 * svc-proxy as a program, with rigs of both wires and a real svc-miner behind it, at a pool that this process plays. It is killed under them and started again: what was
 * passed on is booked once, under the name of its rig. A whole pool behind it: whole-pool.long.test.ts; everything killed: processes.deep.slow.test.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { freePorts } from '../../runtime/free-port.ts';
import { Program } from '../bridge/program.ts';
import { addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { PlayedPool } from './played-pool.ts';

const HOST = '127.0.0.1';
const ADDRESS = addressOf(77);
const NAMES = ['cpu', 'hall.rig-2', 'rig-1'];

/** Comes back whenever it is disconnected. */
class Rig {
  accepted = 0;
  #isWanted = true;
  readonly #done: Promise<void>;

  constructor(name: string, Form: typeof V1Client | typeof V2Client, port: number) {
    this.#done = this.#run(name, Form, port);
  }

  async stop(): Promise<void> {
    this.#isWanted = false;
    await this.#done;
  }

  async #run(name: string, Form: typeof V1Client | typeof V2Client, port: number): Promise<void> {
    while (this.#isWanted) {
      const client: V1Client | V2Client | undefined = await Form.open(port).catch(() => undefined);
      if (client !== undefined) await Promise.race([this.#mine(client, name).catch(() => undefined), client.closed]);
      client?.close();
      await sleep(100);
    }
  }

  async #mine(client: V1Client | V2Client, name: string): Promise<void> {
    await client.login(name);
    for (let from = 0n; this.#isWanted; ) {
      const job = client.jobs.at(-1)!;
      const { nonce, next } = mine(job, client.prefix, from);
      from = next;
      if ((await client.submitCode(job.jobId, nonce)) === 0) this.accepted++;
      await sleep(100);
    }
  }
}

type ProxyStats = {
  readonly passed_on: { readonly accepted: number; readonly lost: number; readonly waiting: number };
  readonly rigs: readonly { readonly name: string }[];
};

test('shares of all rigs reach the pool once under their names, also after the proxy was killed', async () => {
  const pool = await PlayedPool.start();
  const [port = 0, stats = 0] = await freePorts(2);
  const start = async (): Promise<Program> => {
    const proxy = new Program('svc-proxy', [
      ...['-o', pool.url, '-u', `${ADDRESS}.farm`, '--metrics-bind', 'off', '--web-bind', 'off'],
      ...['--listen', `${HOST}:${port}`, '--listen-ws', 'off', '--stats-bind', `${HOST}:${stats}`, '--threads', '2'],
      ...['--verify-threads', '1', '--pow-mode', 'light', '--start-work', '4', '--min-work', '1'],
      ...['--data-dir', temporaryDirectory()],
    ]);
    await proxy.until(/stratum listener kind=tcp/);
    await proxy.until(/farm session: each rig/);
    return proxy;
  };
  const ask = async () => (await (await fetch(`http://${HOST}:${stats}/v1/stats`)).json()) as ProxyStats;
  const counts = () => NAMES.map((name) => pool.booked.filter(({ worker }) => worker === name).length);
  const more = async (): Promise<void> => {
    const before = counts();
    await until(() => counts().every((count, i) => count > (before[i] ?? 0)), { seen: () => pool.booked.length });
  };
  let proxy = await start();
  const rigs = [new Rig('rig-1', V1Client, port), new Rig(`${ADDRESS}.hall.rig-2`, V2Client, port)];
  const cpu = new Program('svc-miner', [
    ...['-o', `stratum+tcp://${HOST}:${port}`, '-u', `${ADDRESS}.cpu`, '--no-gpu', '--cpu-threads', '1'],
    ...['--throttle', '5', '--light', '--api-bind', 'off', '--metrics-bind', 'off', '--data-dir', temporaryDirectory()],
  ]);
  await more();
  expect((await ask()).rigs.map(({ name }) => name).sort()).toEqual(NAMES);

  await proxy.stop('SIGKILL');
  // What it sent last has been read.
  await until(() => !pool.isConnected);
  const before = pool.booked.length;
  proxy = await start();
  await more();
  expect((await ask()).rigs.map(({ name }) => name).sort()).toEqual(NAMES);
  await Promise.all(rigs.map((rig) => rig.stop()));
  await cpu.stop();
  // Shares of rigs that have gone may still wait to be checked, and are passed on then.
  const passedOn = async () => {
    const { accepted, waiting } = (await ask()).passed_on;
    return waiting === 0 && pool.booked.length === before + accepted;
  };
  await until(passedOn, { seen: () => pool.booked.length });
  expect((await ask()).passed_on.lost).toBe(0);
  expect(await proxy.stop()).toBe(0);
  const shares = pool.booked.map(({ jobId, generation, rig, nonce }) => `${jobId} ${generation} ${rig} ${nonce}`);
  expect(new Set(shares).size).toBe(shares.length);
  expect(pool.refused).toEqual([]);
  expect([...new Set(pool.booked.map(({ worker }) => worker))].sort()).toEqual(NAMES);
  for (const { accepted } of rigs) expect(accepted).toBeGreaterThan(1);
});

/**
 * At the deep level: node, wallet, pool and proxy as processes, with rigs of both wires and a real svc-miner behind the proxy. Pool and proxy are killed
 * under them: what was passed on is booked once, under the name of its rig, and the books pass their audit.
 */
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../../runtime/free-port.ts';
import { runToEnd } from '../../stack/process.ts';
import { Program } from '../bridge/program.ts';
import { addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { KillableStack } from '../pool/killable.ts';
import { bookedShares } from '../pool/rig.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const HOST = '127.0.0.1';
const ADDRESS = addressOf(77);

/** The pool has another port after each start; the proxy knows this one. */
async function doorTo(port: () => number): Promise<number> {
  const server = createServer((socket) => {
    const far = connect(port(), HOST);
    const end = (): void => {
      socket.destroy();
      far.destroy();
    };
    socket.on('error', end).on('close', end).pipe(far);
    far.on('error', end).on('close', end).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

/** Comes back whenever it is disconnected. */
class Rig {
  accepted = 0;
  readonly refused: number[] = [];
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
      const code = await client.submitCode(job.jobId, nonce);
      if (code === 0) this.accepted++;
      else this.refused.push(code);
      await sleep(30);
    }
  }
}

test('shares of all rigs are booked once under their names, whoever is killed, and the audit passes', async () => {
  const stack = new KillableStack({ initialWork: 2_000, minimumWork: 1_000, poolWords: ['--start-work', '8'] });
  await stack.start();
  const door = await doorTo(() => stack.ports.pplns);
  const [port = 0, stats = 0] = await freePorts(2);
  const words = ['--listen', `${HOST}:${port}`, '--listen-ws', 'off', '--stats-bind', `${HOST}:${stats}`];
  const small = [
    '--threads',
    '2',
    '--verify-threads',
    '1',
    '--pow-mode',
    'light',
    '--start-work',
    '4',
    '--min-work',
    '1',
  ];
  const pool = [
    '-o',
    `stratum+tcp://${HOST}:${door}`,
    '-u',
    `${ADDRESS}.farm`,
    '--metrics-bind',
    'off',
    '--web-bind',
    'off',
  ];
  const start = async (): Promise<Program> => {
    const one = new Program('svc-proxy', [...pool, ...words, ...small, '--data-dir', temporaryDirectory()]);
    await one.until(/stratum listener kind=tcp/);
    return one;
  };
  const proxyStats = async () => (await (await fetch(`http://${HOST}:${stats}/v1/stats`)).json()) as ProxyStats;
  let proxy = await start();
  await proxy.until(/farm session: each rig/);
  const rigs = [new Rig('rig-1', V1Client, port), new Rig(`${ADDRESS}.hall.rig-2`, V2Client, port)];
  const cpu = new Program('svc-miner', [
    ...['-o', `stratum+tcp://${HOST}:${port}`, '-u', `${ADDRESS}.cpu`, '--no-gpu', '--cpu-threads', '1'],
    ...['--throttle', '5', '--light', '--api-bind', 'off', '--metrics-bind', 'off', '--data-dir', temporaryDirectory()],
  ]);
  const NAMES = ['cpu', 'hall.rig-2', 'rig-1'];
  let sql = stack.books();
  const counts = async (): Promise<number[]> => {
    const books = await bookedShares(sql);
    return NAMES.map((name) => books.get(`${ADDRESS}/pplns/${name}`)?.accepted ?? 0);
  };
  const more = async (): Promise<void> => {
    const before = await counts();
    await until(async () => (await counts()).every((count, i) => count > (before[i] ?? 0)));
  };
  await more();

  await stack.kill('pool');
  sql = stack.books();
  await more();
  const { passed_on: told } = await proxyStats();
  // What is the proxy's own fault; a pool that starts may not be able to take a share yet.
  for (const fault of ['above_target', 'duplicate', 'bad_nonce', 'not_authorized'])
    expect(Object.keys(told.rejected)).not.toContain(fault);
  // A share that was lost on the way may have been booked, and its answer lost.
  const booked = async () => (await counts()).reduce((sum, count) => sum + count, 0);
  await until(async () => (await booked()) >= told.accepted);

  await proxy.stop('SIGKILL');
  proxy = await start();
  await more();
  expect((await proxyStats()).rigs.map(({ name }) => name).sort()).toEqual(NAMES);
  await Promise.all(rigs.map((rig) => rig.stop()));
  await cpu.stop();
  const { passed_on: last } = await until(async () => {
    const figures = await proxyStats();
    return figures.passed_on.waiting === 0 ? figures : undefined;
  });
  expect(await proxy.stop()).toBe(0);
  expect(last.lost).toBe(0);
  await until(async () => (await booked()) >= told.accepted + last.accepted);
  const [twice] = await sql<{ n: number }[]>`
    select (count(*) - count(distinct (boot_id, sequence)))::int as n from shares`;
  expect(twice?.n).toBe(0);
  expect([...(await bookedShares(sql)).keys()].sort()).toEqual(NAMES.map((name) => `${ADDRESS}/pplns/${name}`));
  for (const { accepted } of rigs) expect(accepted).toBeGreaterThan(3);
  await sql.end({ timeout: 1 });
  expect(await stack.stopPool()).toBe(0);
  expect(await runToEnd('svc-pool', ['audit', '--data-dir', stack.poolDirectory])).toMatch(/every atom/);
});

type ProxyStats = {
  readonly passed_on: {
    readonly sent: number;
    readonly accepted: number;
    readonly lost: number;
    readonly waiting: number;
    readonly rejected: Record<string, number>;
  };
  readonly rigs: readonly { readonly name: string }[];
};

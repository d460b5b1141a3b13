/**
 * The matrix of clock jumps on real programs: node, wallet, bridge, miner and two instances of a pool, each with a system clock of its own. After every jump, and
 * after its return, cuts are made, shares are accepted everywhere, blocks are found and the wallet answers; at the end every answered share is in the
 * books once and nothing was paid twice. At the deep level every program jumps by every distance.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { runToEnd } from '../../stack/process.ts';
import { readToken } from '../../wallet/rpc/token.ts';
import { Program } from '../bridge/program.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { level } from '../level.ts';
import { oneValidator } from '../one-validator.ts';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { startRedisServer } from '../pool/redis-server.ts';
import { booksCaughtUp, Rig } from '../pool/rig.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { ShiftedClock } from './shifted-clock.ts';

const HOST = '127.0.0.1';
const ANY = `${HOST}:0`;
const HOUR = 3_600_000;
const DISTANCES = [8_000, -8_000, HOUR, -HOUR, 48 * HOUR, -48 * HOUR];
const PROGRAMS = ['node', 'wallet', 'first', 'second', 'bridge', 'miner'] as const;
type ProgramName = (typeof PROGRAMS)[number];

const json = async <T>(url: string): Promise<T> => (await (await fetch(url)).json()) as T;

/** All programs, each under its own clock. */
class Machines {
  readonly clocks = Object.fromEntries(PROGRAMS.map((name) => [name, new ShiftedClock()])) as Record<
    ProgramName,
    ShiftedClock
  >;
  readonly #programs: Program[] = [];
  readonly #directory = temporaryDirectory();
  database = '';
  api = '';
  wallet = '';
  minerStats = '';
  ports = { first: 0, second: 0, bridge: 0 };

  #run(name: ProgramName, program: string, words: readonly string[]): Program {
    const started = new Program(program, words, { env: this.clocks[name].env });
    this.#programs.push(started);
    return started;
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }

  async start(): Promise<void> {
    const redis = await startRedisServer();
    onTestFinished(() => redis.stop());
    const postgres = await startPostgresServer(60);
    onTestFinished(() => postgres.stop());
    this.database = postgres.url;
    const node = this.#run('node', 'svcd', [
      'run',
      '--data-dir',
      this.#path('node'),
      '--cut-millis',
      '100',
      ...oneValidator(this.#directory, { initialWork: 60, minimumWork: 60 }),
      '--api-bind',
      ANY,
      '--mining-bind',
      ANY,
      '--pow-mode',
      'light',
    ]);
    this.api = `http://${HOST}:${await node.until(/public API address=127.0.0.1:(\d+)/)}`;
    const mining = `http://${HOST}:${await node.until(/mining listener address=127.0.0.1:(\d+)/)}`;
    const file = this.#path('wallet.json');
    await runToEnd('svc-wallet', ['init', '--file', file, '--network', 'development', '--generate-password', '--json']);
    const daemon = this.#run('wallet', 'svc-wallet', [
      'daemon',
      '--file',
      file,
      '--service',
      this.api,
      '--listen',
      ANY,
    ]);
    this.wallet = `http://${HOST}:${await daemon.until(/wallet daemon ready listen=127.0.0.1:(\d+)/)}`;
    const pool = (name: 'first' | 'second') =>
      this.#run(name, 'svc-pool', [
        'run',
        '--data-dir',
        this.#path(name),
        '--node',
        mining,
        '--node-api',
        this.api,
        '--wallet',
        this.wallet,
        '--wallet-token-file',
        `${file}.token`,
        '--database',
        postgres.url,
        '--redis',
        redis.url,
        '--slice-cuts',
        '12',
        '--payout-min',
        '0.01',
        '--payout-interval',
        '2s',
        '--min-work',
        '1',
        '--pplns-listen',
        ANY,
        '--solo-listen',
        'off',
        '--web-bind',
        ANY,
        '--pplns-listen-ws',
        'off',
        '--solo-listen-ws',
        'off',
        '--threads',
        '1',
        '--verify-threads',
        '1',
        '--pow-mode',
        'light',
      ]);
    const bridge = this.#run('bridge', 'svc-bridge', [
      '--node',
      mining,
      '--data-dir',
      this.#path('bridge'),
      '--listen',
      ANY,
      '--listen-ws',
      'off',
      '--stats-bind',
      'off',
      '--metrics-bind',
      'off',
      '--threads',
      '0',
      '--verify-threads',
      '1',
      '--min-work',
      '1',
      '--pow-mode',
      'light',
    ]);
    const [first, second] = [pool('first'), pool('second')];
    const stratum = /stratum listener service=pplns kind=tcp host=\S+ port=(\d+)/;
    this.ports = {
      first: Number(await first.until(stratum)),
      second: Number(await second.until(stratum)),
      bridge: Number(await bridge.until(/kind=tcp host=127.0.0.1 port=(\d+)/)),
    };
    const miner = this.#run('miner', 'svc-miner', [
      '-o',
      `stratum+tcp://${HOST}:${this.ports.second}`,
      '-u',
      `${addressOf(9)}.real`,
      '--no-gpu',
      '--light',
      // Shares that come several times a second without a whole core: every jump waits for three of them.
      '--cpu-threads',
      '1',
      '--throttle',
      '25',
      '-p',
      'd=50',
      '--api-bind',
      ANY,
      '--metrics-bind',
      'off',
      '--data-dir',
      this.#path('miner'),
    ]);
    this.minerStats = `http://${HOST}:${await miner.until(/listening address=127.0.0.1:(\d+)/)}/v1/stats`;
    this.#token = readToken(`${file}.token`) as string;
  }

  #token = '';

  async walletHeight(): Promise<number> {
    const answer = await fetch(`${this.wallet}/v1/rpc`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: {} }),
    });
    return ((await answer.json()) as { result: { indexed_height: number } }).result.indexed_height;
  }

  async height(): Promise<number> {
    return (await json<{ finalized_height: number }>(`${this.api}/v1/chain/head`)).finalized_height;
  }

  get output(): string {
    return this.#programs.map(({ output }) => output).join('\n');
  }

  jump(who: ProgramName | 'all', millis: number): void {
    for (const name of who === 'all' ? PROGRAMS : [who]) this.clocks[name].set(millis);
  }
}

type Progress = readonly number[];

async function progress(machines: Machines, rigs: readonly Rig[]): Promise<Progress> {
  const miner = await json<{ shares: { accepted: number } }>(machines.minerStats);
  return [
    await machines.height(),
    await machines.walletHeight(),
    ...rigs.map(({ accepted }) => accepted),
    miner.shares.accepted,
  ];
}

/** Everything moves: cuts, the wallet behind them, and shares at every server. */
async function goesOn(machines: Machines, rigs: readonly Rig[], what: string): Promise<void> {
  const before = await progress(machines, rigs);
  const stuck = async () => {
    const now = await progress(machines, rigs);
    return now.map((value, i) => value - (before[i] as number)).flatMap((gain, i) => (gain > 2 ? [] : [i]));
  };
  await expect.poll(stuck, { message: what, interval: 100 }).toEqual([]);
}

const number = async (rows: Promise<{ n: number }[]>) => ((await rows)[0] as { n: number }).n;

async function expectBooks(sql: Sql, machines: Machines, rigs: readonly Rig[]): Promise<void> {
  await booksCaughtUp(sql, rigs);
  const inBooks = ({ account }: Rig) =>
    number(sql`select count(*)::int as n from shares s join workers w on w.id = s.worker_id
      join accounts a on a.id = w.account_id where a.address = ${account}`);
  for (const rig of rigs) {
    const unanswered = rig.lives.filter((life) => life.unanswered > 0n).length;
    expect(await inBooks(rig)).toBeLessThanOrEqual(rig.accepted + unanswered);
  }
  expect(await number(sql`select (count(*) - count(distinct (boot_id, sequence)))::int as n from shares`)).toBe(0);
  expect((await balanceSheet(sql)).gap).toBe(0n);
  for (const { account } of rigs) {
    const { balance } = await json<{ balance: string }>(`${machines.api}/v1/address/${account}/balance`);
    const [row] = await sql<{ sum: string }[]>`select coalesce(sum(i.amount), 0)::text as sum from payout_items i
      join payouts p on p.id = i.payout_id join accounts a on a.id = i.account_id
      where a.address = ${account} and p.state <> 'void'`;
    expect(BigInt(balance)).toBeLessThanOrEqual(BigInt(row?.sum ?? 0));
  }
  expect(await number(sql`select count(*)::int as n from payouts where needs_person is not null`)).toBe(0);
}

test(
  'whichever clock jumps, and however far: mining goes on within seconds, nothing is lost and nothing paid twice',
  lasts(600, 'all programs run through several jumps of the clock'),
  async () => {
    const machines = new Machines();
    await machines.start();
    const verifier = createVerifier({ network: NETWORKS.development, mode: 'light', threads: 1 }, {});
    onTestFinished(() => verifier.close());
    await verifier.prepare(0);
    const rig = (number: number, port: number): Rig =>
      new Rig({ number, service: 'pplns', form: 'v1', restMillis: 20 }, { pplns: port, solo: port }, verifier);
    const { ports } = machines;
    const [first, second, solo] = [rig(1, ports.first), rig(2, ports.second), rig(3, ports.bridge)] as const;
    const rigs = [first, second, solo];
    await goesOn(machines, rigs, 'before any jump');
    const matrix: [ProgramName | 'all', number][] =
      level === 'deep'
        ? [...PROGRAMS, 'all' as const].flatMap((who) => DISTANCES.map((millis): [typeof who, number] => [who, millis]))
        : [
            ['all', HOUR],
            ['node', -48 * HOUR],
            ['second', 48 * HOUR],
          ];
    for (const [who, millis] of matrix) {
      machines.jump(who, millis);
      // Clocks are looked at once a second: a shorter jump may go by unseen.
      await sleep(1_500);
      await goesOn(machines, rigs, `${who} jumped by ${millis / 1_000} s`);
      machines.jump(who, 0);
      await goesOn(machines, rigs, `${who} is back from ${millis / 1_000} s`);
    }
    await expect.poll(() => machines.output).toMatch(/the system clock jumped millis=-?\d+/);
    await expect.poll(() => machines.output).toMatch(/the system clock is back/);
    // A refused share is one that came too late or twice; none is refused for the time.
    expect(rigs.flatMap(({ refused }) => refused.map(({ code }) => code))).toEqual([]);
    await Promise.all(rigs.map((each) => each.stop()));
    const sql = connectDatabase(machines.database, { max: 1, name: 'test' });
    onTestFinished(() => sql.end({ timeout: 1 }).catch(() => undefined));
    await expectBooks(sql, machines, [first, second]);
  },
);

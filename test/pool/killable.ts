/** Node, wallet, pool and the pool's PostgreSQL as processes of their own, each of which can be killed and started again. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { Program } from '../bridge/program.ts';
import { oneValidator } from '../one-validator.ts';
import { temporaryDirectory } from '../temporary.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';
import { bringCluster } from './ready-cluster.ts';

const HOST = '127.0.0.1';
const ANY = `${HOST}:0`;

export const VICTIMS = ['pool', 'wallet', 'node', 'database'] as const;
export type Victim = (typeof VICTIMS)[number];

export type KillableOptions = {
  readonly cutMillis: number;
  /** Work of a block at the start, and at least. */
  readonly initialWork: number;
  readonly minimumWork: number;
  /** Further options of the pool. */
  readonly payoutInterval: string;
  readonly poolWords: readonly string[];
};

export class KillableStack {
  readonly poolDirectory: string;
  readonly #nodeDirectory: string;
  readonly #directory: string;
  readonly #walletFile: string;
  #node: Program | undefined;
  #wallet: Program | undefined;
  #pool: Program | undefined;
  /** Chosen at the first start; the others were told of them, so they stay. */
  readonly #fixed = { api: ANY, mining: ANY, wallet: ANY };
  /** Where miners connect; new at every start of the pool. */
  ports = { pplns: 0, solo: 0 };
  /** The pool's page and API; new at every start of the pool. */
  web = '';

  readonly #options: KillableOptions;

  constructor(options: Partial<KillableOptions> = {}) {
    this.#options = {
      cutMillis: 100,
      initialWork: 100,
      minimumWork: 50,
      payoutInterval: '2s',
      poolWords: [],
      ...options,
    };
    const directory = temporaryDirectory();
    this.#directory = directory;
    this.poolDirectory = join(directory, 'pool');
    this.#nodeDirectory = join(directory, 'node');
    this.#walletFile = join(directory, 'wallet.json');
    // A killed pool leaves its database running, for the next one to end.
    onTestFinished(() => {
      const pid = this.#databasePid();
      if (pid !== undefined) process.kill(pid, 'SIGQUIT');
    });
  }

  get mining(): string {
    return `http://${this.#fixed.mining}`;
  }

  get wallet(): string {
    return `http://${this.#fixed.wallet}`;
  }

  get api(): string {
    return `http://${this.#fixed.api}`;
  }

  async start(): Promise<void> {
    const [api, mining, wallet] = (await freePorts(3)) as [number, number, number];
    Object.assign(this.#fixed, { api: `${HOST}:${api}`, mining: `${HOST}:${mining}`, wallet: `${HOST}:${wallet}` });
    await bringCluster(join(this.poolDirectory, 'database'));
    await this.#startNode();
    await new WalletFiles(this.#directory).write();
    await this.#startWallet();
    await this.startPool();
  }

  async #startNode(): Promise<void> {
    this.#node = new Program('svcd', [
      'run',
      '--data-dir',
      this.#nodeDirectory,
      '--cut-millis',
      String(this.#options.cutMillis),
      ...oneValidator(this.#directory, this.#options),
      '--api-bind',
      this.#fixed.api,
      '--mining-bind',
      this.#fixed.mining,
      '--signature-threads',
      '1',
      '--pow-mode',
      'light',
    ]);
    this.#fixed.api = `${HOST}:${await this.#node.until(/public API address=127.0.0.1:(\d+)/)}`;
    this.#fixed.mining = `${HOST}:${await this.#node.until(/mining listener address=127.0.0.1:(\d+)/)}`;
  }

  async #startWallet(): Promise<void> {
    const words = ['daemon', '--file', this.#walletFile, '--service', this.api, '--listen', this.#fixed.wallet];
    this.#wallet = new Program('svc-wallet', words);
    this.#fixed.wallet = `${HOST}:${await this.#wallet.until(/wallet daemon ready listen=127.0.0.1:(\d+)/)}`;
  }

  async startPool(): Promise<void> {
    this.#pool = new Program('svc-pool', [
      'run',
      '--data-dir',
      this.poolDirectory,
      '--slice-cuts',
      '12',
      '--node',
      `http://${this.#fixed.mining}`,
      '--node-api',
      this.api,
      '--wallet',
      `http://${this.#fixed.wallet}`,
      '--wallet-token-file',
      `${this.#walletFile}.token`,
      '--pplns-listen',
      ANY,
      '--solo-listen',
      ANY,
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
      '--payout-min',
      '0.01',
      '--payout-interval',
      this.#options.payoutInterval,
      '--min-work',
      '1',
      '--pow-mode',
      'light',
      ...this.#options.poolWords,
    ]);
    const port = async (service: string) =>
      Number(await this.#pool?.until(new RegExp(`stratum listener service=${service} kind=tcp host=\\S+ port=(\\d+)`)));
    this.ports = { pplns: await port('pplns'), solo: await port('solo') };
    this.web = `http://${HOST}:${await this.#pool.until(/web host=127.0.0.1 port=(\d+)/)}`;
  }

  /** kill -9, and a new start of what ended. */
  async kill(victim: Victim): Promise<void> {
    if (victim === 'node') {
      await this.#node?.stop('SIGKILL');
      return this.#startNode();
    }
    if (victim === 'wallet') {
      await this.#wallet?.stop('SIGKILL');
      return this.#startWallet();
    }
    if (victim === 'pool') await this.#pool?.stop('SIGKILL');
    else {
      // The pool cannot go on without its own database: it ends by itself and says so.
      process.kill(this.#databasePid() as number, 'SIGKILL');
      await this.#pool?.exited;
    }
    return this.startPool();
  }

  /** A bridge to the node; miners on it carry on the chain and have nothing to do with the pool. */
  async startBridge(): Promise<number> {
    const bridge = new Program('svc-bridge', [
      '--node',
      `http://${this.#fixed.mining}`,
      '--data-dir',
      join(this.poolDirectory, '../bridge'),
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
    return Number(await bridge.until(/kind=tcp host=127.0.0.1 port=(\d+)/));
  }

  stopPool(): Promise<number | null> {
    return (this.#pool as Program).stop();
  }

  #databaseFile(): string[] {
    try {
      return readFileSync(join(this.poolDirectory, 'database', 'data', 'postmaster.pid'), 'utf8').split('\n');
    } catch {
      return [];
    }
  }

  #databasePid(): number | undefined {
    const pid = Number(this.#databaseFile()[0]);
    return pid > 1 ? pid : undefined;
  }

  /** The database of the running pool. */
  get database(): string {
    const password = readFileSync(join(this.poolDirectory, 'database', 'password'), 'utf8').trim();
    return `postgres://svc_pool:${password}@${HOST}:${this.#databaseFile()[3]}/postgres`;
  }

  /** The books of the running pool. */
  books(): Sql {
    const sql = connectDatabase(this.database, { max: 1, name: 'test' });
    onTestFinished(() => sql.end({ timeout: 1 }).catch(() => undefined));
    return sql;
  }
}

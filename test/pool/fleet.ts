/** Several svc-pool processes over one node, one wallet daemon, a real Redis and a real PostgreSQL, for tests. */
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { poolSecret, Seal } from '../../pool/shared/seal.ts';
import { Program, type ProgramOptions } from '../bridge/program.ts';
import { oneValidator } from '../one-validator.ts';
import { temporaryDirectory } from '../temporary.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';
import { type PostgresServer, startPostgresServer } from './postgres-server.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

const HOST = '127.0.0.1';
const ANY = `${HOST}:0`;

export type Instance = {
  readonly name: string;
  readonly program: Program;
  readonly ports: { readonly pplns: number; readonly solo: number };
  /** Where its API and metrics are. */
  readonly web: string;
};

export type FleetOptions = {
  /** Work of a block at the start, and at least. */
  readonly blockWork: number;
  readonly cutMillis: number;
  /** Without one there can be only one instance. */
  readonly withRedis?: boolean;
  readonly payoutMin?: string;
  /** Further options of the pool. */
  readonly words?: readonly string[];
};

export class Fleet {
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
  readonly directory: string;
  /** The node's public API. */
  readonly api: string;
  /** Its mining listener. */
  readonly mining: string;
  /** The wallet daemon. */
  readonly wallet: { readonly url: string; readonly tokenFile: string };
  readonly #words: readonly string[];

  private constructor(
    parts: Pick<Fleet, 'redis' | 'postgres' | 'directory' | 'api' | 'mining' | 'wallet'>,
    words: readonly string[],
  ) {
    this.redis = parts.redis;
    this.postgres = parts.postgres;
    this.directory = parts.directory;
    this.api = parts.api;
    this.mining = parts.mining;
    this.wallet = parts.wallet;
    this.#words = words;
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const directory = temporaryDirectory();
    const redis = await startRedisServer();
    onTestFinished(() => redis.stop());
    const postgres = await startPostgresServer(100);
    onTestFinished(() => postgres.stop());
    const node = new Program('svcd', [
      'run',
      '--data-dir',
      join(directory, 'node'),
      '--cut-millis',
      String(options.cutMillis),
      ...oneValidator(directory, { initialWork: options.blockWork, minimumWork: options.blockWork }),
      '--api-bind',
      ANY,
      '--mining-bind',
      ANY,
      '--pow-mode',
      'light',
      '--signature-threads',
      '1',
    ]);
    const api = `http://${HOST}:${await node.until(/public API address=127.0.0.1:(\d+)/)}`;
    const mining = `http://${HOST}:${await node.until(/mining listener address=127.0.0.1:(\d+)/)}`;
    const made = new WalletFiles(directory);
    await made.write();
    const { file } = made;
    const wallet = new Program('svc-wallet', ['daemon', '--file', file, '--service', api, '--listen', ANY]);
    const daemon = `http://${HOST}:${await wallet.until(/wallet daemon ready listen=127.0.0.1:(\d+)/)}`;
    const parts = { redis, postgres, directory, api, mining, wallet: { url: daemon, tokenFile: `${file}.token` } };
    return new Fleet(parts, [
      '--node',
      mining,
      '--node-api',
      api,
      '--wallet',
      daemon,
      '--wallet-token-file',
      `${file}.token`,
      '--database',
      postgres.url,
      ...(options.withRedis === false ? [] : ['--redis', redis.url]),
      '--slice-cuts',
      '12',
      '--payout-min',
      options.payoutMin ?? '1000',
      '--solo-listen-ws',
      'off',
      '--threads',
      '1',
      '--verify-threads',
      '1',
      '--min-work',
      '1',
      '--pow-mode',
      'light',
      ...(options.words ?? []),
    ]);
  }

  /** A name is a data directory: starting it again takes up what its last process left. */
  async add(
    name: string,
    { pplns = 0, solo = 0, ws = -1, web: webPort = 0, words = [] as readonly string[] } = {},
    options: ProgramOptions = {},
  ): Promise<Instance> {
    const all = [
      'run',
      '--data-dir',
      join(this.directory, name),
      ...this.#words,
      '--pplns-listen',
      `${HOST}:${pplns}`,
      '--solo-listen',
      `${HOST}:${solo}`,
      '--pplns-listen-ws',
      ws < 0 ? 'off' : `${HOST}:${ws}`,
      '--web-bind',
      `${HOST}:${webPort}`,
      ...words,
    ];
    const program = new Program('svc-pool', all, options);
    const port = async (service: string) =>
      Number(await program.until(new RegExp(`stratum listener service=${service} kind=tcp host=\\S+ port=(\\d+)`)));
    const ports = { pplns: await port('pplns'), solo: await port('solo') };
    const web = `http://${HOST}:${await program.until(/web host=127.0.0.1 port=(\d+)/)}`;
    await program.until(/(ready) healthy=true/);
    return { name, program, ports, web };
  }

  books(): Sql {
    const sql = connectDatabase(this.postgres.url, { max: 1, name: 'test' });
    onTestFinished(() => sql.end({ timeout: 1 }).catch(() => undefined));
    return sql;
  }

  /** Whether an ended session waits to be resumed, wherever. */
  async isShelved(session: string): Promise<boolean> {
    const redis = new Redis(this.redis.url);
    const sql = connectDatabase(this.postgres.url, { max: 1, name: 'test' });
    try {
      const keys = redisKeys('svc-pool:development');
      const seal = new Seal(await poolSecret(sql), keys.feed);
      return (await redis.exists(`${keys.session}${seal.hiddenName('session', session)}`)) === 1;
    } finally {
      redis.disconnect();
      await sql.end({ timeout: 1 });
    }
  }
}

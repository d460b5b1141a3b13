/** Mistakes of an operator that once went unnoticed, or left half a pool behind: the programs refuse them in one line that names a remedy. */
import { generateKeyPairSync } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bridgeOptions, runBridge } from '../../bridge/bridge.ts';
import { chainConflict } from '../../pool/accountant/node-chains.ts';
import { poolOptions } from '../../pool/options.ts';
import { createPool } from '../../pool/pool.ts';
import { openPoolKey, type PoolKey } from '../../pool/receipts/pool-key.ts';
import { insistOneInstance } from '../../pool/start/one-instance.ts';
import { poolKeyName } from '../../protocol/books/receipt.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { failureText } from '../../runtime/program.ts';
import { Shutdown } from '../../runtime/shutdown.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { POOL } from './audit-bed.ts';
import { databaseServer } from './database-fixture.ts';
import { openPoolNode } from './pool-bed.ts';
import { runPoolCommand } from './pool-command.ts';

const NOBODY = 'http://127.0.0.1:9';
const database = databaseServer();

/** One line of the program's name, what is wrong, and a code; no stack. */
function expectOneLine(text: string, code: string, remedy: RegExp): void {
  const lines = text.split('\n').filter((line) => line.startsWith('svc'));
  expect(lines, text).toHaveLength(1);
  expect(lines[0]).toMatch(new RegExp(`^svc-(pool|bridge) ?[a-z-]*: .* \\[${code}\\]$`));
  expect(lines[0]).toMatch(remedy);
  expect(text).not.toMatch(/^ {4}at /m);
}

/** What `svc-pool run` says when it does not start; whatever it had started is stopped again. */
async function refusalOf(...words: string[]): Promise<string> {
  const parsed = parseCommandLine({ name: 'test', summary: '', options: poolOptions }, words, () => '');
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
  const stops: (() => Promise<void> | void)[] = [];
  try {
    await createPool(parsed.values, {
      log: quietLog,
      version: 'test',
      started: (_, stop) => void stops.push(stop),
      fault: (reason) => expect.fail(reason),
    });
    return 'it started';
  } catch (error) {
    return `svc-pool run: ${failureText(error)}\n`;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

test('options that cannot work are refused before anything is made', async () => {
  const folder = temporaryDirectory();
  const short = join(folder, 'short');
  writeFileSync(short, 'short\n', { mode: 0o600 });
  const hook = ['--webhook', 'https://example.org/hook'];
  const mistakes: [string[], string, RegExp][] = [
    [['--tls-cert', short], 'options_disagree', /needs --tls-key/],
    [['--tls-cert', short, '--tls-key', short], 'certificate_unusable', /PEM/],
    [hook, 'webhook_secret', /openssl rand/],
    [[...hook, '--webhook-secret-file', short], 'webhook_secret', /at least 16/],
  ];
  for (const [words, code, remedy] of mistakes)
    expectOneLine(await refusalOf('--data-dir', join(folder, 'pool'), ...words), code, remedy);
  expect(existsSync(join(folder, 'pool'))).toBe(false);
});

test('a command about books makes no pool where there is none', async () => {
  const folder = temporaryDirectory();
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const away = ['--database', 'postgres://pool:secret@127.0.0.1:9/pool'];
  const mistakes: [string[], string, RegExp][] = [
    [['audit', '--data-dir', empty], 'not_a_pool', /--data-dir.*--database/],
    [['audit', '--data-dir', join(folder, 'missing')], 'not_a_pool', /does not exist/],
    [['audit', ...away], 'database_unavailable', /ECONNREFUSED/],
  ];
  for (const [words, code, remedy] of mistakes) {
    const { code: exit, err } = await runPoolCommand(...words);
    expect(exit).toBe(1);
    expectOneLine(err, code, remedy);
  }
  expect([readdirSync(folder), readdirSync(empty)]).toEqual([['empty'], []]);
});

test('two programs do not share a stratum port, and a node that is down from the start is named', async () => {
  const [port] = await freePorts(1);
  const off = ['--listen-ws', 'off', '--stats-bind', 'off', '--metrics-bind', 'off', '--pow-mode', 'light'];
  const words = ['--listen', `127.0.0.1:${port}`, ...off, '--threads', '2', '--node', NOBODY];
  const logged: string[] = [];
  const sink = { write: (line: string) => void logged.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('bridge', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: Date.now });
  const startBridge = async () => {
    const all = [...words, '--data-dir', temporaryDirectory()];
    const parsed = parseCommandLine({ name: 'test', summary: '', options: bridgeOptions }, all, () => '');
    if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
    const process = new EventEmitter() as unknown as NodeJS.Process;
    const shutdown = new Shutdown({ limitMs: 20_000 }, { log: quietLog, process, now: steadyMillis });
    onTestFinished(async () => {
      shutdown.request('the test is over');
      await shutdown.done;
    });
    await runBridge(parsed.values, { log, shutdown, version: 'test' });
  };
  await startBridge();
  await until(() => logged.some((line) => /node is away node=http:\/\/127\.0\.0\.1:9/.test(line)));
  const refusal = await startBridge().then(() => undefined, failureText);
  expectOneLine(`svc-bridge: ${refusal}\n`, 'listen_failed', /stop it, or choose another port/);
});

test('nodes of two chains are refused', async () => {
  const nodes = [await openPoolNode(1n << 40n), await openPoolNode(1n << 41n)] as const;
  const folder = join(temporaryDirectory(), 'pool');
  const urls = (api: string) => ['--data-dir', folder, '--node', nodes[0].mining, '--node-api', api];
  expectOneLine(await refusalOf(...urls(nodes[1].api)), 'nodes_differ', /name listeners of the same node/);
  expect(existsSync(join(folder, 'database'))).toBe(false);
  // The node's own two listeners agree: the pool goes on to its database.
  const away = ['--database', 'postgres://pool:secret@127.0.0.1:9/pool'];
  expectOneLine(await refusalOf(...urls(nodes[0].api), ...away), 'database_unavailable', /./);
});

test('a data directory of another chain is refused: its journals are no work on this one, and its key has signed', async () => {
  const nodes = [await openPoolNode(1n << 40n), await openPoolNode(1n << 41n)] as const;
  const away = ['--database', 'postgres://pool:secret@127.0.0.1:9/pool'];
  const words = ({ mining, api }: (typeof nodes)[0]) => ['--node', mining, '--node-api', api, ...away];
  const folder = ['--data-dir', join(temporaryDirectory(), 'pool')];
  for (let start = 0; start < 2; start++)
    expectOneLine(await refusalOf(...folder, ...words(nodes[0])), 'database_unavailable', /./);
  expectOneLine(await refusalOf(...folder, ...words(nodes[1])), 'directory_other_chain', /another --data-dir/);
});

test('a key that was copied from a pool of another chain is refused: it would sign two books', async () => {
  const nodes = [await openPoolNode(1n << 40n), await openPoolNode(1n << 41n)] as const;
  const [one, other] = [temporaryDirectory(), temporaryDirectory()];
  const key = join(temporaryDirectory(), 'pool.key');
  const words = (dataDir: string, { mining, api }: (typeof nodes)[0]) =>
    ['--data-dir', dataDir, '--pool-key-file', key, '--node', mining, '--node-api', api] as const;
  const away = ['--database', 'postgres://pool:secret@127.0.0.1:9/pool'];
  const { privateKey } = generateKeyPairSync('ml-dsa-65');
  writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  expectOneLine(await refusalOf(...words(one, nodes[0]), ...away), 'database_unavailable', /./);
  expectOneLine(await refusalOf(...words(other, nodes[1]), ...away), 'key_other_chain', /another --pool-key-file/);
});

test('a stolen key of the receipts is replaced while no instance runs, and only then', async () => {
  const { url: databaseUrl, sql } = await database.fresh();
  await sql`insert into settings values ('pool_address', ${POOL})`;
  const dataDir = temporaryDirectory();
  const open = () => {
    const path = join(dataDir, 'pool.key');
    return openPoolKey(path, { sql, log: quietLog, claimed: Promise.resolve(undefined) }) as Promise<PoolKey>;
  };
  const stolen = await open();
  const name = poolKeyName(stolen.publicKey);
  const newKey = () => runPoolCommand('new-key', '--data-dir', dataDir, '--database', databaseUrl);
  const stops: (() => unknown)[] = [];
  const started = (_: string, end: () => unknown) => void stops.push(end);
  await insistOneInstance({ databaseUrl, hasRedis: true, waitMillis: 0 }, { log: quietLog, started });
  expectOneLine((await newKey()).err, 'pool_running', /stop all of them/);
  expect((await open()).publicKey).toEqual(stolen.publicKey);
  for (const stop of stops) await stop();
  // The server drops the place a moment after its connection.
  const done = await until(async () => {
    const tried = await newKey();
    return tried.code === 0 ? tried : undefined;
  });
  expect(done.out).toMatch(new RegExp(`^Forgot the key ${name}; its file is now .*pool\\.key\\.${name}\\.`));
  expect(readdirSync(dataDir)).toContain(`pool.key.${name}`);
  expect(poolKeyName((await open()).publicKey)).not.toBe(name);
});

test('chains are compared only between nodes that answered', () => {
  const node = { option: '--node', url: 'http://a', chainId: '11' } as const;
  expect(chainConflict([])).toBeUndefined();
  expect(chainConflict([node, { ...node, option: '--node-api' }])).toBeUndefined();
  expect(chainConflict([node, node, { ...node, url: 'http://b', chainId: '22' }])).toContain(
    'http://b follows chain 22',
  );
});

test(
  'a second instance is refused unless all have Redis',
  lasts(60, 'an instance that starts waits twenty seconds for the place of another'),
  async () => {
    const { url: databaseUrl, sql } = await database.fresh();
    const instance = async (hasRedis: boolean, waitMillis = 0) => {
      const stops: (() => unknown)[] = [];
      const stop = async () => {
        for (const end of stops.splice(0)) await end();
      };
      onTestFinished(stop);
      await insistOneInstance(
        { databaseUrl, hasRedis, waitMillis },
        { log: quietLog, started: (_, end) => void stops.push(end) },
      );
      return stop;
    };
    const refused = { code: 'instances_need_redis' };
    const alone = await instance(false);
    await expect(instance(false)).rejects.toMatchObject(refused);
    await expect(instance(true)).rejects.toMatchObject(refused);
    const words = ['--data-dir', temporaryDirectory(), '--database', databaseUrl];
    let said: string | undefined;
    const refusal = refusalOf(...words).then((text) => {
      said = text;
    });
    // It tries again for some seconds: the other one may be about to end.
    let tries: readonly unknown[] = [];
    const look = async () => {
      tries = await sql`select query_start from pg_stat_activity where application_name = 'svc-pool-instance'`;
      return said;
    };
    expectOneLine(await until(look, { seen: () => JSON.stringify(tries) }), 'instances_need_redis', /same --redis/);
    await refusal;
    await alone();
    await instance(true, 60_000);
    await instance(true);
    await expect(instance(false)).rejects.toMatchObject(refused);
  },
);

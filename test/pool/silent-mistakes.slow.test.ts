/** Mistakes of an operator that once went unnoticed, or left half a pool behind: the real programs refuse them in one line that names a remedy. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { chainConflict } from '../../pool/accountant/node-chains.ts';
import { insistOneInstance } from '../../pool/start/one-instance.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { Program } from '../bridge/program.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { databaseServer } from './database-fixture.ts';
import { svcPool } from './svc-pool.ts';

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
  for (const [words, code, remedy] of mistakes) {
    const { code: exit, err } = await svcPool('run', '--data-dir', join(folder, 'pool'), ...words);
    expect(exit).toBe(1);
    expectOneLine(err, code, remedy);
  }
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
    const { code: exit, err } = await svcPool(...words);
    expect(exit).toBe(1);
    expectOneLine(err, code, remedy);
  }
  expect([readdirSync(folder), readdirSync(empty)]).toEqual([['empty'], []]);
});

test('two programs do not share a stratum port, and a node that is down from the start is named', async () => {
  const [port] = await freePorts(1);
  const words = ['--listen', `127.0.0.1:${port}`, '--listen-ws', 'off', '--stats-bind', 'off', '--metrics-bind', 'off'];
  const bridge = () =>
    new Program('svc-bridge', [...words, '--data-dir', temporaryDirectory(), '--threads', '2', '--node', NOBODY]);
  const first = bridge();
  await first.until(/stratum (listener) service/);
  await first.until(/(node is away) node=http:\/\/127\.0\.0\.1:9/);
  const second = bridge();
  expect(await second.exited).toBe(1);
  expectOneLine(second.output, 'listen_failed', /stop it, or choose another port/);
});

test('nodes of two chains are refused', async () => {
  const [api = 0, mining = 0, otherApi = 0] = await freePorts(3);
  const node = (words: string[]) =>
    new Program('svcd', ['run', '--data-dir', temporaryDirectory(), '--p2p-listen', 'off', ...words]);
  node(['--api-bind', `127.0.0.1:${api}`, '--mining-bind', `127.0.0.1:${mining}`]);
  node(['--api-bind', `127.0.0.1:${otherApi}`, '--mining-bind', 'off']);
  for (const port of [api, mining, otherApi])
    await until(async () =>
      fetch(`http://127.0.0.1:${port}/v1/node/identity`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  const folder = join(temporaryDirectory(), 'pool');
  const urls = (apiPort: number) => [
    '--node',
    `http://127.0.0.1:${mining}`,
    '--node-api',
    `http://127.0.0.1:${apiPort}`,
  ];
  const { code, err } = await svcPool('run', '--data-dir', folder, ...urls(otherApi));
  expect(code).toBe(1);
  expectOneLine(err, 'nodes_differ', /name listeners of the same node/);
  expect(existsSync(join(folder, 'database'))).toBe(false);
  // The node's own two listeners agree: the pool goes on to its database.
  const away = ['--database', 'postgres://pool:secret@127.0.0.1:9/pool'];
  expectOneLine((await svcPool('run', '--data-dir', folder, ...urls(api), ...away)).err, 'database_unavailable', /./);
});

test('chains are compared only between nodes that answered', () => {
  const node = { option: '--node', url: 'http://a', chainId: '11' } as const;
  expect(chainConflict([])).toBeUndefined();
  expect(chainConflict([node, { ...node, option: '--node-api' }])).toBeUndefined();
  expect(chainConflict([node, node, { ...node, url: 'http://b', chainId: '22' }])).toContain(
    'http://b follows chain 22',
  );
});

test('a second instance is refused unless all have Redis', async () => {
  const { url: databaseUrl } = await database.fresh();
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
  const { code, err } = await svcPool('run', '--data-dir', temporaryDirectory(), '--database', databaseUrl);
  expect(code).toBe(1);
  expectOneLine(err, 'instances_need_redis', /same --redis/);
  await alone();
  await instance(true, 60_000);
  await instance(true);
  await expect(instance(false)).rejects.toMatchObject(refused);
});

/** docs/two-instances.md line by line: its configs and units are ones that the programs take, the instances differ where they must alone, and both run with the database and Redis that it makes. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { minerOptions } from '../../miner/options.ts';
import type { InstancesDocument } from '../../pool/api/operator/operator-documents.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { poolOptions } from '../../pool/options.ts';
import { type OptionTable, parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { doctorOptions } from '../../runtime/doctor/doctor.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { PACKAGED_UNITS } from '../../scripts/release/debian-packages.ts';
import { files, nodePart, START_PACE, url, walletPart } from '../../stack/parts.ts';
import { RunningPart } from '../../stack/process.ts';
import { Program } from '../bridge/program.ts';
import { programWords, shellLines } from '../guards/documented-lines.ts';
import { read } from '../guards/project-files.ts';
import { MINER_ADDRESS } from '../miner/pool-fixture.ts';
import { oneValidator } from '../one-validator.ts';
import { stackPorts } from '../stack/stack-fixture.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';
import { type PostgresServer, startPostgresServer } from './postgres-server.ts';
import { startRedisServer } from './redis-server.ts';

const PAGE = 'docs/two-instances.md';
const page = read(PAGE);
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) => text);
const [a = '', b = '', rig = ''] = blocks('json');

function parsed<T extends OptionTable>(options: T, words: readonly string[], config: string) {
  const result = parseCommandLine({ name: 'program', summary: '', options }, words, () => config);
  if (result.kind !== 'run') throw new Error(`${words.join(' ')}: ${JSON.stringify(result)}`);
  return result.values;
}

/** `/opt/svc-stratum/bin/svc-pool run --config ...` of a unit. */
const startOf = (unit: string): string[] =>
  (/^ExecStart=(.*)$/m.exec(read(`deploy/systemd/${unit}`))?.[1] ?? '').split(' ');

test('both configs are taken, are the same but for name, folder and ports, and share none of these', () => {
  expect(blocks('json')).toHaveLength(3);
  const configs = [a, b].map((text) => JSON.parse(text) as Record<string, unknown>);
  const own = (name: string) =>
    name === 'instance-name' || name === 'data-dir' || /-(listen|listen-ws|bind)$/.test(name);
  const [sharedA, sharedB] = configs.map((config) =>
    Object.fromEntries(Object.entries(config).filter(([name]) => !own(name))),
  );
  expect(sharedA).toEqual(sharedB);
  expect(sharedA).toHaveProperty('redis');
  expect(sharedA).toHaveProperty('pool-key-file');
  const places = configs.flatMap((config) =>
    Object.entries(config)
      .filter(([name]) => own(name))
      .map(([, at]) => at),
  );
  expect(new Set(places).size).toBe(2 * 7);
  const [, , ...words] = startOf('svc-pool@.service');
  for (const text of [a, b]) {
    const values = parsed(poolOptions, words, text);
    expect(values.poolKeyFile).toBe('/var/lib/svc-pool/pool.key');
    expect(values.dataDir).toMatch(/^\/var\/lib\/svc-pool\/[ab]$/);
  }
  // What the balancer sends to is where they listen.
  const [balancer = ''] = blocks('nginx');
  const ports = [...balancer.matchAll(/server (127\.0\.0\.1:\d+);/g)].map(([, at]) => at);
  expect(ports).toEqual(['pplns-listen', 'solo-listen'].flatMap((name) => configs.map((config) => config[name])));
});

test('the rig’s config is taken by its unit', () => {
  const [, ...words] = startOf('svc-miner.service');
  const config = rig.replace('POOL-MACHINE', 'pool.example').replace('ADDRESS', MINER_ADDRESS);
  const { pool, user, dataDir } = parsed(minerOptions, words, config);
  expect(pool[0]?.endpoint).toMatchObject({ host: 'pool.example', port: 3333 });
  expect(user?.worker).toBe('rig1');
  expect(dataDir).toBe('/var/lib/svc-miner');
});

test('units and programs that its lines name are there, with these options', () => {
  const lines = shellLines().filter((line) => line.page === PAGE);
  expect(lines.length).toBeGreaterThan(8);
  const units = lines.flatMap(({ line }) => /systemctl enable --now (svc-\S+)/.exec(line)?.[1] ?? []);
  expect(units).toEqual(['svc-pool@a', 'svc-pool@b', 'svc-miner']);
  for (const unit of units) expect(PACKAGED_UNITS).toContain(`${unit.replace(/@.*/, '@')}.service`);
  const doctors = lines.flatMap(({ line }) => programWords(line.replace(/^runuser -u \S+ -- /, '')) ?? []);
  expect(doctors.map(({ program, words }) => `${program} ${words[0]}`)).toEqual(['svc-pool doctor', 'svc-pool doctor']);
  for (const { words } of doctors) parsed({ ...poolOptions, ...doctorOptions }, words.slice(1), a);
});

/** What the page's SQL makes, under names of its own: the tests' server may have the others. The URL of the page's config for it. */
async function pageDatabase(server: PostgresServer): Promise<string> {
  const renamed = (text: string): string => text.replaceAll('svc_pool', 'svc_pool_two');
  const admin = connectDatabase(server.url, { max: 1 });
  for (const statement of renamed(blocks('sql').join('')).split(';'))
    if (statement.trim() !== '') await admin.unsafe(statement);
  await admin.end();
  const { database } = JSON.parse(renamed(a)) as { database: string };
  return database.replace('127.0.0.1', new URL(server.url).host);
}

/** With the password of the page. */
async function pageRedis(): Promise<string> {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const { redis } = JSON.parse(a) as { redis: string };
  const client = new Redis(server.url);
  for (const line of blocks('text').join('').trim().split('\n')) {
    const [name = '', value = ''] = line.trim().split(' ');
    if (name !== 'requirepass') await client.config('SET', name, value);
  }
  await client.config('SET', 'requirepass', new URL(redis).password);
  client.disconnect();
  return redis.replace('127.0.0.1:6379', new URL(server.url).host);
}

test('two instances run with what the page makes: one database, one key, and one goes on without the other', async () => {
  const data = temporaryDirectory();
  const server = await startPostgresServer(60);
  onTestFinished(() => server.stop());
  const [database, redis] = [await pageDatabase(server), await pageRedis()];
  const ports = await stackPorts();
  await new WalletFiles(data, 'pool-wallet').write();
  const node = [...oneValidator(data), '--pow-mode', 'light', '--signature-threads', '1'];
  for (const part of [nodePart(data, ports, START_PACE, node), walletPart(data, ports)]) {
    const running = new RunningPart(part);
    onTestFinished(() => running.stop());
    await running.ready(new AbortController().signal);
  }
  const begin = async (name: string, text: string) => {
    const config = JSON.parse(text.replaceAll('/var/lib/svc-pool', data)) as Record<string, unknown>;
    const listeners = Object.keys(config).filter((key) => /-(listen|listen-ws|bind)$/.test(key));
    const free = await freePorts(listeners.length);
    const here = Object.fromEntries(listeners.map((key, i) => [key, `127.0.0.1:${free[i]}`]));
    const beside = { node: [url(ports.mining)], 'node-api': [url(ports.api)], wallet: url(ports.wallet) };
    const small = { threads: 0, 'verify-threads': 1, 'pow-mode': 'light' };
    const file = join(data, `pool-${name}.json`);
    writeFileSync(file, JSON.stringify({ ...config, ...here, ...beside, ...small, database, redis }), { mode: 0o640 });
    const [, ...words] = startOf('svc-pool@.service');
    const places: Record<string, string> = {
      '/etc/svc/pool-%i.json': file,
      credential: `${files(data).poolWallet}.token`,
    };
    const program = new Program(
      'svc-pool',
      words.map((word) => places[word.startsWith('$') ? 'credential' : word] ?? word),
    );
    const key = await program.until(/receipts are signed key=(\S+)/);
    await program.until(/pool: (web) host/);
    return { program, key, web: `http://${here['web-bind']}` };
  };
  const first = await begin('a', a);
  const second = await begin('b', b);
  expect(second.key).toBe(first.key);
  const token = readFileSync(join(data, 'operator.token'), 'utf8').trim();
  const status = async (web: string) => {
    const answer = await fetch(`${web}/api/v1/operator/status`, { headers: { authorization: `Bearer ${token}` } });
    return { code: answer.status, text: await answer.text() };
  };
  for (const { web } of [first, second]) {
    expect(await status(web)).toMatchObject({ code: 200 });
    await until(async () => (await fetch(`${web}/ready`)).status === 200);
  }
  const names = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${first.web}/api/v1/operator/instances`, { headers });
    return ((await answer.json()) as InstancesDocument).instances
      .map(({ instance }) => instance)
      .sort()
      .join();
  };
  await until(async () => (await names()) === 'a,b');
  await first.program.stop();
  await second.program.until(/this instance (keeps) the books/);
  expect((await fetch(`${second.web}/ready`)).status).toBe(200);
});

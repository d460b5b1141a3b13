/** docs/two-instances.md line by line: its configs and units are ones that the programs take, the instances differ where they must alone, and its SQL makes a database that the pool can use. */
import { expect, onTestFinished, test } from 'vitest';
import { minerOptions } from '../../miner/options.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { poolOptions } from '../../pool/options.ts';
import { type OptionTable, parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { doctorOptions } from '../../runtime/doctor/doctor.ts';
import { programWords, shellLines } from '../guards/documented-lines.ts';
import { read } from '../guards/project-files.ts';
import { MINER_ADDRESS } from '../miner/pool-fixture.ts';
import { quietLog } from '../quiet-log.ts';
import { startPostgresServer } from './postgres-server.ts';

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

test('both configs are taken, are the same but for folder and ports, and share no port', () => {
  expect(blocks('json')).toHaveLength(3);
  const configs = [a, b].map((text) => JSON.parse(text) as Record<string, unknown>);
  const own = (name: string) => name === 'data-dir' || /-(listen|listen-ws|bind)$/.test(name);
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
  expect(new Set(places).size).toBe(2 * 6);
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
  expect(lines.length).toBeGreaterThan(15);
  const units = lines.flatMap(({ line }) => /deploy\/systemd\/(\S+)/.exec(line)?.[1] ?? []);
  expect(units).toEqual(['svc-pool@.service', 'svc-miner.service']);
  for (const unit of units) expect(read(`deploy/systemd/${unit}`)).toContain('NoNewPrivileges=true');
  const doctors = lines.flatMap(({ line }) => programWords(line.replace(/^runuser -u \S+ -- /, '')) ?? []);
  expect(doctors.map(({ program, words }) => `${program} ${words[0]}`)).toEqual(['svc-pool doctor', 'svc-pool doctor']);
  for (const { words } of doctors) parsed({ ...poolOptions, ...doctorOptions }, words.slice(1), a);
});

test('its SQL makes a role and a database that the pool can migrate', async () => {
  const server = await startPostgresServer(10);
  onTestFinished(() => server.stop());
  const admin = connectDatabase(server.url, { max: 1 });
  // A name of its own: the tests' server may have the other.
  const renamed = (text: string): string => text.replaceAll('svc_pool', 'svc_pool_two');
  const script = renamed(blocks('sql').join(''));
  const statements = script
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
  for (const statement of statements) await admin.unsafe(statement);
  await admin.end();
  const { host } = new URL(server.url);
  const { database } = JSON.parse(renamed(a)) as { database: string };
  const pool = connectDatabase(database.replace('127.0.0.1', host), { max: 1 });
  onTestFinished(() => pool.end());
  await migrate(pool, quietLog);
  expect(await pool`select count(*)::int as rows from settings`).toEqual([{ rows: 0 }]);
});

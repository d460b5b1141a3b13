/** The command `doctor`: what is wrong is found and named with a remedy, nothing is changed, and no secret gets out. */
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as listen } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { certificateChecks } from '../../bridge/doctor.ts';
import { nodeDoctor } from '../../node/doctor.ts';
import { runOptions } from '../../node/node-options.ts';
import { poolOptions } from '../../pool/options.ts';
import { poolDoctor } from '../../pool/start/doctor.ts';
import { type OptionTable, parseCommandLine, path, readHttpUrl } from '../../runtime/command-line/command-line.ts';
import { bad, type Check, doctorCommand, ok, warn } from '../../runtime/doctor/doctor.ts';
import {
  clockCheck,
  directoryChecks,
  isInUse,
  notWritable,
  portChecks,
  secretCheck,
} from '../../runtime/doctor/machine.ts';
import { nodeChecks, reachCheck } from '../../runtime/doctor/other-programs.ts';
import { shownOptions } from '../../runtime/doctor/shown-options.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { temporaryDirectory } from '../temporary.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A terminal that keeps what is printed. */
function kept() {
  const printed: string[] = [];
  const terminal = {
    out: (text: string) => void printed.push(text),
    err: () => undefined,
    readText: () => '{}',
    env: {},
  };
  return { terminal, text: () => printed.join('') };
}

async function start(checks: readonly Check[], ...words: string[]) {
  const { terminal, text } = kept();
  const command = doctorCommand('svc-x', { dataDir: path({ help: 'where', default: '.' }) }, () => checks);
  return { code: await command.start(words, terminal), out: text() };
}

const look = async (checks: readonly Check[]) => await Promise.all(checks.map((check) => check.look()));

test('each check is one line, a remedy follows what is not well, and only what is bad fails', async () => {
  const checks = [
    { name: 'one', look: () => ok('well') },
    { name: 'two', look: () => warn('so so', 'do this') },
  ];
  expect(await start(checks)).toEqual({
    code: 0,
    out: `ok    one                 well\nwarn  two                 so so\n${' '.repeat(26)}-> do this\n2 checks: 1 ok, 1 doubtful, 0 bad\n`,
  });
  const thrown = { name: 'three', look: () => Promise.reject(new Error('it broke')) };
  const { code, out } = await start([{ name: 'x', look: () => bad('no', 'yes') }, thrown], '--json');
  expect(code).toBe(1);
  expect(JSON.parse(out).findings).toMatchObject([
    { check: 'x', state: 'bad', says: 'no', remedy: 'yes' },
    { check: 'three', state: 'bad', says: 'it broke' },
  ]);
});

test('a directory is looked at and left as it was', async () => {
  const directory = temporaryDirectory();
  const data = join(directory, 'data');
  expect(await look(directoryChecks(data))).toMatchObject([{ says: expect.stringContaining('will be made') }, {}, {}]);
  expect(existsSync(data)).toBe(false);
  expect(readdirSync(directory)).toEqual([]);
  mkdirSync(data);
  chmodSync(data, 0o777);
  expect((await look(directoryChecks(data)))[0]).toMatchObject({ state: 'warn', remedy: `run chmod 750 ${data}` });
  writeFileSync(join(directory, 'file'), '');
  expect(await look(directoryChecks(join(directory, 'file')).slice(0, 1))).toMatchObject([{ state: 'bad' }]);
});

test('a data directory that cannot be made is made by root for its user, and no folder above it is given away', () => {
  const [missing, there] = [notWritable('/var/lib/svc-x', '/var/lib', 998), notWritable('/srv/x', '/srv/x', 998)];
  expect(missing).toMatchObject({
    state: 'bad',
    remedy: expect.stringContaining('install -d -m 700 -o 998 /var/lib/svc-x'),
  });
  expect(missing.remedy).not.toContain('chown');
  expect(there.remedy).toContain('chown /srv/x to');
});

test('root is told that a directory is another user’s, and locks none of them', async () => {
  const data = join(temporaryDirectory(), 'data');
  mkdirSync(data);
  const locked = () => lockDirectory(data).release();
  // Nobody else can give a directory away.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(data, 65_534, 65_534);
  const [found] = await look(directoryChecks(data));
  expect(found?.remedy ?? '').toMatch(isRoot ? /runuser -u/ : /^/);
  if (isRoot) expect(locked).toThrow(/runuser -u/);
  else expect(locked).not.toThrow();
  expect(readdirSync(data)).toEqual(isRoot ? [] : ['lock.1']);
});

test('what the pool’s unit brings is not missed in the config file, and a validator in light mode is', async () => {
  const found = async (checks: readonly Check[], name: string) =>
    await checks.find((check) => check.name === name)?.look();
  const directory = temporaryDirectory();
  const values = <T extends OptionTable>(options: T, words: string[]) => {
    const parsed = parseCommandLine(
      { name: 'x', summary: '', options },
      ['--data-dir', directory, ...words],
      () => '{}',
    );
    if (parsed.kind !== 'run') throw new Error(parsed.kind);
    return parsed.values;
  };
  const pool = values(poolOptions, ['--wallet', 'http://127.0.0.1:9']);
  expect(
    await found(
      poolDoctor(pool, () => 0),
      'wallet',
    ),
  ).toMatchObject({ state: 'warn' });
  const node = values(runOptions, ['--pow-mode', 'light', '--consensus-key-file', join(directory, 'key')]);
  expect(
    await found(
      nodeDoctor(node, () => 0),
      'pow-mode',
    ),
  ).toMatchObject({ state: 'bad' });
});

test('a clock that nobody sets is doubtful', async () => {
  const said = async (answer: string) => (await look([clockCheck(() => answer)]))[0]?.state;
  expect([await said('yes'), await said('no'), await said('')]).toEqual(['ok', 'warn', 'ok']);
});

test('a port that is taken is bad, unless by the program itself', async () => {
  const directory = temporaryDirectory();
  const server = listen().listen(0, '127.0.0.1');
  closing.push(() => new Promise((done) => server.close(done)));
  await new Promise((done) => server.once('listening', done));
  const { port } = server.address() as AddressInfo;
  const checks = (isRunning: boolean | undefined) =>
    look(
      portChecks(isRunning, [
        { option: 'listen', address: { host: '127.0.0.1', port } },
        { option: 'other', address: 'off' },
        { option: 'elsewhere', address: { host: '192.0.2.1', port } },
      ]),
    );
  const elsewhere = { state: 'bad', says: '192.0.2.1 is no address of this machine' };
  expect(await checks(isInUse(directory))).toMatchObject([{ state: 'bad' }, elsewhere]);
  // Who has it is not known: that is no verdict about anybody.
  expect(await checks(undefined)).toMatchObject([{ state: 'warn' }, elsewhere]);
  const lock = lockDirectory(directory);
  closing.push(() => lock.release());
  expect(await checks(isInUse(directory))).toMatchObject([{ state: 'ok' }, elsewhere]);
});

test('a secret that others can read, a key of another certificate and an expired one are bad', async () => {
  const directory = temporaryDirectory();
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  writeFileSync(cert, TEST_CERTIFICATE.cert);
  writeFileSync(key, TEST_CERTIFICATE.key, { mode: 0o644 });
  expect(
    await look([secretCheck('key', key, 'make it'), secretCheck('none', join(directory, 'none'), 'make it')]),
  ).toMatchObject([{ state: 'bad', remedy: expect.stringContaining(`chmod 600 ${key}`) }, { state: 'bad' }]);
  chmodSync(key, 0o600);
  const year = 365 * 86_400_000;
  const at = (millis: number) => look(certificateChecks(cert, key, millis)).then(([found]) => found?.state);
  expect(await at(Date.parse('2200-01-01'))).toBe('bad');
  expect(['ok', 'warn']).toContain(await at(Date.parse('2200-01-01') - 200 * year));
  expect(await look(certificateChecks(cert, undefined, 0))).toMatchObject([{ state: 'bad' }]);
});

test('a node of another network, one that is behind, one that is away, and a clock that is wrong', async () => {
  const answer = { network: 'testnet', version: '1.0.0', state: 'ready', finalized_height: '7' };
  let date = new Date(1_700_000_000_000);
  const node = createServer((_, response) => {
    response.sendDate = false;
    response.setHeader('date', date.toUTCString());
    response.end(JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  closing.push(() => new Promise((done) => node.close(done)));
  await new Promise((done) => node.once('listening', done));
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`;
  const found = (network: string) => look(nodeChecks([url], '--node-api', network, () => 1_700_000_000_000));
  expect(await found('testnet')).toMatchObject([{ state: 'ok' }, { state: 'ok' }]);
  expect((await found('mainnet'))[0]).toMatchObject({ state: 'bad', remedy: 'correct --network or --node-api' });
  answer.state = 'syncing';
  date = new Date(1_700_000_000_000 - 10_000);
  expect(await found('testnet')).toMatchObject([{ state: 'warn' }, { state: 'warn' }]);
  date = new Date(1_700_000_000_000 + 3_600_000);
  expect((await found('testnet'))[1]).toMatchObject({ state: 'bad' });
  const nobody = await look([
    ...nodeChecks(['http://127.0.0.1:9'], '--node-api', 'testnet', () => 0),
    reachCheck('pool', { host: '127.0.0.1', port: 9 }, 'look'),
  ]);
  expect(nobody).toMatchObject([
    { state: 'bad' },
    { state: 'warn' },
    { state: 'bad', says: '127.0.0.1:9: ECONNREFUSED' },
  ]);
});

test('neither the lines of a pool’s doctor nor its report hold a secret', async () => {
  const directory = temporaryDirectory();
  const report = join(directory, 'report.json');
  const token = join(directory, 'token');
  writeFileSync(token, 'S3CRET', { mode: 0o600 });
  const { terminal, text } = kept();
  const command = doctorCommand('svc-pool', poolOptions, (values) => poolDoctor(values, () => 0));
  const code = await command.start(
    [
      ['--report', report, '--data-dir', join(directory, 'pool'), '--web-bind', '127.0.0.1:0'],
      ['--pplns-listen', 'off', '--pplns-listen-ws', 'off', '--solo-listen', 'off', '--solo-listen-ws', 'off'],
      ['--database', 'postgres://pool:@S3CRET@127.0.0.1:9/pool?password=S3CRET'],
      ['--redis', 'redis://:S3CRET@S3CRET@127.0.0.1:9'],
      ['--node', 'http://127.0.0.1:9/S3CRET', '--node-api', 'http://127.0.0.1:9/S3CRET/api'],
      ['--wallet', 'http://127.0.0.1:9', '--wallet-token-file', token, '--operator-token-file', token],
      ['--webhook', 'https://hooks.example/S3CRET/x?token=S3CRET'],
      ['--smtp-url', 'smtps://me:S3CRET@mail.example', '--mail-from', 'pool@example.org'],
    ].flat(),
    terminal,
  );
  const out = text();
  expect(code).toBe(1);
  expect(out).toMatch(/^bad {3}database/m);
  expect(out).toMatch(/^bad {3}redis/m);
  expect(out).toMatch(/^bad {3}wallet/m);
  const written = readFileSync(report, 'utf8');
  expect(JSON.parse(written)).toMatchObject({
    program: 'svc-pool',
    options: { webhook: ['https://hooks.example/***'] },
  });
  expect(`${out}${written}`).not.toContain('S3CRET');
});

test('of an option only what is no secret is shown, however it is written', () => {
  for (const [given, said] of [
    ['postgres://pool:a@b@host/db', 'postgres://***@host/db'],
    ['postgres://pool:1/2@host/db', 'postgres://***'],
    ['postgres:pool:a@host/db', 'postgres://***'],
    ['redis://:a/b@host', 'redis://***'],
    ['https:pool:a@host', 'https://***@host'],
    ['https://host/key?key', 'https://host/***'],
    ['http://127.0.0.1:28702', 'http://127.0.0.1:28702'],
    ['pool@example.org', 'pool@example.org'],
    ['solo:28732=1000', 'solo:28732=1000'],
  ])
    expect(shownOptions({ given }), given).toEqual({ given: said });
});

test('a URL with a user is refused, and the password is not repeated', () => {
  for (const word of ['http://pool:S3CRET@host', 'https:pool:S3CRET@host', 'S3CRET']) {
    expect(() => readHttpUrl('http://127.0.0.1')(word), word).toThrow(
      /^must be a URL such as http:\/\/127\.0\.0\.1, without/,
    );
    expect(() => readHttpUrl('http://127.0.0.1')(word), word).not.toThrow(/S3CRET/);
  }
  expect(readHttpUrl('')('https://node.example/api/')).toBe('https://node.example/api');
});

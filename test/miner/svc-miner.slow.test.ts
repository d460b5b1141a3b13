/** svc-miner as its users run it: real processes, a real pool, the processor as its device. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mineCommand } from '../../miner/mine.ts';
import { count, level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { type FixtureOptions, MINER_ADDRESS, POOL_ADDRESS, PoolFixture, THIEF_ADDRESS } from './pool-fixture.ts';
import { MAIN, RunningMiner } from './running-miner.ts';

/** A second or so of one thread. */
const SHARE_WORK = 20_000n;

async function fixture(options: FixtureOptions = {}): Promise<PoolFixture> {
  const pool = await new PoolFixture({ shareWork: SHARE_WORK, ...options }).listen();
  onTestFinished(() => pool.close());
  return pool;
}

const QUIET = ['--no-gpu', '--cpu-threads', '1', '--api-bind', '127.0.0.1:0', '--metrics-bind', '127.0.0.1:0'];
const user = ['-u', `${MINER_ADDRESS}.rig1`];

type Stats = {
  state: string;
  pool: { url: string; latency_millis: number | null; name: string | null } | null;
  hash_rate: Record<string, number | null>;
  shares: Record<string, number>;
  accepted_work: string;
  devices: { number: number; state: string; kind: string; hashes: number; shares: Record<string, number> }[];
};

const stats = async (api: string): Promise<Stats> => (await (await fetch(`${api}/v1/stats`)).json()) as Stats;

test('mines: shares are accepted, figures and metrics say so, SIGTERM ends it with 0', async () => {
  const pool = await fixture({ pool: { address: POOL_ADDRESS, name: 'A pool' } });
  const miner = new RunningMiner(['-o', pool.url, ...user, ...QUIET, '--status-every', '2s', '--tag', 'hello']);
  const api = await miner.addressOf('api');
  const metrics = await miner.addressOf('metrics');
  await until(() => pool.accepted >= 3);
  expect(pool.judged.every(({ code }) => code === 0)).toBe(true);
  expect([...pool.clients][0]).toMatchObject({ username: `${MINER_ADDRESS}.rig1`, subscribe: { tag: 'hello' } });
  // The pool has judged three; the miner hears of the last one later.
  const now = await until(async () => {
    const told = await stats(api);
    return told.hash_rate['10s'] !== null && (told.shares.accepted ?? 0) >= 3 && told;
  });
  expect(now).toMatchObject({ state: 'mining', pool: { url: pool.url, name: 'A pool' } });
  expect(now.devices).toMatchObject([{ number: 0, kind: 'wasm', state: 'searching' }]);
  expect(BigInt(now.accepted_work) % SHARE_WORK).toBe(0n);
  // Without --api-token nobody can pause.
  const refused = await fetch(`${api}/v1/pause`, { method: 'POST', headers: { authorization: 'Bearer ' } });
  expect(refused.status).toBe(403);
  const text = await (await fetch(`${metrics}/metrics`)).text();
  expect(text).toMatch(/^svc_miner_shares\{device="0",result="accepted"\} [1-9]/m);
  expect(text).toMatch(/^svc_miner_connected 1$/m);
  await miner.says(/total: .* at the pool .* accepted .*\[mining, stratum/);
  // Piped output is plain lines: no cursor movements, no bars redrawn.
  for (const control of ['\r', '\u001b']) expect(`${miner.out}${miner.err}`).not.toContain(control);
  miner.child.kill('SIGTERM');
  expect(await miner.ended()).toBe(0);
});

// In process: test/miner/pool-client.long.test.ts.
if (level === 'deep')
  test('v2 over TLS with a pinned certificate works from the command line', async () => {
    const pool = await fixture();
    const { TEST_FINGERPRINT } = await import('./certificate.ts');
    const miner = new RunningMiner([
      '-o',
      `stratum2+tls://127.0.0.1:${pool.port}`,
      ...user,
      ...QUIET,
      '--tls-pin',
      `sha256:${TEST_FINGERPRINT}`,
    ]);
    await until(() => pool.accepted >= 1);
    expect([...pool.clients][0]).toMatchObject({ version: 2, encrypted: true });
    miner.child.kill('SIGINT');
    expect(await miner.ended()).toBe(0);
  });

test('shares without an answer when it ends are in its summary, as lost', async () => {
  const pool = await fixture({ silentAfterLogin: true, shareWork: 100n });
  const miner = new RunningMiner(['-o', pool.url, ...user, ...QUIET]);
  await until(() => pool.unanswered > 0);
  miner.child.kill('SIGTERM');
  expect(await miner.ended()).toBe(0);
  expect(miner.out).toMatch(/mined for .*\nshares: .*[1-9]\d* lost/);
});

test('pause and resume over the API need the token', async () => {
  const pool = await fixture();
  const miner = new RunningMiner(['-o', pool.url, ...user, ...QUIET, '--api-token', 'secret']);
  const api = await miner.addressOf('api');
  await until(async () => (await stats(api)).state === 'mining');
  const post = (path: string, token?: string) =>
    fetch(`${api}${path}`, {
      method: 'POST',
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    });
  expect((await post('/v1/pause')).status).toBe(401);
  expect((await post('/v1/pause', 'wrong')).status).toBe(401);
  expect((await fetch(`${api}/v1/pause`)).status).toBe(405);
  expect((await fetch(`${api}/other`)).status).toBe(404);
  expect((await post('/v1/pause', 'secret')).status).toBe(200);
  await until(async () => (await stats(api)).state === 'paused');
  // What is under way comes to its end, then nothing moves.
  let before = -1;
  await until(async () => {
    const then = before;
    await new Promise((resolve) => setTimeout(resolve, 500));
    before = (await stats(api)).devices[0]?.hashes ?? 0;
    return before === then;
  });
  expect((await post('/v1/resume', 'secret')).status).toBe(200);
  await until(async () => ((await stats(api)).devices[0]?.hashes ?? 0) > before);
});

test('keys h, p, r and q in a terminal', async () => {
  const pool = await fixture();
  const words = [process.execPath, MAIN, '-o', pool.url, ...user, ...QUIET];
  const miner = new RunningMiner([], { program: ['script', '-qfec', words.join(' '), '/dev/null'] });
  const press = (key: string) => miner.child.stdin?.write(key);
  await miner.says('share accepted');
  press('h');
  await miner.says('total: ');
  press('p');
  await miner.says('paused');
  press('r');
  await miner.says('resumed');
  press('q');
  expect(await miner.ended()).toBe(0);
  expect(miner.out).toContain('key q');
});

test('a changed config file takes effect without a restart; a wrong one is reported and not used', async () => {
  const first = await fixture();
  const second = await fixture();
  const directory = temporaryDirectory();
  const config = join(directory, 'miner.json');
  const write = (values: Record<string, unknown>) => writeFileSync(config, JSON.stringify(values));
  write({ pool: [first.url], user: `${MINER_ADDRESS}.rig1` });
  const miner = new RunningMiner(['--config', config, ...QUIET]);
  await until(() => first.accepted >= 1);
  write({ pool: [], usr: 'x' });
  await miner.says('the config file is not used');
  await miner.says('did you mean \\"user\\"?');
  // A file without an end in its place is not read.
  rmSync(config);
  symlinkSync('/dev/zero', config);
  await miner.says('is not a regular file');
  rmSync(config);
  write({ pool: [second.url], user: `${MINER_ADDRESS}.rig2` });
  await until(() => second.accepted >= 1);
  expect([...second.clients][0]?.username).toBe(`${MINER_ADDRESS}.rig2`);
  await until(() => first.clients.size === 0);
  expect(miner.exit).toBeUndefined();
  write({ pool: [second.url], user: `${MINER_ADDRESS}.rig2`, throttle: 20 });
  await miner.says('throttle changed percent=20');
  const unthrottled = second.accepted;
  await until(() => second.accepted > unthrottled);
  write({ pool: [second.url], user: `${MINER_ADDRESS}.rig2`, throttle: 20, light: true });
  await miner.says('devices changed');
  const accepted = second.accepted;
  second.options.shareWork = 100n;
  second.notify(true);
  await until(() => second.accepted > accepted);
});

if (level === 'deep')
  test('a pool that pays somebody else: named, refused, and no share goes there', async () => {
    const thief = await fixture({ payTo: THIEF_ADDRESS });
    const miner = new RunningMiner(['-o', thief.url, ...user, ...QUIET]);
    await miner.says('the job does not pay your address');
    await miner.says('job_pays_other');
    expect(thief.judged).toEqual([]);
    expect(miner.exit).toBeUndefined();
  });

test('log file and JSON log; the dataset is kept on disk, and built again when its file is damaged', async () => {
  const pool = await fixture();
  const directory = temporaryDirectory();
  const log = join(directory, 'miner.log');
  const words = [
    '-o',
    pool.url,
    ...user,
    ...QUIET,
    '--data-dir',
    directory,
    '--log-file',
    log,
    '--log-format',
    'json',
    '--log-file-size',
    '1KiB',
    '--log-file-count',
    '2',
    '--log-level',
    'debug',
  ];
  const miner = new RunningMiner(words);
  const news = setInterval(() => pool.notify(), 500);
  onTestFinished(() => clearInterval(news));
  await until(() => existsSync(`${log}.1`) && readdirSync(directory).some((name) => /^dataset-.*bin$/.test(name)));
  miner.child.kill('SIGTERM');
  expect(await miner.ended()).toBe(0);
  expect(miner.err).toBe('');
  const file = join(directory, readdirSync(directory).find((name) => /^dataset-.*bin$/.test(name)) as string);
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
  for (const damaged of [bytes, bytes.subarray(0, bytes.length >> 1)].slice(0, count({ full: 1, deep: 2 }))) {
    writeFileSync(file, damaged);
    const before = pool.accepted;
    const again = new RunningMiner(['-o', pool.url, ...user, ...QUIET, '--data-dir', directory]);
    await again.says('dataset file is damaged, building it again');
    await until(() => pool.accepted > before);
    again.child.kill('SIGTERM');
    expect(await again.ended()).toBe(0);
  }
  expect(pool.judged.every(({ code }) => code === 0)).toBe(true);
});

function runOnce(words: readonly string[]): { code: number; out: string; err: string } {
  try {
    const env = { ...process.env, HOME: temporaryDirectory() };
    const out = execFileSync(process.execPath, [MAIN, ...words], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
    });
    return { code: 0, out, err: '' };
  } catch (error) {
    const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string };
    return { code: status, out: stdout, err: stderr };
  }
}

test.each([
  [[], 'no pool is named'],
  [['-o', 'pool.example'], 'no address is named'],
  [['-o', 'http://x', '-u', MINER_ADDRESS], 'is not a known scheme'],
  [['-o', 'pool.example', '-u', 'nonsense'], 'not an address'],
  [['-o', 'pool.example', '-u', `${MINER_ADDRESS.slice(0, -1)}q`], 'checksum'],
  [['--tls-pin', 'ab'], '64 hex characters'],
  [['--devices', 'x'], 'numbers of --list-devices'],
  [['--no-gpu', '--devices', '5', '--benchmark', '1'], 'there is no device 5'],
  [['--poool', 'x'], 'did you mean --pool?'],
])('%j is a usage error with exit code 2', async (words, message) => {
  const said: string[] = [];
  const terminal = { out: () => undefined, err: (text: string) => void said.push(text), readText: () => '', env: {} };
  const command = mineCommand({ input: process.stdin, isTerminal: false });
  expect(await command.start(words, terminal)).toBe(2);
  expect(said.join('')).toContain(message);
});

test('no device at all: exit code 3', () => {
  const { code, err } = runOnce(['--no-gpu', '--cpu-threads', '0', '--benchmark', '1']);
  expect(err).toContain('device_none');
  expect(code).toBe(3);
});

test('lists devices and measures them, for people and for programs', () => {
  const listed = JSON.parse(runOnce(['--list-devices', '--no-gpu', '--json']).out);
  expect(listed.devices).toMatchObject([{ number: 0, kind: 'wasm' }]);
  if (level === 'deep') expect(runOnce(['--list-devices', '--no-gpu']).out).toMatch(/^0 {2}.*processor/);
  const words = [
    '--benchmark',
    '1',
    '--benchmark-jobs',
    '250ms',
    '--no-gpu',
    '--cpu-threads',
    '1',
    '--network',
    'development',
  ];
  const figures = JSON.parse(runOnce([...words, '--json']).out);
  expect(figures).toMatchObject({ network: 'development', seconds: 1, devices: [{ number: 0, kind: 'wasm' }] });
  expect(figures.hash_rate).toBeGreaterThan(0);
  if (level === 'deep') expect(runOnce(words).out).toMatch(/^total: .* over 1 s on development$/m);
});

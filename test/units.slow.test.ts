/**
 * The units of deploy/systemd and the install steps of docs/operations.md, followed with plain users: wallet and pool run as two of
 * them, the pool calls the wallet with the token that systemd hands it, and neither can read what is the other's.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../runtime/free-port.ts';
import { lookAround } from '../scripts/ready/system-packages.mjs';
import { Program, type ProgramOptions } from './bridge/program.ts';
import { shellLines } from './guards/documented-lines.ts';
import { FILES, read } from './guards/project-files.ts';
import { canBeOthers, may } from './ordinary-user.ts';
import { startPostgresServer } from './pool/postgres-server.ts';
import { temporaryDirectory } from './temporary.ts';

const ROOT = join(import.meta.dirname, '..');
const UNITS = FILES.filter((path) => path.startsWith('deploy/systemd/'));
/** Numbers that no account of a machine has. */
const USERS: Record<string, number> = { svc: 64_001, 'svc-wallet': 64_002, 'svc-pool': 64_003 };

type Unit = { readonly get: (name: string) => string; readonly all: (name: string) => readonly string[] };

function readUnit(path: string, place: (text: string) => string): Unit {
  const lines = read(path)
    .split('\n')
    .map((line) => /^([A-Z]\w+)=(.*)$/.exec(line))
    .filter((match) => match !== null);
  const all = (name: string) => lines.filter((match) => match[1] === name).map((match) => place(match[2] as string));
  return { all, get: (name) => all(name)[0] ?? '' };
}

/** Where this test's files take the place of the machine's. */
const places = (folder: string) => (text: string) =>
  text
    .replaceAll('/etc/svc', `${folder}/etc`)
    .replaceAll('/etc/systemd/system', `${folder}/systemd`)
    .replaceAll('/var/lib/', `${folder}/lib/`);

/** The page's lines that put files in their places, and the one that makes the wallet, by the numbers of users whom this machine does not have. */
const pageSteps = (place: (text: string) => string, isOthers: boolean): string[] =>
  shellLines()
    .filter(({ page, line }) => page === 'docs/operations.md' && /^(?:install|runuser) /.test(line))
    .map(({ line }) =>
      place(line)
        .replaceAll(/ -([og]) ([a-z-]+)/g, (_, option, name) => (isOthers ? ` -${option} ${USERS[name]}` : ''))
        .replace(/^runuser -u ([a-z-]+) --/, (_, name) =>
          isOthers ? `setpriv --reuid ${USERS[name]} --regid ${USERS[name]} --clear-groups --` : '',
        ),
    );

function follow(line: string, cwd: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd, encoding: 'utf8' });
  expect(status, `${line}: ${stderr}`).toBe(0);
  return stdout + stderr;
}

test('wallet and pool as two users: the pool calls the wallet with a token whose file it cannot read', async () => {
  const folder = temporaryDirectory();
  chmodSync(folder, 0o755);
  const place = places(folder);
  const isOthers = canBeOthers();
  const as = (name: string): ProgramOptions =>
    isOthers ? { uid: USERS[name] as number, gid: USERS[name] as number } : {};
  const own = (path: string, name: string, mode: number) => {
    if (isOthers) chownSync(path, USERS[name] as number, USERS[name] as number);
    chmodSync(path, mode);
    return path;
  };
  const postgres = await startPostgresServer(10);
  onTestFinished(() => postgres.stop());
  mkdirSync(join(folder, 'lib'));

  // The config files of docs/operations.md, with free ports and a database of this test.
  const [api = 0, mining = 0, rpc = 0, pplns = 0, solo = 0, pplnsWs = 0, soloWs = 0, web = 0] = await freePorts(8);
  const at = (port: number) => `127.0.0.1:${port}`;
  const [nodeJson, walletJson, poolJson] = [...read('docs/operations.md').matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, text = '']) => JSON.parse(place(text)) as Record<string, unknown>,
  ) as [object, object, Record<string, unknown>];
  const configs = {
    node: { ...nodeJson, 'api-bind': at(api), 'mining-bind': at(mining), 'cut-millis': 500, 'pow-mode': 'light' },
    wallet: { ...walletJson, listen: at(rpc), service: `http://${at(api)}` },
    pool: {
      ...poolJson,
      database: postgres.url,
      node: [`http://${at(mining)}`],
      'node-api': [`http://${at(api)}`],
      wallet: `http://${at(rpc)}`,
      'pplns-listen': at(pplns),
      'solo-listen': at(solo),
      'web-bind': at(web),
      'pplns-listen-ws': at(pplnsWs),
      'solo-listen-ws': at(soloWs),
      threads: 0,
      'pow-mode': 'light',
      'verify-threads': 1,
    },
  };
  const desk = join(folder, 'desk');
  mkdirSync(desk);
  for (const name of ['bin', 'deploy']) symlinkSync(join(ROOT, name), join(desk, name));
  for (const [name, config] of Object.entries(configs))
    writeFileSync(join(desk, `${name}.json`), JSON.stringify(config));
  mkdirSync(join(folder, 'systemd'));
  const [init = '', ...installs] = pageSteps(place, isOthers).toReversed();
  for (const line of installs.toReversed()) follow(line, desk);
  for (const path of UNITS.filter((one) => !/bridge|proxy|miner|@/.test(one)))
    expect(existsSync(path.replace('deploy/systemd', join(folder, 'systemd'))), path).toBe(true);

  /** What systemd does for a unit, as far as it concerns users and files. */
  const start = (name: string): Program => {
    const unit = readUnit(`deploy/systemd/${name}.service`, place);
    const user = unit.get('User');
    const state = join(folder, 'lib', unit.get('StateDirectory'));
    mkdirSync(state, { recursive: true });
    own(state, user, Number.parseInt(unit.get('StateDirectoryMode'), 8));
    const credentials = join(folder, `credentials-${name}`);
    mkdirSync(credentials);
    for (const line of unit.all('LoadCredential')) {
      const [id = '', from = ''] = line.split(/:(.*)/);
      copyFileSync(from, join(credentials, id));
      own(join(credentials, id), user, 0o400);
    }
    own(credentials, user, 0o500);
    const [command = '', ...words] = unit
      .get('ExecStart')
      .replaceAll(/\$\{CREDENTIALS_DIRECTORY\}/g, credentials)
      .split(' ');
    expect(command).toBe(`/opt/svc-stratum/bin/${name}`);
    const program = new Program(name, words, { ...as(user), env: { CREDENTIALS_DIRECTORY: credentials } });
    for (const line of unit.all('ExecStartPost')) {
      const [, shell = '', script = ''] = /^(\S+) -c '(.*)'$/.exec(line) ?? [];
      expect(spawnSync(shell, ['-c', script], { ...as(user), timeout: 240_000 }).status, program.output).toBe(0);
    }
    return program;
  };

  await start('svcd').until(/(public API) address/);
  expect(follow(init, desk)).toContain('24 words');
  start('svc-wallet');
  const poolProgram = start('svc-pool');
  // Its first start asks the wallet for an address: the token was good.
  expect(await poolProgram.until(/blocks pay the pool address=(\S+)/)).toMatch(/^dsvc1/);
  await poolProgram.until(/(ready) healthy=true/);

  // Made after the doors for miners are open.
  await expect.poll(() => existsSync(join(folder, 'lib/svc-pool/operator.token'))).toBe(true);
  const secrets: [string, string][] = [
    ['svc-wallet', 'lib/svc-wallet/wallet.json.token'],
    ['svc-wallet', 'lib/svc-wallet/wallet.json.password'],
    ['svc-wallet', 'lib/svc-wallet/wallet.json'],
    ['svc-pool', 'lib/svc-pool/operator.token'],
    ['svc-pool', 'credentials-svc-pool/wallet-token'],
    ['svc-pool', 'etc/pool.json'],
  ];
  for (const [owner, path] of isOthers ? secrets : [])
    for (const user of Object.keys(USERS))
      expect([path, user, may(as(user), 'cat', join(folder, path))]).toEqual([path, user, user === owner]);
});

test('systemd finds no fault with the units', () => {
  expect(UNITS).toHaveLength(7);
  for (const path of UNITS) expect(read(path), path).toMatch(/^NoNewPrivileges=true$/m);
  if (!lookAround(process.env).command('systemd-analyze')) return;
  const folder = temporaryDirectory();
  const copies = UNITS.map((path) => {
    const copy = join(folder, path.split('/').at(-1) as string);
    writeFileSync(copy, read(path).replaceAll('/opt/svc-stratum', ROOT));
    return copy;
  });
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', '--generators=no', ...copies], {
    encoding: 'utf8',
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
  });
  const complaints = stderr.split('\n').filter((line) => line.includes(folder) || /svc(d|-\w+)@?\.service/.test(line));
  expect({ status, complaints }).toEqual({ status: 0, complaints: [] });
});

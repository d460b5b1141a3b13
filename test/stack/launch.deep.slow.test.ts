/**
 * docs/launch.md with real processes: five validators on what looks like five machines (network namespaces; loopback where those cannot be made) launch a network, the first
 * cut becomes final, a pool and a rig work on it, and a faucet pays within its limits. The programs are those of the Debian packages, in an empty Debian; where
 * none can be made they are those of this checkout.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../../runtime/free-port.ts';
import { ordinaryUser } from '../ordinary-user.ts';
import { installedSystem } from '../scripts/built-packages.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const MACHINES = 5;
const NET = '10.78.6';
const OVERLAY = 28_704;
const PEERS = 28_705;
const TAG = process.pid % 10_000;
const BRIDGE = `svclb${TAG}`;
const MAINS = {
  svcd: 'node/main.ts',
  'svc-wallet': 'wallet/main.ts',
  'svc-pool': 'pool/main.ts',
  'svc-miner': 'miner/main.ts',
} as const;
type ProgramName = keyof typeof MAINS;

/** Where a machine's programs run and listen. */
type Machine = {
  readonly host: string;
  readonly namespace: string | undefined;
  readonly ports: Readonly<Record<'overlay' | 'peers' | 'api' | 'mining', number>>;
};

const ip = (...words: string[]) => execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] });
const namespaceOf = (i: number): string => `svcl${process.pid}n${i}`;

function buildNamespaces(): Machine[] {
  ip('link', 'add', BRIDGE, 'type', 'bridge');
  ip('addr', 'add', `${NET}.254/24`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  return Array.from({ length: MACHINES }, (_, i) => {
    const namespace = namespaceOf(i);
    ip('netns', 'add', namespace);
    ip('link', 'add', `svclv${TAG}${i}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    ip('link', 'set', `svclv${TAG}${i}`, 'master', BRIDGE, 'up');
    ip('-n', namespace, 'addr', 'add', `${NET}.${i + 1}/24`, 'dev', 'eth0');
    for (const device of ['eth0', 'lo']) ip('-n', namespace, 'link', 'set', device, 'up');
    return {
      host: `${NET}.${i + 1}`,
      namespace,
      ports: { overlay: OVERLAY, peers: PEERS, api: 28_701, mining: 28_702 },
    };
  });
}

function removeNamespaces(): void {
  const names = Array.from({ length: MACHINES }, (_, i) => ['netns', 'del', namespaceOf(i)]);
  for (const words of [...names, ['link', 'del', BRIDGE]])
    try {
      ip(...words);
    } catch {
      // It was not made.
    }
}

async function machines(): Promise<Machine[]> {
  try {
    return buildNamespaces();
  } catch (error) {
    removeNamespaces();
    console.log(`on loopback: network namespaces cannot be made here (${(error as Error).message.split('\n')[0]})`);
    const ports = await freePorts(4 * MACHINES);
    return Array.from({ length: MACHINES }, (_, i) => {
      const [overlay = 0, peers = 0, api = 0, mining = 0] = ports.slice(4 * i);
      return { host: '127.0.0.1', namespace: undefined, ports: { overlay, peers, api, mining } };
    });
  }
}

/** PostgreSQL does not run as root. */
const { uid, gid } = ordinaryUser();

/** The Debian that the packages are installed in. */
let system: string | undefined;
/** As programs in there see it. */
const seen = (text: string): string => (system === undefined ? text : text.replaceAll(system, ''));

type Line = { readonly words: readonly string[]; readonly cwd: string; readonly isOrdinary?: boolean };

function lineOf(machine: Machine | undefined, program: ProgramName, { words, cwd, isOrdinary = false }: Line) {
  const inside = machine?.namespace === undefined ? [] : ['ip', 'netns', 'exec', machine.namespace];
  const asUser =
    isOrdinary && uid !== undefined ? ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : [];
  if (system !== undefined) {
    const where = ['env', '-i', `--chdir=${seen(cwd)}`, `HOME=${seen(cwd)}`, 'PATH=/usr/bin:/bin'];
    return [...inside, 'chroot', system, ...asUser, ...where, `/usr/bin/${program}`, ...words.map(seen)];
  }
  const main = fileURLToPath(new URL(`../../${MAINS[program]}`, import.meta.url));
  return [...inside, ...asUser, process.execPath, main, ...words];
}

class Running {
  readonly #child: ChildProcess;
  output = '';

  constructor([file = '', ...words]: readonly string[], cwd: string) {
    this.#child = spawn(file, words, { cwd, env: { ...process.env, HOME: cwd }, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (part: Buffer) => {
        this.output = (this.output + part).slice(-40_000);
      });
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  async said(what: RegExp): Promise<void> {
    await until(() => {
      if (this.exitCode !== null) throw new Error(`it ended:\n${this.output}`);
      return what.test(this.output);
    });
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await gone;
  }
}

type Answer = { readonly status: number; readonly body: Record<string, unknown> };

async function ask(url: string, body?: object): Promise<Answer | undefined> {
  try {
    const answer = await fetch(url, {
      signal: AbortSignal.timeout(20_000),
      ...(body !== undefined && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  } catch {
    return undefined;
  }
}

test('five strangers launch a network: the first cut is final, a pool and a rig work, a faucet pays within its limits', async () => {
  system = installedSystem();
  const directory = system === undefined ? temporaryDirectory() : mkdtempSync(join(system, 'tmp/launch-'));
  const running: Running[] = [];
  const places = await machines();
  onTestFinished(async () => {
    await Promise.all(running.map((program) => program.end()));
    removeNamespaces();
  });
  const [first] = places as [Machine];
  const start = (
    machine: Machine,
    program: ProgramName,
    words: readonly string[],
    isOrdinary = false,
    cwd = directory,
  ) => {
    const started = new Running(lineOf(machine, program, { words, cwd, isOrdinary }), cwd);
    running.push(started);
    return started;
  };
  /** A command that ends; its JSON. */
  const runs = async (program: ProgramName, words: readonly string[], machine?: Machine, code = 0) => {
    const ran = new Running(lineOf(machine, program, { words: [...words, '--json'], cwd: directory }), directory);
    await until(() => ran.exitCode !== null);
    expect({ words, code: ran.exitCode, output: ran.output }).toMatchObject({ code });
    return JSON.parse(ran.output.slice(ran.output.indexOf('{'))) as Record<string, unknown>;
  };
  const wallet = async (name: string): Promise<string> => {
    await runs('svc-wallet', ['init', '--file', `${name}.json`, '--generate-password']);
    return String((await runs('svc-wallet', ['new-address', '--file', `${name}.json`])).address);
  };
  const [treasury, giver, owner, newcomer] = [
    await wallet('treasury'),
    await wallet('faucet'),
    await wallet('owner'),
    await wallet('newcomer'),
  ];

  // The coordinator invites, and validators answer on their machines.
  const launch = ['launch', 'harbour', '--network', 'development', '--validators', String(MACHINES)];
  const terms = [
    '--treasury',
    treasury,
    '--faucet',
    `${giver}=10000`,
    '--cut-millis',
    '1000',
    '--initial-work',
    '20000',
  ];
  const begun = await runs('svcd', [...launch, ...terms, '--minimum-work', '20000']);
  expect(begun).toMatchObject({ state: 'invited', validators: MACHINES });
  const invitation = join(directory, 'harbour/invitation.json');
  const validators: string[] = [];
  for (const [i, { host, ports }] of places.entries()) {
    const routes = ['--route', `${host}:${ports.overlay}`, '--peer', `${host}:${ports.peers}`];
    const joined = await runs('svcd', ['join', invitation, '--owner', owner, ...routes, '--out', `v${i}`], places[i]);
    validators.push(String(joined.validator));
    copyFileSync(join(directory, `v${i}/registration.json`), join(directory, `harbour/registrations/v${i}.json`));
    const state = i < MACHINES - 1 ? 'waiting' : 'ready';
    expect(await runs('svcd', launch)).toMatchObject({ state });
  }
  const { chain_id: chain } = await runs('svcd', launch);
  for (const [i, validator] of validators.entries()) {
    const bundle = join(directory, `harbour/network/bundles/harbour-${validator.slice(0, 16)}.json`);
    const taken = await runs('svcd', ['join', bundle, '--out', `v${i}`], places[i]);
    expect(taken).toMatchObject({ state: 'ready', chain_id: chain, validator });
  }

  const binds = ({ host, ports }: Machine) => [
    '--api-bind',
    `${host}:${ports.api}`,
    '--mining-bind',
    `127.0.0.1:${ports.mining}`,
    '--signature-threads',
    '1',
  ];
  const config = (i: number) => join(directory, `v${i}/node.json`);
  for (const [i, machine] of places.entries())
    start(machine, 'svcd', ['run', '--config', config(i), ...binds(machine)]);
  const api = ({ host, ports }: Machine) => `http://${host}:${ports.api}`;
  for (const machine of places)
    await until(async () => Number((await ask(`${api(machine)}/v1/node/sync`))?.body.finalized_height) >= 3);
  const firstCuts = await Promise.all(
    places.map(async (machine) => {
      const page = await until(() => ask(`${api(machine)}/v1/cuts?before=2&limit=1`));
      const { cuts } = page.body as { cuts: { height: number; cut_id: string }[] };
      return `${cuts[0]?.height} ${cuts[0]?.cut_id}`;
    }),
  );
  expect(new Set(firstCuts).size).toBe(1);
  expect(firstCuts[0]).toMatch(/^1 [0-9a-f]{96}$/);

  // The doctor and the validator's own report, while it runs.
  const { findings } = (await runs('svcd', ['doctor', '--config', config(0), ...binds(first)], first)) as {
    findings: { check: string; state: string; says: string }[];
  };
  expect(findings.filter(({ state }) => state === 'bad')).toEqual([]);
  expect(findings.find(({ check }) => check === 'genesis')?.says).toContain(chain);
  expect(findings.find(({ check }) => check === 'bootstrap')?.says).toContain(`${MACHINES - 1} of ${MACHINES - 1}`);
  await until(() => {
    const words = ['validator', 'status', '--data-dir', join(directory, 'v0/node')];
    const [file = '', ...rest] = lineOf(first, 'svcd', { words, cwd: directory });
    try {
      return execFileSync(file, rest, { encoding: 'utf8' }).includes('signs                yes');
    } catch {
      return false;
    }
  });

  // A pool on the first machine, and a rig on another.
  const poolHome = join(directory, 'pool');
  mkdirSync(poolHome);
  chmodSync(directory, 0o755);
  if (uid !== undefined) chownSync(poolHome, uid, gid as number);
  const [pplns = 0, pplnsWs = 0, solo = 0, soloWs = 0, web = 0, give = 0] = await freePorts(6);
  const at = (port: number) => `${first.host}:${port}`;
  const pool = start(
    first,
    'svc-pool',
    [
      'run',
      ...['--data-dir', poolHome, '--node', `http://127.0.0.1:${first.ports.mining}`, '--node-api', api(first)],
      ...['--pplns-listen', at(pplns), '--pplns-listen-ws', at(pplnsWs), '--solo-listen', at(solo)],
      ...['--solo-listen-ws', at(soloWs), '--web-bind', at(web), '--threads', '0', '--verify-threads', '1'],
      ...['--start-work', '8000', '--pow-mode', 'light'],
    ],
    true,
    poolHome,
  );
  await pool.said(/ready healthy=true/);
  start(places.at(-1) as Machine, 'svc-miner', [
    ...['-o', `stratum+tcp://${at(pplns)}`, '-u', `${owner}.rig1`, '--cpu-threads', '1', '--throttle', '10'],
    ...['--no-gpu', '--api-bind', 'off', '--metrics-bind', 'off'],
  ]);
  await until(async () => Number((await ask(`http://${at(web)}/api/v1/miners/${owner}`))?.body.accepted) > 0);

  // The faucet on the second machine, with a wallet that reads from the second validator.
  const second = places[1] as Machine;
  const faucetAt = `http://${second.host}:${give}`;
  const faucet = start(second, 'svc-wallet', [
    ...['faucet', '--file', 'faucet.json', '--service', api(second), '--listen', `${second.host}:${give}`],
    ...['--amount', '10', '--per-network', '2'],
  ]);
  await faucet.said(/faucet ready/);
  const paid = await ask(`${faucetAt}/v1/faucet`, { address: newcomer });
  expect(paid).toMatchObject({ status: 200, body: { address: newcomer, amount: '10.00000000' } });
  expect(await ask(`${faucetAt}/v1/faucet`, { address: newcomer })).toMatchObject({ status: 429 });
  // At once: the faucet has many outputs from genesis.
  expect(await ask(`${faucetAt}/v1/faucet`, { address: treasury })).toMatchObject({ status: 200 });
  expect(await ask(`${faucetAt}/v1/faucet`, { address: owner })).toMatchObject({
    status: 429,
    body: { error: { code: 'network_limit' } },
  });
  // The rig's blocks carry it, and it is final at another validator.
  await until(async () => {
    const words = ['balance', '--file', 'newcomer.json', '--service', api(places[2] as Machine)];
    return String((await runs('svc-wallet', words, places[2])).balance) === '10.00000000';
  });
  // The bonds belong to the owner's wallet.
  const { positions } = (await runs(
    'svc-wallet',
    ['positions', '--file', 'owner.json', '--service', api(first)],
    first,
  )) as {
    positions: { kind: string; principal: string }[];
  };
  expect(positions.map(({ kind, principal }) => `${kind} ${principal}`)).toEqual(
    Array.from({ length: MACHINES }, () => 'self_bond 1000000.00000000'),
  );
});

/**
 * `npm start`: the whole stack on a development network in one terminal. Starts the programs one after another, says what
 * runs where, then a status line a minute and a line for each event. Ctrl-C stops them in the reverse order; the
 * next start goes on where this one ended.
 */
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BLOCKS_PER_CUT } from '../protocol/network.ts';
import { steadyMillis, wallMillis } from '../runtime/clock/clock.ts';
import { flag, integer, path } from '../runtime/command-line/command-line.ts';
import { lockDirectory } from '../runtime/files/directory-lock.ts';
import { isUnused } from '../runtime/free-port.ts';
import { createLogger, readLevelFilter, standardErrorSink } from '../runtime/log/log.ts';
import { command, runProgram, type Terminal } from '../runtime/program.ts';
import { Shutdown } from '../runtime/shutdown.ts';
import { endThisProcess, watchParent } from '../scripts/ready/parent.mjs';
import { readFigures } from './figures.ts';
import { NOTHING, newsOf, type PoolFigures, summary } from './news.ts';
import {
  bridgePart,
  files,
  minerPart,
  nodePart,
  type Part,
  PORTS,
  type PortName,
  type Ports,
  poolPart,
  proxyPart,
  START_PACE,
  url,
  type ValidatorPorts,
  validatorParts,
  walletPart,
} from './parts.ts';
import { PartFailed, RunningPart, runToEnd } from './process.ts';
import { ensureWallet, forgetWallet, minerAddress } from './wallets.ts';

const portOption = (name: PortName) =>
  integer({
    help: PORTS[name].what,
    group: 'Ports',
    default: PORTS[name].port,
    min: 1,
    max: 65_535,
    placeholder: 'PORT',
  });

const options = {
  reset: flag({ help: 'delete the chain, the wallets and the books of earlier runs' }),
  miner: flag({ help: 'mine with one CPU thread', default: true }),
  gpu: flag({ help: 'mine with the graphics cards instead' }),
  throttle: integer({
    help: 'percent of the time that the miner works, as its own option of this name',
    min: 5,
    max: 100,
    placeholder: 'PERCENT',
  }),
  proxy: flag({ help: 'put a proxy between the miner and the pool' }),
  validators: integer({
    help: 'validators, each in a node of its own; with 1 a single node signs for four',
    default: 1,
    min: 1,
    max: 7,
  }),
  dataDir: path({ help: 'where everything is kept', default: '.data/stack', placeholder: 'DIR' }),
  apiPort: portOption('api'),
  miningPort: portOption('mining'),
  walletPort: portOption('wallet'),
  pplnsPort: portOption('pplns'),
  pplnsWsPort: portOption('pplnsWs'),
  soloPort: portOption('solo'),
  soloWsPort: portOption('soloWs'),
  webPort: portOption('web'),
  bridgePort: portOption('bridge'),
  bridgeWsPort: portOption('bridgeWs'),
  bridgeStatsPort: portOption('bridgeStats'),
  proxyPort: portOption('proxy'),
  proxyStatsPort: portOption('proxyStats'),
  proxyWebPort: portOption('proxyWeb'),
  minerApiPort: portOption('minerApi'),
  validatorPort: integer({
    help: 'first port of separate validators: their overlays, the APIs of those beside the first, and their peers',
    group: 'Ports',
    default: 28750,
    min: 1,
    max: 65_500,
    placeholder: 'PORT',
  }),
} as const;

const STATUS_MILLIS = 60_000;
const POLL_MILLIS = 1000;
const AGAIN_MILLIS = 1000;
/** Each of seven programs has twenty seconds before it is killed (process.ts). */
const STOP_LIMIT_MS = 170_000;

async function checkPort(port: number, what: string, option: string): Promise<void> {
  if (!(await isUnused(port)))
    throw new PartFailed(
      `port ${port} for ${what} is in use: stop what listens there, or choose another with ${option} PORT`,
    );
}

async function checkPorts(ports: Ports, validators: readonly ValidatorPorts[], hasProxy: boolean): Promise<void> {
  const names = (Object.keys(PORTS) as PortName[]).filter((name) => hasProxy || !name.startsWith('proxy'));
  for (const name of names) await checkPort(ports[name], PORTS[name].what, PORTS[name].option);
  for (const { overlay, api, peers } of validators)
    for (const port of [overlay, api, peers])
      if (port !== ports.api) await checkPort(port, 'a validator', '--validator-port');
}

/** None where one node signs for all. */
function portsOfValidators(count: number, first: number, ports: Ports): ValidatorPorts[] {
  if (count === 1) return [];
  return Array.from({ length: count }, (_, member) => ({
    overlay: first + member,
    api: member === 0 ? ports.api : first + count + member - 1,
    peers: first + 2 * count + member - 1,
  }));
}

async function ensureNetwork(directory: string, validators: number, initialWork: readonly string[]): Promise<void> {
  if (existsSync(join(directory, 'genesis.json'))) {
    if (existsSync(join(directory, 'validator-0.json'))) return;
    throw new PartFailed(`the network in ${directory} is of an earlier release: begin a new one with --reset`);
  }
  const words = ['--out', directory, '--validators', String(validators), ...initialWork];
  await runToEnd('svcd', ['development-network', ...words]);
}

type Measured = { readonly rate: number; readonly hasCard: boolean };

/** Tunes the cards too, if they never were; what is found is kept for the miner. */
async function measureDevices(minerData: string): Promise<Measured> {
  const words = ['--benchmark', '1', '--network', 'development', '--json', '--data-dir', minerData];
  const { hash_rate: rate, devices } = JSON.parse(await runToEnd('svc-miner', words)) as {
    hash_rate: number;
    devices: readonly { kind: string }[];
  };
  return { rate, hasCard: devices.some(({ kind }) => kind === 'webgpu') };
}

/**
 * The work that a new chain begins with, so that the devices which will mine on it find its usual number of blocks a cut
 * from the first on: on a chain made for one processor thread a graphics card would find hundreds of blocks a second
 * until the chain has followed.
 */
const workForRate = (rate: number, cutMillis: number): number =>
  Math.max(1, Math.round((rate * cutMillis) / 1000 / Number(BLOCKS_PER_CUT)));

/** Options of a new chain that graphics cards will mine on; none for one that exists, which has followed its miners. */
async function initialWorkFor(data: string, stack: Stack): Promise<string[]> {
  if (existsSync(files(data).node)) return [];
  stack.say('measuring the graphics cards, so that the new chain fits them; the first time they are tuned too');
  const { rate, hasCard } = await measureDevices(files(data).miner);
  if (!hasCard) stack.say('no graphics card can be used: the processor mines; svc-miner --list-devices says why');
  return ['--initial-work', String(workForRate(rate, START_PACE.cutMillis))];
}

class Stack {
  readonly #terminal: Terminal;
  readonly #signal: AbortSignal;
  readonly #running: RunningPart[] = [];
  readonly #kept = new Map<string, RunningPart>();

  constructor(terminal: Terminal, signal: AbortSignal) {
    this.#terminal = terminal;
    this.#signal = signal;
  }

  say(line: string): void {
    this.#terminal.out(`${new Date().toTimeString().slice(0, 8)}  ${line}\n`);
  }

  async start(part: Part): Promise<void> {
    this.#signal.throwIfAborted();
    const running = new RunningPart(part);
    this.#running.push(running);
    await running.ready(this.#signal);
    this.say(`${part.name.padEnd(8)}${part.where}`);
  }

  /** A part that is restarted whenever it ends by itself: the others work without it meanwhile. */
  async keep(part: Part): Promise<void> {
    this.#signal.throwIfAborted();
    const run = () => {
      const running = new RunningPart(part);
      this.#kept.set(part.name, running);
      void running.exited.then(async () => {
        if (this.#signal.aborted) return;
        this.say(`${part.name} ended and is started again: ${running.lastWords || 'see its log'}`);
        await sleep(AGAIN_MILLIS, undefined, { signal: this.#signal }).then(run, () => undefined);
      });
      return running;
    };
    await run().ready(this.#signal);
    this.say(`${part.name.padEnd(8)} ${part.where}`);
  }

  /** Resolves with the first part that ends by itself. */
  firstEnd(): Promise<RunningPart> {
    return Promise.race(this.#running.map((part) => part.exited.then(() => part)));
  }

  /** For a program that is stopping this is the second signal, which ends it. */
  endAtOnce(): void {
    for (const part of [...this.#running, ...this.#kept.values()]) part.askAgain();
  }

  async stop(): Promise<void> {
    for (const part of this.#running.reverse()) await part.stop();
    await Promise.all([...this.#kept.values()].map((part) => part.stop()));
  }
}

async function watch(stack: Stack, webUrl: string, isNew: boolean, signal: AbortSignal): Promise<void> {
  let before: PoolFigures | undefined = isNew ? NOTHING : undefined;
  let toldAt = performance.now();
  while (!signal.aborted) {
    const now = await readFigures(webUrl);
    if (now !== undefined) {
      for (const line of newsOf(before, now)) stack.say(line);
      if (performance.now() - toldAt >= STATUS_MILLIS) {
        stack.say(summary(now));
        toldAt = performance.now();
      }
      before = now;
    }
    await sleep(POLL_MILLIS, undefined, { signal }).catch(() => undefined);
  }
}

type Plan = {
  readonly data: string;
  readonly ports: Ports;
  readonly validators: readonly ValidatorPorts[];
  readonly reset: boolean;
  readonly miner: boolean;
  readonly gpu: boolean;
  readonly throttle: number | undefined;
  readonly proxy: boolean;
};

/** Resolves when everything runs, with whether this is the first start of its data. */
async function startAll(stack: Stack, plan: Plan): Promise<boolean> {
  const { data, ports, validators, gpu, proxy } = plan;
  const { poolWallet, minerWallet, logs, network } = files(data);
  await checkPorts(ports, validators, proxy);
  if (plan.reset) {
    for (const entry of Object.values(files(data))) await rm(entry, { recursive: true, force: true });
    for (const wallet of [poolWallet, minerWallet]) await forgetWallet(wallet);
  }
  await mkdir(logs, { recursive: true });
  stack.say(`starting; logs are in ${logs}`);
  const initialWork = gpu ? await initialWorkFor(data, stack) : [];
  if (validators.length === 0) await stack.start(nodePart(data, ports, START_PACE, initialWork));
  else {
    await ensureNetwork(network, validators.length, initialWork);
    const [node, ...others] = validatorParts(data, ports, START_PACE, validators);
    await Promise.all([stack.start(node as Part), ...others.map((part) => stack.keep(part))]);
  }
  const isNew = await ensureWallet(poolWallet);
  if (isNew) stack.say(`made a wallet for the pool: ${poolWallet}`);
  await stack.start(walletPart(data, ports));
  await stack.start(poolPart(data, ports, START_PACE));
  await stack.start(bridgePart(data, ports));
  if (plan.miner || gpu || proxy) {
    await ensureWallet(minerWallet);
    const address = await minerAddress(minerWallet, url(ports.api));
    if (proxy) await stack.start(proxyPart(data, ports, address));
    const how = { port: proxy ? ports.proxy : ports.pplns, throttle: plan.throttle };
    if (plan.miner || gpu) await stack.start(minerPart(data, ports, address, gpu, how));
    stack.say(`the miner is paid at ${address}, wallet ${minerWallet}`);
  }
  stack.say(
    `the operator’s page is at ${url(ports.web)}/#/operator, its token in ${join(files(data).pool, 'operator.token')}`,
  );
  stack.say(`the page is at ${url(ports.web)}/ — Ctrl-C stops everything`);
  return isNew;
}

/** Only what goes wrong while it stops: the rest is said in `say`. */
const faultLog = () =>
  createLogger(
    'start',
    { filter: readLevelFilter('warn'), format: 'text' },
    { sink: standardErrorSink, now: wallMillis },
  );

const start = command(
  {
    name: 'npm start',
    typed: 'npm start --',
    summary: 'Runs node, wallet, pool, bridge, dashboard and a miner on a development network.',
    options,
    examples: [
      { line: 'npm start', says: 'everything, with one CPU miner' },
      { line: 'npm start -- --throttle 20', says: 'the miner works a fifth of the time' },
      { line: 'npm start -- --reset', says: 'begin with a new chain' },
      { line: 'npm start -- --proxy', says: 'with a proxy between the miner and the pool' },
      { line: 'npm start -- --validators 4', says: 'four nodes, each with a validator, the pool at the first' },
    ],
  },
  async (values, _operands, terminal) => {
    const ports = Object.fromEntries(
      (Object.keys(PORTS) as PortName[]).map((name) => [name, values[`${name}Port`]]),
    ) as Ports;
    const validators = portsOfValidators(values.validators, values.validatorPort, ports);
    // A new chain needs new wallets and books.
    const data = resolve(values.dataDir, ...(validators.length === 0 ? [] : [`validators-${validators.length}`]));
    const shutdown = new Shutdown({ limitMs: STOP_LIMIT_MS }, { log: faultLog(), process, now: steadyMillis });
    const { signal } = shutdown;
    const stack = new Stack(terminal, signal);
    signal.addEventListener('abort', () => stack.say('stopping'));
    process.once('exit', () => stack.endAtOnce());
    await mkdir(data, { recursive: true });
    const lock = lockDirectory(data);
    shutdown.add('lock', () => lock.release());
    shutdown.add('programs', () => stack.stop());
    const up = startAll(stack, { ...values, data, ports, validators });
    // A start that is cut short still ends its own steps (a wallet that is being made) before the programs are stopped.
    shutdown.add('start', async () => void (await up.catch(() => undefined)));
    let defect: unknown;
    const watched = async (): Promise<void> => {
      const isNew = await up;
      void watch(stack, url(ports.web), isNew, signal);
      const { part, lastWords } = await stack.firstEnd();
      throw new PartFailed(`${part.name} ended by itself: ${lastWords || `see its log in ${files(data).logs}`}`);
    };
    watched().catch((error: unknown) => {
      if (signal.aborted) return;
      if (error instanceof PartFailed) terminal.err(`${error.message}\n`);
      else defect = error;
      shutdown.request('a program failed', 1);
    });
    const code = await shutdown.done;
    if (defect !== undefined) throw defect;
    return code;
  },
);

watchParent(endThisProcess);
await runProgram(start);

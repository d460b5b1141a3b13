/**
 * A whole stack for tests: node, wallet, pool and miner as the processes that `npm start` would run, on free ports
 * with a data directory of their own, at a pace that brings a payout within half a minute.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../runtime/free-port.ts';
import {
  bridgePart,
  files,
  minerPart,
  nodePart,
  type Pace,
  type Part,
  PORTS,
  type PortName,
  type Ports,
  poolPart,
  url,
  validatorParts,
  walletPart,
} from '../../stack/parts.ts';
import { RunningPart, runToEnd } from '../../stack/process.ts';
import { oneValidator } from '../one-validator.ts';
import { bringCluster } from '../pool/ready-cluster.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';

const PACE: Pace = { cutMillis: 80, sliceCuts: 12, payoutInterval: '1s' };

/** A free port for each part of the stack. */
export async function stackPorts(): Promise<Ports> {
  const names = Object.keys(PORTS) as PortName[];
  const ports = await freePorts(names.length);
  return Object.fromEntries(names.map((name, i) => [name, ports[i]])) as Ports;
}

/** About a block a second of a miner with a twentieth of one core. */
export const MINED_BLOCK = 20_000;

export type StackOptions = {
  readonly pace?: Partial<Pace>;
  /** Options of svc-pool beside those of `npm start`. */
  readonly poolWords?: readonly string[];
  /** Options of svc-miner: without them it leaves nearly all of the processor to the others. */
  readonly minerWords?: readonly string[];
  /**
   * Hashes of a block at the start and at least. A chain follows its miners to four blocks a cut: fifty a second at this pace, and each of
   * them costs every program something. Without it a block takes few hashes, for rigs that make few.
   */
  readonly blockWork?: number;
  /** Ports at which the other parts reach the node, where something is in between. */
  readonly nodeSeenAt?: () => Promise<Pick<Ports, 'api' | 'mining'>>;
  /** So many separate validators instead of one inside the node. */
  readonly validators?: number;
};

/** Few threads and no dataset: each takes half a second of a start, and these chains have few blocks and shares. */
const SMALL_NODE = ['--pow-mode', 'light', '--signature-threads', '1'];
const SMALL_LISTENERS = ['--threads', '1', '--verify-threads', '1', '--pow-mode', 'light'];

const withWords = (part: Part, more: readonly string[]): Part => ({ ...part, words: [...part.words, ...more] });

export class StackFixture {
  readonly data: string;
  readonly ports: Ports;
  readonly #pace: Pace;
  readonly #poolWords: readonly string[];
  readonly #minerWords: readonly string[];
  readonly #nodeSeenAt: StackOptions['nodeSeenAt'];
  readonly #validators: number;
  readonly #blockWork: number | undefined;
  #seen: Ports;
  #minerAddress: string | undefined;
  readonly #running = new Map<string, RunningPart>();

  constructor(ports: Ports, options: StackOptions) {
    this.data = mkdtempSync(join(tmpdir(), 'svc-test-stack-'));
    this.ports = ports;
    this.#pace = { ...PACE, ...options.pace };
    this.#poolWords = options.poolWords ?? [];
    this.#minerWords = options.minerWords ?? ['--throttle', '5'];
    this.#nodeSeenAt = options.nodeSeenAt;
    this.#validators = options.validators ?? 1;
    this.#blockWork = options.blockWork;
    this.#seen = ports;
  }

  get files(): ReturnType<typeof files> {
    return files(this.data);
  }

  get apiUrl(): string {
    return url(this.ports.api);
  }

  get webUrl(): string {
    return url(this.ports.web);
  }

  /** Node, wallet and pool; tests that need a miner start one. */
  async start(): Promise<this> {
    await mkdir(this.files.logs, { recursive: true });
    await bringCluster(join(this.files.pool, 'database'));
    for (const part of await this.#nodes()) await this.#run(part);
    this.#seen = { ...this.ports, ...(await this.#nodeSeenAt?.()) };
    await new WalletFiles(this.data, 'pool-wallet').write();
    await this.#run(walletPart(this.data, this.#seen));
    await this.startPool();
    return this;
  }

  async #nodes(): Promise<Part[]> {
    const work = this.#blockWork;
    if (this.#validators === 1) {
      const chain = oneValidator(this.data, work === undefined ? {} : { initialWork: work, minimumWork: work });
      return [nodePart(this.data, this.ports, this.#pace, [...chain, ...SMALL_NODE])];
    }
    const { network } = this.files;
    const workWords = work === undefined ? [] : ['--initial-work', String(work), '--minimum-work', String(work)];
    const words = ['--out', network, '--validators', String(this.#validators), ...workWords];
    await runToEnd('svcd', ['development-network', ...words]);
    const free = await freePorts(3 * this.#validators);
    const validators = Array.from({ length: this.#validators }, (_, member) => ({
      overlay: free[member] as number,
      api: member === 0 ? this.ports.api : (free[this.#validators + member] as number),
      peers: free[2 * this.#validators + member] as number,
    }));
    return validatorParts(this.data, this.ports, this.#pace, validators);
  }

  startPool(): Promise<void> {
    return this.#run(withWords(poolPart(this.data, this.#seen, this.#pace), [...SMALL_LISTENERS, ...this.#poolWords]));
  }

  /** A miner with a wallet of its own. Returns the address it is paid to. */
  async startMiner(): Promise<string> {
    const address = await this.minerAddress();
    await this.#run(withWords(minerPart(this.data, this.ports, address, false), this.#minerWords));
    return address;
  }

  startBridge(): Promise<void> {
    return this.#run(withWords(bridgePart(this.data, this.#seen), SMALL_LISTENERS));
  }

  /** A bridge, and a miner at it that is paid to another address: the chain goes on without the pool. */
  async startStranger(address: string): Promise<void> {
    await this.startBridge();
    const part = minerPart(this.data, { ...this.ports, pplns: this.ports.bridge }, address, false);
    await this.#run({ ...withWords(part, this.#minerWords), name: 'stranger' });
  }

  /** Of the miner's own wallet. `npm start` asks `svc-wallet` for it, in start.slow.test.ts. */
  async minerAddress(): Promise<string> {
    if (this.#minerAddress !== undefined) return this.#minerAddress;
    const wallet = new WalletFiles(this.data, 'miner-wallet');
    await wallet.write();
    this.#minerAddress = wallet.firstAddress;
    return wallet.firstAddress;
  }

  /** Parts that have ended by themselves. */
  get ended(): string[] {
    return [...this.#running].filter(([, part]) => part.over).map(([name]) => name);
  }

  /** kill -9, and a start of the same part. */
  async kill(name: string): Promise<void> {
    await this.#running.get(name)?.stop('SIGKILL');
  }

  async startAgain(name: string): Promise<void> {
    const { part } = this.#running.get(name) as RunningPart;
    await this.#run(part);
  }

  /** The node goes on with another pace: what is looked at needs fewer cuts than what brings it about. */
  async nodeAt(cutMillis: number): Promise<void> {
    const node = this.#running.get('node') as RunningPart;
    const words = [...node.part.words];
    words[words.indexOf('--cut-millis') + 1] = String(cutMillis);
    await node.stop();
    await this.#run({ ...node.part, words });
  }

  async stopPart(name: string): Promise<void> {
    await this.#running.get(name)?.stop();
    this.#running.delete(name);
  }

  async stop(): Promise<void> {
    for (const name of [...this.#running.keys()].reverse()) await this.stopPart(name);
    rmSync(this.data, { recursive: true, force: true });
  }

  async #run(part: Part): Promise<void> {
    const running = new RunningPart(part);
    this.#running.set(part.name, running);
    await running.ready(new AbortController().signal);
  }
}

export async function startStack(options: StackOptions = {}): Promise<StackFixture> {
  const stack = new StackFixture(await stackPorts(), options);
  try {
    return await stack.start();
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

export async function readJson<T>(address: string): Promise<T> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}

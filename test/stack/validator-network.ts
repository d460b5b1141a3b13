/**
 * A development network of separate validators as processes, with short days: what a newcomer joins. Every node has a fee key, so that its validator does not lapse, and a small
 * miner asks each for work while transactions wait there: they are not relayed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { developmentGenesis, developmentKey, developmentSeed, validatorName } from '../../node/genesis/development.ts';
import { writeGenesis } from '../../node/genesis/make-genesis.ts';
import { sealValidatorKey } from '../../node/validator/validator-key.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type ApiClient, createApiClient } from '../../protocol/api/client.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { Genesis } from '../../protocol/ledger/genesis.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { powHash } from '../pow-hash.ts';

const COIN = 100_000_000n;
const PASSWORD = 'a password of a test';
const MAINS = {
  svcd: fileURLToPath(new URL('../../node/main.ts', import.meta.url)),
  'svc-wallet': fileURLToPath(new URL('../../wallet/main.ts', import.meta.url)),
} as const;
const PAYOUT = formatAddress(developmentKey('miner of the test').address, 'development');

export type Where = { readonly cwd: string; readonly env?: Readonly<Record<string, string>> };

/** A program that may run for long. */
export class Program {
  readonly #child: ChildProcess;
  /** All that it said. */
  output = '';
  readonly gone: Promise<number | null>;

  constructor([name = '', ...words]: readonly string[], { cwd, env }: Where) {
    const main = MAINS[name as keyof typeof MAINS];
    const line = main === undefined ? [name, words] : [process.execPath, [main, ...words]];
    this.#child = spawn(line[0] as string, line[1] as string[], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const note = (part: Buffer) => {
      this.output += part;
    };
    this.#child.stdout?.on('data', note);
    this.#child.stderr?.on('data', note);
    this.gone = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Resolves when the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    this.#child.kill(signal);
    await this.gone;
  }
}

/** What a command prints on standard output; it must succeed. */
export async function run([name = '', ...words]: readonly string[], { cwd, env }: Where): Promise<string> {
  const main = MAINS[name as keyof typeof MAINS];
  const [file, rest] = main === undefined ? [name, words] : [process.execPath, [main, ...words]];
  const child = spawn(file, rest, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, complaint] = ['', ''];
  child.stdout.on('data', (part: Buffer) => {
    out += part;
  });
  child.stderr.on('data', (part: Buffer) => {
    complaint += part;
  });
  const status = await new Promise((resolve) => child.once('close', resolve));
  if (status !== 0) throw new Error(`${name} ${words.join(' ')} ended with ${status}: ${out}${complaint}`);
  return out;
}

export type NetworkSettings = {
  readonly validators: number;
  readonly intervalCuts: number;
  readonly cutMillis: number;
  readonly fund: readonly Output[];
};

export class ValidatorNetwork {
  readonly genesisFile: string;
  readonly genesis: Genesis;
  readonly client: ApiClient;
  /** Of the public API that wallets use. */
  readonly service: string;
  /** Overlays of the first validators. */
  readonly neighbours: readonly string[];
  /** Nodes, and what else runs beside them. */
  readonly programs: Program[] = [];
  readonly #directory: string;
  readonly #settings: NetworkSettings;
  readonly #api: number;
  readonly #mining: number[];
  #mined: Promise<void> | undefined;
  #stopped = false;

  private constructor(directory: string, settings: NetworkSettings, ports: readonly number[]) {
    const { validators, intervalCuts, fund } = settings;
    this.#directory = directory;
    this.#settings = settings;
    this.#api = ports[2 * validators] as number;
    this.#mining = ports.slice(0, validators);
    this.neighbours = ports.slice(validators, 2 * validators).map((port) => `127.0.0.1:${port}`);
    this.service = `http://127.0.0.1:${this.#api}`;
    this.client = createApiClient({ baseUrl: this.service }, nodeTransport());
    const fees = Array.from({ length: validators }, (_, i) => ({
      address: developmentKey(`fees ${i}`).address,
      amount: 10n * COIN,
    }));
    this.genesis = developmentGenesis({
      timestampMillis: steadyMillis(),
      validators,
      intervalCuts,
      initialWork: 1n,
      minimumWork: 1n,
      fund: [...fund, ...fees],
    });
    this.genesisFile = join(directory, 'genesis.json');
    writeGenesis(this.genesisFile, this.genesis);
  }

  static async start(directory: string, settings: NetworkSettings): Promise<ValidatorNetwork> {
    const network = new ValidatorNetwork(directory, settings, await freePorts(2 * settings.validators + 1));
    for (let member = 0; member < settings.validators; member++) await network.#startValidator(member);
    network.#mined = network.#mine();
    await network.reached(1);
    return network;
  }

  /** Of a node of this network, for its `node.json`: what a newcomer would have from the network itself or from its defaults. */
  get pace(): Record<string, unknown> {
    return { 'cut-millis': this.#settings.cutMillis, 'signature-threads': 1 };
  }

  /** A node of somebody else: its blocks carry what waits in it. */
  mineAt(port: number): void {
    this.#mining.push(port);
  }

  async #startValidator(member: number): Promise<void> {
    const directory = join(this.#directory, validatorName(member));
    mkdirSync(directory);
    const sealed = async (file: string, seed: Uint8Array<ArrayBuffer>, purpose: 'consensus' | 'heartbeat-fee') =>
      writeFileSync(join(directory, file), await sealValidatorKey(seed, purpose, 'development', PASSWORD, 10), {
        mode: 0o600,
      });
    await sealed('key.json', developmentSeed(validatorName(member)), 'consensus');
    await sealed('fee.json', developmentSeed(`fees ${member}`), 'heartbeat-fee');
    writeFileSync(join(directory, 'password'), `${PASSWORD}\n`, { mode: 0o600 });
    const config = {
      ...this.pace,
      genesis: this.genesisFile,
      'data-dir': 'data',
      'api-bind': member === 0 ? `127.0.0.1:${this.#api}` : 'off',
      'mining-bind': `127.0.0.1:${this.#mining[member]}`,
      validator: {
        consensus_key_file: 'key.json',
        password_file: 'password',
        heartbeat: {
          validator_id: toHex(validatorId(developmentKey(validatorName(member)).publicKey)),
          fee_key_file: 'fee.json',
          fee_key_password_file: 'password',
          max_fee_atoms: 2_000_000,
        },
      },
      validator_overlay: { listen_addrs: this.neighbours[member], neighbours: this.neighbours.slice(member + 1) },
    };
    writeFileSync(join(directory, 'node.json'), JSON.stringify(config));
    this.start(['svcd', 'run', '--config', 'node.json'], { cwd: directory });
  }

  start(words: readonly string[], where: Where): Program {
    const program = new Program(words, where);
    this.programs.push(program);
    return program;
  }

  /** The directory of a validator's chain. */
  dataOf(member: number): string {
    return join(this.#directory, validatorName(member), 'data');
  }

  async height(): Promise<number> {
    try {
      return (await this.client.nodeSync()).finalized_height;
    } catch {
      return -1;
    }
  }

  async epoch(): Promise<number> {
    return Math.floor(((await this.height()) + 1) / this.#settings.intervalCuts);
  }

  async reached(height: number): Promise<void> {
    while ((await this.height()) < height) {
      const failed = this.programs.find(({ output }) => output.includes('svcd run:'));
      if (failed !== undefined) throw new Error(failed.output);
      await sleep(50);
    }
  }

  /** The next cut is of this epoch, or of a later one. */
  reachedEpoch(epoch: number): Promise<void> {
    return this.reached(epoch * this.#settings.intervalCuts - 1);
  }

  async #mine(): Promise<void> {
    for (let draw = 0; !this.#stopped; draw++) {
      for (const port of this.#mining) await mineWaiting(port, draw).catch(() => undefined);
      await sleep(2 * this.#settings.cutMillis);
    }
  }

  async stop(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    this.#stopped = true;
    await this.#mined;
    await Promise.all(this.programs.map((program) => program.end(signal)));
  }
}

/** A block of the node whose mining listener this is, if transactions wait there. */
export async function mineWaiting(port: number, draw: number): Promise<void> {
  const post = async (path: string, request: object) => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/mining/${path}`, {
      method: 'POST',
      body: JSON.stringify(request),
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const template = await post('templates', { payout: PAYOUT, max_transactions: 1000, draw });
  if (template.transaction_count === 0) return;
  const header = Buffer.from(template.header_hex as string, 'hex');
  const target = BigInt(`0x${template.target}`);
  const { epoch } = template.pow as { epoch: number };
  for (let nonce = 0n; ; nonce++) {
    header.writeBigUInt64LE(nonce, 304);
    if (BigInt(`0x${Buffer.from(powHash(epoch, header)).toString('hex')}`) <= target) break;
  }
  await post('candidates', { header_hex: header.toString('hex'), body_hex: template.body_hex });
}

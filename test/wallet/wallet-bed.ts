/**
 * A real node with its public API, real wallet processes, and a clockwork that mines and seals: what the tests of the
 * whole wallet stand on. The PoW is a plain hash; everything the wallet meets is real.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { type DevelopmentGenesis, developmentKey } from '../../node/genesis/development.ts';
import { parseAddress } from '../../protocol/address.ts';
import { openWallet } from '../../wallet/open.ts';
import type { RpcAnswer } from '../../wallet/rpc/dispatch.ts';
import { WalletServer } from '../../wallet/rpc/server.ts';
import { readOrCreateToken, readToken } from '../../wallet/rpc/token.ts';
import { ApiBed } from '../api/api-bed.ts';
import { quietLog } from '../quiet-log.ts';

export const program = new URL('../../wallet/main.ts', import.meta.url).pathname;
export const COIN = 100_000_000n;

export type Funds = { readonly outputs: number; readonly each: bigint };

/** A node that funds `address` in its genesis, and a beat that mines what is in the mempool and seals a cut. */
export class ChainBed {
  readonly api: ApiBed;
  #beating: Promise<void> | undefined;
  #stopped = false;
  #draw = 0;
  /** Beats and restarts, one after the other. */
  #last: Promise<void> = Promise.resolve();

  private constructor(api: ApiBed) {
    this.api = api;
  }

  static async open(
    address: string,
    { outputs, each }: Funds,
    more: Partial<DevelopmentGenesis> = {},
  ): Promise<ChainBed> {
    const { payload } = parseAddress(address, 'development');
    const fund = Array.from({ length: outputs }, () => ({ address: payload, amount: each }));
    return new ChainBed(await ApiBed.open({ bed: { genesis: { fund, ...more } } }));
  }

  get base(): string {
    return this.api.base;
  }

  /** One block with everything that waits, and the cut that executes it. */
  beat(): Promise<void> {
    return this.#next(async () => {
      // A draw of its own: within 5 s the same draw has the same transactions.
      await this.api.bed.mine(developmentKey('miner of the test').address, 1_000, this.#draw++ % 16);
      await this.api.bed.seal();
    });
  }

  #next(act: () => Promise<void>): Promise<void> {
    const done = this.#last.then(act);
    this.#last = done.catch(() => undefined);
    return done;
  }

  start(millis: number): void {
    this.#beating = (async () => {
      while (!this.#stopped) {
        await this.beat();
        await new Promise((resolve) => setTimeout(resolve, millis));
      }
    })();
  }

  /** The node goes away for a while, between two beats, and comes back on the same port. */
  restart(meanwhile?: (storeDirectory: string) => void): Promise<void> {
    return this.#next(() => this.api.restart(meanwhile));
  }

  async close(): Promise<void> {
    this.#stopped = true;
    await this.#beating;
    await this.api.close();
  }
}

/** What answers calls at an address of this machine. */
abstract class Answering {
  abstract readonly rpc: string;
  readonly #token: string;

  constructor(file: string) {
    this.#token = `${file}.token`;
  }

  async call(method: string, params: unknown): Promise<RpcAnswer> {
    const token = readToken(this.#token);
    const answer = await fetch(`http://${this.rpc}/v1/rpc`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(240_000),
    });
    return (await answer.json()) as RpcAnswer;
  }

  async result(method: string, params: unknown = {}): Promise<Record<string, unknown>> {
    const answer = await this.call(method, params);
    if ('error' in answer) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result as Record<string, unknown>;
  }
}

/** What `svc-wallet daemon` puts together, in this process. */
export class DaemonHere extends Answering {
  readonly #file: string;
  readonly #service: string;
  #port = 0;
  #close: (() => Promise<void>) | undefined;

  constructor(file: string, service: string) {
    super(file);
    this.#file = file;
    this.#service = service;
  }

  get rpc(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const options = { file: this.#file, passwordFile: undefined, service: this.#service };
    const fault = (error: Error) => {
      throw error;
    };
    const wallet = await openWallet(options, { log: quietLog, ask: undefined, fault });
    const token = await readOrCreateToken(`${this.#file}.token`);
    const server = new WalletServer(wallet, { listen: { host: '127.0.0.1', port: 0 }, allowRemote: false, token });
    this.#port = (await server.start()).port;
    wallet.start();
    this.#close = async () => {
      await server.close();
      await wallet.close();
    };
  }

  async stop(): Promise<void> {
    const close = this.#close;
    this.#close = undefined;
    await close?.();
  }
}

/** `svc-wallet daemon` as a process that can be killed and started again. */
export class DaemonProcess extends Answering {
  readonly #words: string[];
  #child: ChildProcess | undefined;
  #port = 0;
  log = '';

  constructor(file: string, service: string, more: string[] = []) {
    super(file);
    this.#words = ['daemon', '--file', file, '--service', service, '--listen', '127.0.0.1:0', ...more];
  }

  get pid(): number {
    return this.#child?.pid as number;
  }

  /** Resolves when the process has ended by itself. */
  get gone(): Promise<void> {
    const child = this.#child as ChildProcess;
    return new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve();
      else child.once('exit', () => resolve());
    });
  }

  get rpc(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Resolves when it listens; rejects when it ends before that. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [program, ...this.#words], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      let seen = '';
      child.stderr?.on('data', (data: Buffer) => {
        this.log += data.toString();
        seen += data.toString();
        const port = /wallet daemon ready listen=127\.0\.0\.1:(\d+)/.exec(seen)?.[1];
        if (port !== undefined) {
          this.#port = Number(port);
          resolve();
        }
      });
      child.once('exit', (code, signal) => reject(new Error(`the daemon ended: ${code ?? signal}\n${seen}`)));
    });
  }

  /** Resolves when the process is gone. */
  async stop(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }

  /** Kills and starts again. */
  async crash(): Promise<void> {
    await this.stop('SIGKILL');
    await this.start();
  }
}

/** A command while the node in this process goes on. */
export async function runBeside(
  words: string[],
  input = '',
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [program, ...words], { stdio: 'pipe' });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data: Buffer) => {
    stdout += data.toString();
  });
  child.stderr.on('data', (data: Buffer) => {
    stderr += data.toString();
  });
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { status, stdout, stderr };
}

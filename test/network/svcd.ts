/** `svcd run` as a process of a test: its API is asked, it is ended by a signal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

/** An address of this machine that nodes do not pass on to others: only nodes that are configured with it know it. */
export const untold = (port: number): string => `/ip4/0.0.0.0/tcp/${port}`;

export type SyncDocument = {
  readonly synced: boolean;
  readonly finalized_height: number;
  readonly best_peer_height: number | null;
  readonly behind_by: number;
  readonly peers: number;
};

export class Svcd {
  readonly #words: readonly string[];
  readonly #api: number;
  readonly #mining: number;
  readonly #host: string;
  readonly #namespace: string | undefined;
  #child: ChildProcess | undefined;
  output = '';

  /** `place`: the network namespace that it runs in, and its address there. */
  constructor(
    ports: { readonly api: number; readonly mining: number },
    words: readonly string[],
    place?: { readonly namespace: string; readonly host: string },
  ) {
    this.#api = ports.api;
    this.#mining = ports.mining;
    this.#host = place?.host ?? '127.0.0.1';
    this.#namespace = place?.namespace;
    const binds = ['--api-bind', `${this.#host}:${ports.api}`, '--mining-bind', `127.0.0.1:${ports.mining}`];
    this.#words = [MAIN, 'run', ...binds, '--signature-threads', '1', ...words];
  }

  start(): void {
    const inside = this.#namespace === undefined ? [] : ['ip', 'netns', 'exec', this.#namespace];
    const [program = '', ...words] = [...inside, process.execPath, ...this.#words];
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const note = (part: Buffer) => {
      this.output = (this.output + part).slice(-20_000);
    };
    child.stdout?.on('data', note);
    child.stderr?.on('data', note);
  }

  /** Null while it runs, and where a signal ended it. */
  get exitCode(): number | null | undefined {
    return this.#child?.exitCode;
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }

  /** Undefined while it does not answer; throws when it has ended by itself. */
  async get<T>(path: string, port = this.#api): Promise<T | undefined> {
    try {
      const answer = await fetch(`http://${this.#host}:${port}${path}`, { signal: AbortSignal.timeout(20_000) });
      return answer.ok ? ((await answer.json()) as T) : undefined;
    } catch {
      const child = this.#child;
      if (child !== undefined && child.exitCode !== null) throw new Error(`svcd ended:\n${this.output}`);
      return undefined;
    }
  }

  sync(): Promise<SyncDocument | undefined> {
    return this.get('/v1/node/sync');
  }

  async height(): Promise<number> {
    return (await this.sync())?.finalized_height ?? -1;
  }

  peers<T>(): Promise<T | undefined> {
    return this.get('/v1/node/peers', this.#mining);
  }

  async template(): Promise<number> {
    const body = JSON.stringify({ payout: 'dsvc', max_transactions: 1 });
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`http://127.0.0.1:${this.#mining}/v1/mining/templates`, { method: 'POST', headers, body }))
      .status;
  }
}

/** `svcd run` as a process of a test: its API is asked, it is ended by a signal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

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
  #child: ChildProcess | undefined;
  output = '';

  constructor(ports: { readonly api: number; readonly mining: number }, words: readonly string[]) {
    this.#api = ports.api;
    this.#mining = ports.mining;
    const binds = ['--api-bind', `127.0.0.1:${ports.api}`, '--mining-bind', `127.0.0.1:${ports.mining}`];
    this.#words = [MAIN, 'run', ...binds, '--signature-threads', '1', ...words];
  }

  start(): void {
    const child = spawn(process.execPath, this.#words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const note = (part: Buffer) => {
      this.output = (this.output + part).slice(-20_000);
    };
    child.stdout?.on('data', note);
    child.stderr?.on('data', note);
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  /** Undefined while it does not answer; throws when it has ended by itself. */
  async get<T>(path: string, port = this.#api): Promise<T | undefined> {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
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

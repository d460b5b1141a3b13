/** A real `svc-miner` process for one test: its output, its figures, its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

export const MAIN = fileURLToPath(new URL('../../miner/main.ts', import.meta.url));

export class RunningMiner {
  readonly child: ChildProcess;
  out = '';
  err = '';
  exit: number | undefined;
  /** All that it printed has arrived. */
  #isRead = false;

  constructor(
    words: readonly string[],
    options: { readonly program?: readonly string[]; readonly env?: Record<string, string> } = {},
  ) {
    const [program, ...before] = options.program ?? [process.execPath, MAIN];
    const env = { ...process.env, HOME: temporaryDirectory(), ...options.env };
    this.child = spawn(program as string, [...before, ...words], { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stdout?.on('data', (chunk: Buffer) => {
      this.out += chunk.toString();
    });
    this.child.stderr?.on('data', (chunk: Buffer) => {
      this.err += chunk.toString();
    });
    this.child.on('exit', (code, signal) => {
      this.exit = code ?? (signal === null ? -1 : 128);
    });
    this.child.on('close', () => {
      this.#isRead = true;
    });
    onTestFinished(async () => {
      if (this.exit === undefined) this.child.kill('SIGKILL');
      await until(() => this.exit !== undefined);
    });
  }

  async says(text: string | RegExp): Promise<void> {
    const found = () =>
      typeof text === 'string' ? `${this.out}\n${this.err}`.includes(text) : text.test(`${this.out}\n${this.err}`);
    await until(() => found() || this.#isRead, {
      why: () => `${text} in\n${this.out}\n${this.err}`,
    });
    if (!found()) throw new Error(`ended with ${this.exit} before saying ${text}:\n${this.out}\n${this.err}`);
  }

  /** Where a listener that was asked for with port 0 is. */
  async addressOf(what: 'api' | 'metrics'): Promise<string> {
    const pattern = new RegExp(`${what} listening address=(\\S+)`);
    await this.says(pattern);
    return `http://${pattern.exec(this.err)?.[1]}`;
  }

  /** Its last lines may come after its end. */
  async ended(): Promise<number> {
    await until(() => this.#isRead, { why: () => this.err });
    return this.exit as number;
  }
}

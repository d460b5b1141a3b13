/** The programs of this project as processes of their own, for tests: started, watched by their log, stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { onTestFailed, onTestFinished } from 'vitest';
import { watch } from '../watch/watch.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Characters of a program's log that are shown when its test fails. */
const LOG_SHOWN = 6000;

export type ProgramOptions = {
  readonly uid?: number;
  readonly gid?: number;
  readonly env?: Record<string, string>;
  /** The folder that has the programs in its `bin`; default: this project. */
  readonly home?: string;
};

export class Program {
  readonly #child: ChildProcess;
  /** Also all that it has printed is here then: a process is gone before its last words have been read. */
  readonly exited: Promise<number | null>;
  #isOver = false;
  output = '';
  #watchers: (() => void)[] = [];

  constructor(name: string, words: readonly string[], options: ProgramOptions = {}) {
    const { env, home = ROOT, ...user } = options;
    this.#child = spawn(process.execPath, [join(home, 'bin', name), ...words], {
      cwd: home,
      env: { ...process.env, RUST_LOG: 'info', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...user,
    });
    const take = (data: Buffer): void => {
      this.output += data.toString();
      this.#wake();
    };
    this.#child.stdout?.on('data', take);
    this.#child.stderr?.on('data', take);
    this.exited = new Promise((resolve) =>
      this.#child.on('close', (code) => {
        this.#isOver = true;
        resolve(code);
        this.#wake();
      }),
    );
    onTestFailed(() => console.error(`the end of the log of ${name}:\n${this.output.slice(-LOG_SHOWN)}`));
    onTestFinished(async () => {
      if (this.#child.exitCode === null) this.#child.kill('SIGKILL');
      await this.exited;
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  #wake(): void {
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const wake of watchers) wake();
  }

  /** The first group of the first match in what the program printed; fails when it ends without one. */
  until(pattern: RegExp): Promise<string> {
    return watch.waitFor(`a program prints ${pattern}`, this.#prints(pattern));
  }

  async #prints(pattern: RegExp): Promise<string> {
    for (;;) {
      const match = pattern.exec(this.output);
      if (match !== null) return match[1] ?? '';
      if (this.#isOver) throw new Error(`ended without ${pattern}:\n${this.output}`);
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#child.kill(signal);
    return await this.exited;
  }
}

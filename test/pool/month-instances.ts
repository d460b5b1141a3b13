/** The processes that keep the books or stand by: started, answered, killed with kill -9 and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { MonthAnswer, MonthCall, MonthEdge } from './month-edge.ts';

const PROGRAM = join(import.meta.dirname, 'month-accountant.ts');

export type MonthInstancesOptions = { readonly databaseUrl: string; readonly poolAddress: string };

export type MonthInstancesDependencies = {
  /** Who asks is named: the front end must know. */
  readonly edgeOf: (name: string) => MonthEdge;
  readonly nowMillis: () => number;
};

export class MonthInstances {
  readonly #options: MonthInstancesOptions;
  readonly #dependencies: MonthInstancesDependencies;
  readonly #running = new Map<string, ChildProcess>();
  #started = 0;
  #isClosed = false;
  /** What they complained of last. */
  #tail = '';
  /** Those that ended without having been killed. */
  readonly deaths: string[] = [];

  constructor(options: MonthInstancesOptions, dependencies: MonthInstancesDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  get complaints(): string {
    return this.#tail;
  }

  start(): void {
    const name = `instance-${++this.#started}`;
    const child = spawn(process.execPath, [PROGRAM, name, this.#options.databaseUrl, this.#options.poolAddress], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
      env: { ...process.env, RUST_LOG: process.env.RUST_LOG ?? 'warn' },
    });
    this.#running.set(name, child);
    const edge = this.#dependencies.edgeOf(name);
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#tail = (this.#tail + chunk.toString()).slice(-8_000);
    });
    child.on('message', (call: MonthCall) => void this.#answer(child, edge, call));
    child.on('error', () => undefined);
    child.on('exit', (code, signal) => {
      if (this.#isClosed || signal === 'SIGKILL') return;
      this.deaths.push(`${name} ended with ${code ?? signal}`);
    });
  }

  async #answer(child: ChildProcess, edge: MonthEdge, { id, what, values }: MonthCall): Promise<void> {
    const work = edge[what] as (...values: readonly unknown[]) => Promise<unknown>;
    const answer = await work(...values).then(
      (value) => ({ value }),
      (error: Error) => ({ error: error.message }),
    );
    const message: MonthAnswer = { id, ...answer, nowMillis: this.#dependencies.nowMillis() };
    // It may be dead by now.
    if (child.connected) child.send(message, () => undefined);
  }

  /** kill -9 of one, and another in its place. Whether it kept the books is as it happens. */
  async kill(draw: (below: number) => number): Promise<void> {
    const names = [...this.#running.keys()];
    await this.#end(names[draw(names.length)] as string);
    this.start();
  }

  async #end(name: string): Promise<void> {
    const child = this.#running.get(name);
    this.#running.delete(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const name of [...this.#running.keys()]) await this.#end(name);
  }
}

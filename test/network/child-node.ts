/** A node in a process of its own (node-process.ts), from the side of the test that starts and kills it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const NODE_PROCESS = fileURLToPath(new URL('node-process.ts', import.meta.url));

/** Exit code of a node that cannot go on. */
export const FAULT = 3;

export type NodeFigures = {
  readonly height: number;
  /** The lowest cut whose blocks it has. */
  readonly bodiesFrom: number;
  readonly transactions: number;
  readonly synced: boolean;
  /** Processor time of the main thread. */
  readonly cpuMicros: number;
  readonly receivedBytes: number;
};

export class NodeProcess {
  readonly #words: readonly string[];
  #child: ChildProcess | undefined;
  /** What it printed last. */
  latest: NodeFigures | undefined;
  /** The code that it ended with by itself; undefined while it runs. */
  code: number | undefined;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  start(): void {
    const child = spawn(process.execPath, [NODE_PROCESS, ...this.#words], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    this.latest = undefined;
    this.code = undefined;
    child.once('exit', (code) => {
      if (this.#child === child) this.code = code ?? undefined;
    });
    createInterface(child.stdout).on('line', (line) => {
      if (this.#child === child) this.latest = JSON.parse(line) as NodeFigures;
    });
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
}

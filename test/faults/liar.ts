/** lying-node-program.ts as a process before a node. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';

const PROGRAM = join(import.meta.dirname, 'lying-node-program.ts');

export class Liar {
  #port = 0;
  #said = '';
  readonly #child: ChildProcess;

  private constructor(target: string) {
    this.#child = spawn(process.execPath, [PROGRAM, target], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout?.on('data', (data: Buffer) => {
      this.#said += data.toString();
      this.#port ||= Number(/listens http:\/\/127\.0\.0\.1:(\d+)/.exec(this.#said)?.[1] ?? 0);
    });
  }

  static async before(target: string): Promise<Liar> {
    const liar = new Liar(target);
    await expect.poll(() => liar.#port, { interval: 20 }).toBeGreaterThan(0);
    return liar;
  }

  get port(): number {
    return this.#port;
  }

  async say(lie: string): Promise<void> {
    this.#said = '';
    this.#child.stdin?.write(`${lie}\n`);
    await expect.poll(() => this.#said, { interval: 20 }).toContain('says');
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}

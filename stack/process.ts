/** One program of the stack as a child process: started, waited for, and stopped in order. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { plainFetch } from '../runtime/node-client/http-fetch.ts';
import { watchedEnvironment, watchedStream } from '../scripts/ready/parent.mjs';
import type { Part } from './parts.ts';

const ROOT = join(import.meta.dirname, '..');
/** The end of a program is noticed at once; a running one may be slow. */
const START_MILLIS = 300_000;
const STOP_MILLIS = 20_000;

export const programPath = (program: Part['program']): string => join(ROOT, 'bin', program);

export class PartFailed extends Error {}

export class RunningPart {
  readonly part: Part;
  readonly exited: Promise<number>;
  readonly #child: ChildProcess;
  #over = false;
  #tail = '';

  constructor(part: Part) {
    this.part = part;
    // A separate process group: Ctrl-C reaches only this program, which then stops the others in order. If this program
    // dies, the part ends by itself.
    this.#child = spawn(process.execPath, [programPath(part.program), ...part.words], {
      stdio: ['ignore', 'pipe', 'pipe', watchedStream],
      env: { ...process.env, ...watchedEnvironment },
      detached: true,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.#tail = (this.#tail + chunk.toString()).slice(-2000);
      });
    this.exited = new Promise((resolve) => {
      this.#child.once('error', () => resolve(1));
      this.#child.once('close', (code) => resolve(code ?? 1));
    });
    this.exited.then(() => {
      this.#over = true;
    });
  }

  get over(): boolean {
    return this.#over;
  }

  /** The last lines of the program's output: shown when it cannot start. */
  get lastWords(): string {
    return this.#tail.trim().split('\n').slice(-3).join('\n');
  }

  async ready(signal: AbortSignal): Promise<void> {
    for (const end = performance.now() + START_MILLIS; performance.now() < end; await sleep(100)) {
      signal.throwIfAborted();
      if (this.#over) break;
      const asked = { method: 'GET', headers: {}, signal: AbortSignal.timeout(2000) } as const;
      const answer = await plainFetch(this.part.ready, asked).catch(() => undefined);
      if (answer?.status === 200) return;
    }
    throw new PartFailed(`${this.part.name} did not start: ${this.lastWords || 'no word from it'}`);
  }

  /** For a part that is stopping this is the second signal, which ends it at once; any other stops by itself. */
  askAgain(): void {
    this.#child.kill('SIGTERM');
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#over) return;
    this.#child.kill(signal);
    const late = sleep(STOP_MILLIS, undefined, { ref: false }).then(() => {
      if (!this.#over) this.#child.kill('SIGKILL');
    });
    await Promise.race([this.exited, late]);
    await this.exited;
  }
}

/** Runs a program to its end and returns what it printed. */
export async function runToEnd(program: Part['program'], words: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [programPath(program), ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, complaint] = ['', ''];
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  if (code !== 0) throw new PartFailed(`${program} ${words[0]} failed: ${complaint.trim() || out.trim()}`);
  return out;
}

/** The clients of the API's benchmarks (api-load.ts), as a benchmark speaks to them. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LoadOrder, LoadResult } from './api-load.ts';

/** A client process; orders go in as lines, results come out as lines. */
export class Load {
  readonly #child = spawn(process.execPath, [fileURLToPath(new URL('./api-load.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  readonly #lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();

  order(order: LoadOrder): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }

  async line(): Promise<string> {
    const next = await this.#lines.next();
    if (next.done === true) throw new Error('the load process ended');
    return next.value;
  }

  async run(order: LoadOrder): Promise<LoadResult> {
    this.order(order);
    return JSON.parse(await this.line()) as LoadResult;
  }

  close(): void {
    this.#child.stdin.end();
  }
}

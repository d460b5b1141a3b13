/** The C yardstick of the CPU benchmark (pow-cpu.c): compiled for this machine, kept running, asked line by line. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { PowParameters } from '../../protocol/crypto/pow.ts';

export type Yardstick = {
  /** Processor seconds that building the cache took. */
  readonly cacheSeconds: number;
  ask(command: string): Promise<string>;
  /** Processor seconds of a command. */
  seconds(command: string): Promise<number>;
  close(): void;
};

export async function startYardstick({ cacheLog2, pagesLog2 }: PowParameters, seed: Bytes): Promise<Yardstick> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const program = join(directory, 'pow-cpu');
  execFileSync('cc', ['-O3', '-march=native', '-o', program, join(import.meta.dirname, 'pow-cpu.c')]);
  const child = spawn(program, [`${cacheLog2}`, `${pagesLog2}`, toHex(seed)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error('the yardstick ended');
    return value;
  };
  const ask = async (command: string): Promise<string> => {
    child.stdin.write(`${command}\n`);
    return await next();
  };
  return {
    cacheSeconds: Number(await next()),
    ask,
    seconds: async (command) => Number((await ask(command)).split(' ')[0]),
    close() {
      child.stdin.end();
      rmSync(directory, { recursive: true });
    },
  };
}

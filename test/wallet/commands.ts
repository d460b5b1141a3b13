/** Commands of `svc-wallet` inside the test's process: the same words and the same output, without a start for each. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { walletProgram } from '../../wallet/program.ts';

export type Ran = { readonly status: number; readonly stdout: string; readonly stderr: string };

export async function runCommand(words: readonly string[]): Promise<Ran> {
  let [stdout, stderr] = ['', ''];
  const status = await walletProgram.start(words, {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    readText: () => '',
    env: {},
  });
  return { status, stdout, stderr };
}

export type Shown = Record<string, unknown> & { error?: { code: string; message: string } };

export const runJson = async (words: readonly string[]): Promise<Shown> =>
  JSON.parse((await runCommand([...words, '--json'])).stdout) as Shown;

/** A wallet file from its words, which come from a file: the standard input is the test's own. */
export async function restoreFile(file: string, phrase: string): Promise<Ran> {
  const words = `${file}.words`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(words, phrase, { mode: 0o600 });
  const ran = await runCommand(['restore', '--file', file, '--words-file', words, '--generate-password']);
  rmSync(words);
  return ran;
}

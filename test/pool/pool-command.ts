/** Commands of `svc-pool` inside the test's process: the same words, output and exit code, without a start for each. Not `run`, which ends its process. */
import { poolCommand } from '../../pool/pool-command.ts';
import { readConfigText } from '../../runtime/files/private-file.ts';
import { startProgram } from '../../runtime/program.ts';
import type { Ended } from './svc-pool.ts';

export async function runPoolCommand(...words: string[]): Promise<Ended> {
  let [out, err] = ['', ''];
  const code = await startProgram(poolCommand, words, {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    readText: readConfigText,
    env: { RUST_LOG: 'warn' },
  });
  return { code, out, err };
}

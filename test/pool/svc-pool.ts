/** Runs a command of the real svc-pool to its end. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../bin/svc-pool', import.meta.url));

export type Ended = { readonly code: number; readonly out: string; readonly err: string };

export const svcPool = (...words: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...words], (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });

/** A tar archive whose bytes depend on the names and contents of its files alone: entries are sorted, all have one time, owner and umask, and the gzip head names no file and no time. */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

const MODES = 'u+rwX,go+rX,go-w';

/** `name` is the file or folder of `folder` that is packed; `seconds` the time of every entry, since 1970. */
export function writeArchive(archive: string, folder: string, name: string, seconds: number): void {
  const plain = `${archive}.tar`;
  const fixed = ['--format=gnu', '--sort=name', `--mtime=@${seconds}`, '--owner=0', '--group=0', '--numeric-owner'];
  execFileSync('tar', [...fixed, `--mode=${MODES}`, '-C', folder, '-cf', plain, name], { env: environment() });
  // Not Node's zlib: that of another processor may compress to other bytes.
  writeFileSync(
    archive,
    execFileSync('gzip', ['-9', '-n', '-c'], {
      input: readFileSync(plain),
      maxBuffer: Number.POSITIVE_INFINITY,
      env: environment(),
    }),
  );
  rmSync(plain);
}

/** Names are sorted by their bytes, and no options come from outside. */
const environment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C' });

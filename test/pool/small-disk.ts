/**
 * A disk that can be full. Where this user may mount, it is a small file system of its own; elsewhere the kernel is set to let
 * the program write no file any further, which it answers with the same partial and refused writes.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export type SmallDisk = { fill(pid: number): void; free(pid: number): void };

export function smallDisk(path: string): SmallDisk {
  const disk = mountedDisk(path, 16);
  if (disk === undefined) {
    const limit = (pid: number, bytes: string) =>
      void execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
    return { fill: (pid) => limit(pid, '0'), free: (pid) => limit(pid, 'unlimited') };
  }
  return disk;
}

/** A small file system of its own; undefined where this user may not mount. */
export function mountedDisk(path: string, mebibytes: number): SmallDisk | undefined {
  mkdirSync(path, { recursive: true });
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path]).status === 0;
  if (!mounted) return undefined;
  onTestFinished(() => void spawnSync('umount', ['--lazy', path]));
  const filler = join(path, 'filler');
  return {
    fill() {
      const file = openSync(filler, 'w');
      const block = new Uint8Array(4096);
      try {
        for (;;) writeSync(file, block);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler),
  };
}

/**
 * A system clock of its own for a program under test: libfaketime where it is installed (the Debian package `faketime`), which reaches everything the process
 * does, a shifted `Date` elsewhere. The monotonic clock stays true, as it does when somebody sets the time of a machine.
 */
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '../temporary.ts';

function faketimeLibrary(): string | undefined {
  const homes = ['/usr/lib', ...readdirSync('/usr/lib').map((name) => join('/usr/lib', name)), '/usr/local/lib'];
  return homes.map((home) => join(home, 'faketime', 'libfaketimeMT.so.1')).find((path) => existsSync(path));
}

const PRELOAD = join(import.meta.dirname, 'shifted-clock-preload.mjs');

export class ShiftedClock {
  readonly env: Record<string, string>;
  readonly #file: string;

  constructor() {
    this.#file = join(temporaryDirectory(), 'clock');
    this.set(0);
    const library = faketimeLibrary();
    this.env =
      library === undefined
        ? { NODE_OPTIONS: `--import ${PRELOAD}`, SVC_TEST_CLOCK_FILE: this.#file }
        : {
            LD_PRELOAD: library,
            FAKETIME_TIMESTAMP_FILE: this.#file,
            FAKETIME_CACHE_DURATION: '1',
            FAKETIME_DONT_FAKE_MONOTONIC: '1',
            FAKETIME_DONT_RESET: '1',
          };
  }

  /** How far the clock is ahead of the true time; behind when negative. */
  set(millis: number): void {
    const seconds = millis / 1_000;
    // Whole at any moment: a program may read it while it is written.
    writeFileSync(`${this.#file}.new`, `${seconds >= 0 ? '+' : ''}${seconds}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}

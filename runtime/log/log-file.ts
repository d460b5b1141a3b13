/**
 * A log file that rotates: at its size limit `x.log` becomes `x.log.1`, that one `x.log.2`, and the oldest is dropped.
 * Lines are gathered and written together a moment later, so a busy program makes few system calls; errors and the end
 * of the process flush. A disk that fails never stops the program: lost lines are counted and reported when it works again.
 */
import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectory } from '../files/make-directory.ts';
import { RuntimeError } from '../runtime-error.ts';

/** Where finished log lines go: standard error, a file, or nowhere in a test. */
export interface LogSink {
  write(line: string): void;
  /** Everything written so far is with the operating system when this returns. */
  flush(): void;
  close(): void;
}

const FLUSH_AFTER_MS = 50;
const FLUSH_AT_BYTES = 65_536;

export interface LogFileOptions {
  readonly path: string;
  readonly maxBytes: number;
  readonly keep: number;
}

export function openLogFile({ path, maxBytes, keep }: LogFileOptions): LogSink {
  let file: number | undefined = openFirst(path);
  let length = fstatSync(file).size;
  let waiting: string[] = [];
  let waitingBytes = 0;
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;

  function rotate(): void {
    if (file !== undefined) closeSync(file);
    file = undefined;
    for (let i = keep - 1; i >= 0; i--) {
      try {
        renameSync(i === 0 ? path : `${path}.${i}`, `${path}.${i + 1}`);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
    file = openSync(path, 'a', 0o640);
    length = 0;
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.length === 0) return;
    const lines = waiting;
    const bytes = Buffer.from((lost > 0 ? `${lost} lines lost: the log could not be written\n` : '') + lines.join(''));
    waiting = [];
    waitingBytes = 0;
    try {
      if (length > 0 && length + bytes.length > maxBytes) rotate();
      file ??= openSync(path, 'a', 0o640);
      let done = 0;
      while (done < bytes.length) done += writeSync(file, bytes, done);
      length += bytes.length;
      lost = 0;
    } catch {
      lost += lines.length;
    }
  }

  process.on('exit', flush);
  return {
    write(line) {
      waiting.push(line);
      waitingBytes += line.length;
      if (waitingBytes >= FLUSH_AT_BYTES) flush();
      else if (timer === undefined) {
        timer = setTimeout(flush, FLUSH_AFTER_MS);
        timer.unref();
      }
    },
    flush,
    close() {
      flush();
      process.off('exit', flush);
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

/** At the start a log that cannot be written is a mistake of the user; later it must not stop the program. */
function openFirst(path: string): number {
  try {
    makeDirectory(dirname(path));
    return openSync(path, 'a', 0o640);
  } catch (error) {
    throw new RuntimeError('log_file_unwritable', `cannot write the log file ${path}: ${(error as Error).message}`);
  }
}

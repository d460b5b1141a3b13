/** Logs of the programs of one test, at level debug, in a folder of their own. A test that fails names the folder and leaves it; one that passes removes it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createLogger, type Logger, readLevelFilter } from '../../runtime/log/log.ts';
import { openLogFile } from '../../runtime/log/log-file.ts';

export type KeptLogs = {
  /** One file for each name, however often it is asked for. */
  logOf(name: string): Logger;
};

/** What a test that failed has written is named and left; of one that passed nothing stays. */
export function endFolder(folder: string, hasFailed: boolean, say: (line: string) => unknown): void {
  if (hasFailed) say(`the logs of the failed test are in ${folder}\n`);
  else rmSync(folder, { recursive: true, force: true });
}

/** An empty folder that is left, and named, where the test fails. */
export function keptFolder(atEnd: () => void = () => undefined): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-logs-'));
  onTestFinished(({ task }) => {
    atEnd();
    endFolder(folder, task.result?.state === 'fail', (line) => process.stderr.write(line));
  });
  return folder;
}

export function keptLogs(): KeptLogs & { readonly folder: string } {
  const logs = new Map<string, Logger>();
  const closing: (() => void)[] = [];
  const folder = keptFolder(() => {
    for (const close of closing) close();
  });
  return {
    folder,
    logOf(name) {
      const found = logs.get(name);
      if (found !== undefined) return found;
      const sink = openLogFile({ path: join(folder, `${name}.log`), maxBytes: 20_000_000, keep: 1 });
      closing.push(() => sink.close());
      const log = createLogger(name, { filter: readLevelFilter('debug'), format: 'text' }, { sink, now: Date.now });
      logs.set(name, log);
      return log;
    },
  };
}

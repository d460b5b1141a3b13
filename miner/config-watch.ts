/**
 * Notices that the config file changed. Editors replace files instead of writing them, and some file systems send no
 * events, so the file is polled; a change counts once it has been stable for a moment.
 */
import { statSync } from 'node:fs';
import type { OptionTable, Parsed, ValuesOf } from '../runtime/command-line/command-line.ts';
import type { Logger } from '../runtime/log/log.ts';

const EVERY_MILLIS = 500;

function stamp(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs}/${size}/${ino}`;
  } catch {
    return 'absent';
  }
}

export function watchConfig(path: string, onChange: () => void, everyMillis = EVERY_MILLIS): () => void {
  let known = stamp(path);
  let seen = known;
  const timer = setInterval(() => {
    const now = stamp(path);
    const rested = now === seen;
    seen = now;
    if (!rested || now === known || now === 'absent') return;
    known = now;
    onChange();
  }, everyMillis);
  timer.unref();
  return () => clearInterval(timer);
}

/** Applies a changed config file, one change after the other; one that is wrong changes nothing. */
export function followConfig<T extends OptionTable>(
  path: string,
  parse: () => Parsed<T>,
  apply: (values: ValuesOf<T>) => Promise<void>,
  log: Pick<Logger, 'info' | 'error'>,
): () => void {
  const reload = async (): Promise<void> => {
    const parsed = parse();
    if (parsed.kind !== 'run') {
      const reason = parsed.kind === 'usage' ? `${parsed.error.message} (${parsed.error.remedy})` : parsed.kind;
      log.error('the config file is not used', { reason });
      return;
    }
    try {
      await apply(parsed.values);
    } catch (error) {
      log.error('the config file is not used', { error });
      return;
    }
    log.info('config file read again');
  };
  let applied: Promise<void> = Promise.resolve();
  return watchConfig(path, () => {
    applied = applied.then(reload);
  });
}

/**
 * Notices that the config file changed. Editors replace files instead of writing them, and some file systems send no
 * events, so the file is polled; a change counts once it has been stable for a moment.
 */
import { statSync } from 'node:fs';

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

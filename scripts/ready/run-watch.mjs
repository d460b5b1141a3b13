/**
 * Ends a run of the tests that hangs as a whole: tests and hooks have limits of their own (test/watch), but a worker that never gets to its event loop, and
 * a vitest that does not end, have none. Workers write every second what they do into a folder; results come last.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Longer than any test computes without a pause, on a machine that is eight times too busy. */
const SILENCE_MILLIS = 600_000;
/** From the results until vitest has ended. */
const END_MILLIS = 60_000;
const LOOK_MILLIS = 1_000;
const SHOWN_CHARACTERS = 200;

/** @param {() => string} look */
function textOf(look) {
  try {
    return look();
  } catch {
    return '';
  }
}

/** @param {string} path */
const changedAt = (path) => Number(textOf(() => `${statSync(path).mtimeMs}`));
/** @param {string} path */
const names = (path) =>
  textOf(() => readdirSync(path).join('\n'))
    .split('\n')
    .filter(Boolean);

/**
 * A process and all below it, those that it started first.
 * @param {number} root
 */
export function processesBelow(root) {
  const found = [root];
  for (const pid of found)
    for (const thread of names(`/proc/${pid}/task`))
      for (const child of textOf(() => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')).split(' '))
        if (child.trim() !== '') found.push(Number(child));
  return found;
}

/** @param {number} pid */
function showProcess(pid) {
  const words = textOf(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    .replaceAll('\0', ' ')
    .trim();
  const stat = textOf(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const ticks = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  const seconds = ticks.reduce((sum, count) => sum + Number(count), 0) / 100;
  return `  process ${pid}, ${seconds.toFixed(1)} s of processor time: ${words.slice(0, SHOWN_CHARACTERS)}`;
}

/**
 * Looks until `stop` is called. Of a run that hangs it says what was running, and ends it and all that it started.
 * @param {{ pid: number; notes: string; results: string; say: (line: string) => void; silenceMillis?: number; endMillis?: number }} run
 */
export function watchRun({ pid, notes, results, say, silenceMillis = SILENCE_MILLIS, endMillis = END_MILLIS }) {
  let lastSign = Date.now();
  let hung = false;
  const timer = setInterval(
    () => {
      const ended = changedAt(results);
      lastSign = Math.max(
        lastSign,
        ended,
        changedAt(notes),
        ...names(notes).map((name) => changedAt(join(notes, name))),
      );
      const limit = ended > 0 ? endMillis : silenceMillis;
      if (hung || Date.now() - lastSign < limit) return;
      hung = true;
      const seconds = Math.round(limit / 1_000);
      say(
        ended > 0 ? `vitest wrote its results and did not end in ${seconds} s` : `no test has moved for ${seconds} s`,
      );
      const running = processesBelow(pid);
      for (const each of running) {
        say(showProcess(each));
        const note = textOf(() => readFileSync(join(notes, `${each}`), 'utf8')).trim();
        if (note !== '') say(`    ran ${note}`);
      }
      // Parents first: one that sees its child end may end by itself, as if nothing had happened.
      for (const each of running)
        try {
          process.kill(each, 'SIGKILL');
        } catch {
          // It ended meanwhile.
        }
    },
    Math.min(LOOK_MILLIS, silenceMillis, endMillis),
  );
  return {
    /** Whether the run hung. */
    stop() {
      clearInterval(timer);
      return hung;
    },
  };
}

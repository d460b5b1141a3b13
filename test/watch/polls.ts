/** What `expect.poll` looks at is watched; the watch ends it, not a time on the clock. */
import { expect } from 'vitest';
import { watch } from './watch.ts';

/** As long as a timer of Node can be. */
const FOREVER_MILLIS = 2 ** 31 - 1;
const WATCHED = Symbol.for('svc.test.watched');
const marked = expect as { [WATCHED]?: boolean };

export function watchPolls(): void {
  if (marked[WATCHED] !== undefined) return;
  marked[WATCHED] = true;
  const { poll } = expect;
  expect.poll = (look, options) => poll(watch.polled(look), { ...options, timeout: FOREVER_MILLIS });
}

import { setTimeout as sleep } from 'node:timers/promises';
import { watch } from './watch/watch.ts';

type Waiting = {
  /** For programs that are not tests: in a test the watch ends what does not move. */
  readonly millis?: number;
  readonly everyMillis?: number;
  /** What else is known when it did not happen. */
  readonly why?: () => string;
  /** What moves while it waits, where the look does not return it. */
  readonly seen?: () => unknown;
};
type Found<T> = Exclude<T, undefined | false | ''>;

/** A look that asks a program or a database must not become most of the work of both: it may take a tenth of the time. */
const REST_PER_LOOK = 9;
const MOST_REST_MILLIS = 1_000;

/** Looks again and again until there is something, and returns it. */
export function until<T>(
  look: () => T | Promise<T>,
  { millis = Number.POSITIVE_INFINITY, everyMillis = 20, why = () => '', seen }: Waiting = {},
): Promise<Found<T>> {
  const act = async (watched: () => Promise<T>): Promise<Found<T>> => {
    for (const end = performance.now() + millis; ; ) {
      const begun = performance.now();
      const found = await watched();
      if (found !== undefined && found !== false && found !== '') return found as Found<T>;
      const now = performance.now();
      if (now > end) throw new Error(`not in ${millis} ms: ${look} ${why()}`);
      await sleep(Math.max(everyMillis, Math.min((now - begun) * REST_PER_LOOK, MOST_REST_MILLIS)));
    }
  };
  return watch.lookFor(`until(${look})`, look, act, { why, ...(seen && { seen }) });
}

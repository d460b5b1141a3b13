import { setTimeout as sleep } from 'node:timers/promises';

type Waiting = {
  readonly millis?: number;
  readonly everyMillis?: number;
  /** What else is known when it did not happen in time. */
  readonly why?: () => string;
};
type Found<T> = Exclude<T, undefined | false | ''>;

/** A look that asks a program or a database must not become most of the work of both: it may take a tenth of the time. */
const REST_PER_LOOK = 9;
const MOST_REST_MILLIS = 1_000;

/** Looks again and again until there is something, and returns it. */
export async function until<T>(
  look: () => T | Promise<T>,
  { millis = 300_000, everyMillis = 20, why = () => '' }: Waiting = {},
): Promise<Found<T>> {
  for (const end = performance.now() + millis; ; ) {
    const begun = performance.now();
    const found = await look();
    if (found !== undefined && found !== false && found !== '') return found as Found<T>;
    const now = performance.now();
    if (now > end) throw new Error(`not in ${millis} ms: ${look} ${why()}`);
    await sleep(Math.max(everyMillis, Math.min((now - begun) * REST_PER_LOOK, MOST_REST_MILLIS)));
  }
}

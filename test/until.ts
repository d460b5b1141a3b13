import { setTimeout as sleep } from 'node:timers/promises';

type Waiting = {
  readonly millis?: number;
  readonly everyMillis?: number;
  /** What else is known when it did not happen in time. */
  readonly why?: () => string;
};
type Found<T> = Exclude<T, undefined | false | ''>;

/** Looks again and again until there is something, and returns it. */
export async function until<T>(
  look: () => T | Promise<T>,
  { millis = 300_000, everyMillis = 20, why = () => '' }: Waiting = {},
): Promise<Found<T>> {
  for (const end = performance.now() + millis; ; await sleep(everyMillis)) {
    const found = await look();
    if (found !== undefined && found !== false && found !== '') return found as Found<T>;
    if (performance.now() > end) throw new Error(`not in ${millis} ms: ${look} ${why()}`);
  }
}

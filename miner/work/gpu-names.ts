/** Names of graphics cards, as the driver layer lists them. Pure. */
import { SOFTWARE_NAMES } from '../../kernels/gpu/device.ts';

/**
 * `adapter` is what the card is opened by. Cards of one name cannot be distinguished by it: they are listed once, with their
 * count. `software`: an adapter emulated on the processor.
 */
export type FoundGpu = {
  readonly name: string;
  readonly adapter: string;
  readonly count: number;
  readonly software: boolean;
};

/** A name that no card has: the refusal lists the cards there are, which is the documented way to ask for them. */
export const NOBODY = 'no such adapter';
const LISTED = /^ \* backend: '(\w+)', name: '(.*)'$/;

/** The null backend computes nothing. */
export function readAdapters(refusal: string): FoundGpu[] {
  const counts = new Map<string, number>();
  for (const line of refusal.split('\n')) {
    const [, backend, name] = LISTED.exec(line) ?? [];
    if (name !== undefined && backend !== 'null' && backend !== 'undefined')
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => ({
    name,
    adapter: name,
    count,
    software: SOFTWARE_NAMES.test(name),
  }));
}

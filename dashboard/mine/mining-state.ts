/**
 * The state of this tab's miner, for every page of the site without loading its code: it keeps running while other
 * pages are open.
 */
import { useEffect, useState } from 'preact/hooks';

export type MiningState = {
  readonly hashRate: number;
  readonly accepted: number;
  /** Why it rests; undefined while it mines. */
  readonly resting: string | undefined;
  stop(): Promise<void>;
};

let state: MiningState | undefined;
const listeners = new Set<(state: MiningState | undefined) => void>();

/** Undefined when nothing mines here. */
export function tellMining(next: MiningState | undefined): void {
  state = next;
  for (const listener of listeners) listener(next);
}

export function useMining(): MiningState | undefined {
  const [known, setKnown] = useState(state);
  useEffect(() => {
    listeners.add(setKnown);
    setKnown(state);
    return () => void listeners.delete(setKnown);
  }, []);
  return known;
}

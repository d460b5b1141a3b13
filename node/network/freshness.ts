/**
 * A node that does not make the cuts itself counts as behind when its newest cut is old, whatever peers prove: either
 * newer cuts are withheld from it, or none are made, and then nothing it offers becomes final. Clocks may differ a
 * little.
 */
import type { Head } from '../full-node.ts';

const LEAST_MILLIS = 120_000;
const CUTS = 48;

export const isFresh = (head: Pick<Head, 'timestampMillis'>, nowMillis: number, cutMillis: number): boolean =>
  nowMillis - head.timestampMillis <= Math.max(LEAST_MILLIS, CUTS * cutMillis);

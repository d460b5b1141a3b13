/** Answers that need several reads while the chain may advance. */
import type { Chain } from '../full-node.ts';
import { refusal } from './api-error.ts';

const TRIES = 20;
const RETRY_MILLIS = 1_000;

/** The result of reads at one cut, which is the head when this resolves. If the head moves meanwhile, everything is read again. */
export async function ofOneCut<T>(chain: Pick<Chain, 'head'>, read: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { height } = chain.head();
    const value = await read();
    if (chain.head().height === height) return value;
  }
  throw refusal('too_busy', 'cuts come faster than this can be read; try again', {}, RETRY_MILLIS);
}

/** Answers that take several reads of a chain that goes on meanwhile. */
import type { Chain } from '../full-node.ts';
import { refusal } from './api-error.ts';

const TRIES = 20;
const RETRY_MILLIS = 1_000;

/** What is read while the chain stands at one cut, which is its head when this resolves. Where a cut comes between, all of it is read again. */
export async function ofOneCut<T>(chain: Pick<Chain, 'head'>, read: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { height } = chain.head();
    const value = await read();
    if (chain.head().height === height) return value;
  }
  throw refusal('too_busy', 'cuts come faster than this can be read; try again', {}, RETRY_MILLIS);
}

/** Selects the live news for notifications: a payment to the miner, and a block that the miner found. */

import type { LiveFrame } from '../../pool/api/documents.ts';
import { coins, percent } from '../format.ts';
import { type WordKey, word } from '../words/language.ts';

/** `tag`: a later notification of the same tag takes the place of an earlier one. */
export type News = { readonly tag: string; readonly title: string; readonly body: string };

const PAYMENTS: Readonly<Record<string, WordKey>> = {
  submitted: 'news.payment_sent',
  finalized: 'news.payment_received',
};

export function newsOf(frame: LiveFrame, address: string): News | undefined {
  if (frame.type === 'payment') {
    const { address: to, state, amount, payout_id: id } = frame.data;
    const title = PAYMENTS[state];
    return to !== address || title === undefined
      ? undefined
      : { tag: `payment/${id}/${state}`, title: word(title), body: word('part.coins', { coins: coins(amount) }) };
  }
  if (frame.type !== 'block' || frame.data.finder !== address || frame.data.reward !== null) return undefined;
  const { block_id: id, worker, state } = frame.data;
  if (state === 'expired' || state === 'refused') return undefined;
  return {
    tag: `block/${id}`,
    title: word('news.you_found'),
    body: worker === '' ? word('news.pool_has_it') : word('news.worker', { name: worker }),
  };
}

/** Found now, and not an old block of which there is news: the clocks of pool and visitor may differ by minutes. */
const FRESH_MILLIS = 10 * 60_000;

/** A block that any miner of the pool has just found. */
export function blockNews(frame: LiveFrame, now: number): News | undefined {
  if (frame.type !== 'block') return undefined;
  const { block_id: id, state, reward, found_millis: found, effort } = frame.data;
  const isNew = reward === null && state !== 'expired' && state !== 'refused' && Math.abs(now - found) < FRESH_MILLIS;
  return isNew
    ? {
        tag: `block/${id}`,
        title: word('news.pool_found'),
        body: word('news.with_effort', { effort: percent(effort, 0) }),
      }
    : undefined;
}

/** A quick miner finds a block a second: one notification a minute is enough of those. */
const BLOCK_MILLIS = 60_000;
const REMEMBERED = 200;

/** Lets each piece of news pass once, and blocks seldom. */
export class NewsGate {
  readonly #told = new Set<string>();
  readonly #blockMillis: number;
  #blockAt = Number.NEGATIVE_INFINITY;

  constructor(blockMillis = BLOCK_MILLIS) {
    this.#blockMillis = blockMillis;
  }

  passes({ tag }: News, now: number): boolean {
    if (this.#told.has(tag)) return false;
    const isBlock = tag.startsWith('block/');
    if (isBlock && now - this.#blockAt < this.#blockMillis) return false;
    if (isBlock) this.#blockAt = now;
    this.#told.add(tag);
    const oldest = this.#told.values().next().value;
    if (this.#told.size > REMEMBERED && oldest !== undefined) this.#told.delete(oldest);
    return true;
  }
}

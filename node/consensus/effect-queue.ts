/** Effects that wait for those before them. A disk that is full or slow can keep them waiting for long. What answers neighbours is lost then, and comes again by anti-entropy. Everything else, own votes too, is bounded by the rounds of one height. */
import type { Effect } from './effects.ts';

export const MAX_WAITING_EFFECTS = 10_000;

const mayBeLost = (effect: Effect): boolean => effect.do === 'serve' || (effect.do === 'send' && effect.to !== 'all');

export class EffectQueue {
  readonly #waiting: Effect[] = [];

  get length(): number {
    return this.#waiting.length;
  }

  get isFull(): boolean {
    return this.#waiting.length >= MAX_WAITING_EFFECTS;
  }

  push(effects: readonly Effect[]): void {
    for (const effect of effects) if (!this.isFull || !mayBeLost(effect)) this.#waiting.push(effect);
  }

  shift(): Effect | undefined {
    return this.#waiting.shift();
  }
}

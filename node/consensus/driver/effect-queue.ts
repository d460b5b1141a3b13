/**
 * Effects that wait for earlier ones, for long if the disk is full or slow. Answers to neighbours are then dropped, and
 * recovered by anti-entropy. Everything else, including own votes, is bounded by the rounds of one height.
 */
import type { Effect } from '../engine/effects.ts';

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

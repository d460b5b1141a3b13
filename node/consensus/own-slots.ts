/** The slots of a validator without an open port: at two relays, and at others in the place of one that is gone or does not answer. */
import type { Peer } from './effects.ts';
import { RECORD, SLOT } from './relay-limits.ts';

/** A member with a route, that this validator is connected to. */
export type Candidate = { readonly name: string; readonly peer: Peer };

export class OwnSlots {
  readonly #asked = new Map<string, { readonly peer: Peer; readonly at: number }>();
  readonly #held = new Map<string, Peer>();
  /** Until when others come first. */
  readonly #passedOver = new Map<string, number>();

  /** Which of them to ask now. `random` gives an integer below its argument. */
  ask(candidates: readonly Candidate[], now: number, random: (limit: number) => number): readonly Candidate[] {
    this.#forget(candidates, now);
    const asked: Candidate[] = [];
    while (this.#held.size + this.#asked.size < RECORD.relays) {
      const free = candidates.filter(({ name }) => !this.#held.has(name) && !this.#asked.has(name));
      const first = free.filter(({ name }) => !this.#passedOver.has(name));
      const from = first.length > 0 ? first : free;
      const chosen = from[from.length === 0 ? 0 : random(from.length)];
      if (chosen === undefined) break;
      this.#asked.set(chosen.name, { peer: chosen.peer, at: now });
      asked.push(chosen);
    }
    return asked;
  }

  /** A relay says that it gives a slot; false where it was not asked. */
  granted(peer: Peer): boolean {
    for (const [name, asked] of this.#asked)
      if (asked.peer === peer) {
        this.#asked.delete(name);
        this.#held.set(name, peer);
        return true;
      }
    return false;
  }

  isHeldAt(peer: Peer): boolean {
    return [...this.#held.values()].includes(peer);
  }

  relays(): readonly string[] {
    return [...this.#held.keys()];
  }

  clear(): void {
    for (const map of [this.#asked, this.#held, this.#passedOver]) map.clear();
  }

  #forget(candidates: readonly Candidate[], now: number): void {
    const there = new Map(candidates.map(({ name, peer }) => [name, peer]));
    for (const [name, peer] of this.#held) if (there.get(name) !== peer) this.#held.delete(name);
    for (const [name, { peer, at }] of this.#asked) {
      const isSilent = now - at >= SLOT.answerMillis;
      if (isSilent) this.#passedOver.set(name, now + SLOT.passedOverMillis);
      if (isSilent || there.get(name) !== peer) this.#asked.delete(name);
    }
    for (const [name, until] of this.#passedOver) if (until <= now || !there.has(name)) this.#passedOver.delete(name);
  }
}

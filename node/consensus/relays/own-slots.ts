/**
 * The relay slots of a validator without an open port: at two relays; one that is gone or does not answer is replaced.
 */
import { Buckets } from '../../../runtime/clients/buckets.ts';
import { refill } from '../../../runtime/clients/token-bucket.ts';
import type { Peer } from '../engine/effects.ts';
import { CIRCUIT, RECORD, SLOT } from './relay-limits.ts';

/** A member with a route, that this validator is connected to. */
export type Candidate = { readonly name: string; readonly peer: Peer };

type Slot = { readonly peer: Peer; readonly askedAt: number; readonly isHeld: boolean; readonly isAnswered: boolean };

export class OwnSlots {
  /** By relay: those that were asked, and those that gave one. */
  readonly #slots = new Map<string, Slot>();
  /** Until when others are preferred. */
  readonly #passedOver = new Map<string, number>();
  /** Counted by relay, not by connection: a reconnect does not reset it. */
  readonly #invited = new Buckets(CIRCUIT.invited);

  /**
   * The relays to ask now: for a slot, or whether the slot still exists. `random` gives an integer below its argument.
   */
  ask(candidates: readonly Candidate[], now: number, random: (limit: number) => number): readonly Candidate[] {
    this.#forget(candidates, now);
    const asked: Candidate[] = [];
    for (const [name, slot] of this.#slots)
      if (slot.isAnswered && now - slot.askedAt >= SLOT.renewMillis) {
        this.#slots.set(name, { ...slot, askedAt: now, isAnswered: false });
        asked.push({ name, peer: slot.peer });
      }
    while (this.#slots.size < RECORD.relays) {
      const free = candidates.filter(({ name }) => !this.#slots.has(name));
      const first = free.filter(({ name }) => !this.#passedOver.has(name));
      const from = first.length > 0 ? first : free;
      const chosen = from.length === 0 ? undefined : from[random(from.length)];
      if (chosen === undefined) break;
      this.#slots.set(chosen.name, { peer: chosen.peer, askedAt: now, isHeld: false, isAnswered: false });
      asked.push(chosen);
    }
    return asked;
  }

  /** A relay grants a slot; ignored if it was not asked. */
  granted(peer: Peer): void {
    for (const [name, slot] of this.#slots)
      if (slot.peer === peer) this.#slots.set(name, { ...slot, isHeld: true, isAnswered: true });
  }

  /**
   * Whether to follow an invitation of this relay. A relay that invites too often is abandoned, because every
   * invitation costs a connection.
   */
  mayInvite(peer: Peer, now: number): boolean {
    const [name] = [...this.#slots].find(([, slot]) => slot.isHeld && slot.peer === peer) ?? [];
    if (name === undefined) return false;
    if (this.#invited.take(name, now)) return true;
    this.#slots.delete(name);
    this.#passedOver.set(name, now + SLOT.passedOverMillis);
    return false;
  }

  relays(): readonly string[] {
    return [...this.#slots].filter(([, { isHeld }]) => isHeld).map(([name]) => name);
  }

  clear(): void {
    this.#slots.clear();
    this.#passedOver.clear();
  }

  #forget(candidates: readonly Candidate[], now: number): void {
    for (const [name, bucket] of this.#invited)
      if (refill(bucket, CIRCUIT.invited, now).tokens >= CIRCUIT.invited.burst) this.#invited.delete(name);
    const there = new Map(candidates.map(({ name, peer }) => [name, peer]));
    for (const [name, { peer, askedAt, isAnswered }] of this.#slots) {
      const isSilent = !isAnswered && now - askedAt >= SLOT.answerMillis;
      if (isSilent) this.#passedOver.set(name, now + SLOT.passedOverMillis);
      if (isSilent || there.get(name) !== peer) this.#slots.delete(name);
    }
    for (const [name, until] of this.#passedOver) if (until <= now || !there.has(name)) this.#passedOver.delete(name);
  }
}

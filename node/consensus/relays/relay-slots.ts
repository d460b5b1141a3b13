/** The slots and circuits of this relay. Limited per validator, per pair and in total; only members get any. */
import { Buckets } from '../../../runtime/clients/buckets.ts';
import type { Peer } from '../engine/effects.ts';
import type { Role } from '../link/channel.ts';
import { CIRCUIT, SLOT } from './relay-limits.ts';

export type Circuit = {
  readonly number: number;
  /** The validators at its ends. */
  readonly ends: { readonly [R in Role]: string };
  readonly askedAt: number;
  isOpen: boolean;
  /** Since when one of its ends has not been listed. */
  unlistedSince?: number | undefined;
};

export type CircuitRefusal = 'same_validator' | 'no_slot' | 'too_often' | 'too_many';

export class RelaySlots {
  /** By validator. */
  readonly #slots = new Map<string, Peer>();
  readonly #circuits = new Map<number, Circuit>();
  readonly #asked = new Buckets(CIRCUIT.asked);
  /** By requesting validator, then by the other. */
  readonly #toOne = new Map<string, Buckets>();
  #count = 0;

  /** A validator has one slot: the newest of its connections. */
  grant(validator: string, peer: Peer): boolean {
    if (this.#slots.size >= SLOT.most && !this.#slots.has(validator)) return false;
    this.#slots.set(validator, peer);
    return true;
  }

  at(validator: string): Peer | undefined {
    return this.#slots.get(validator);
  }

  left(peer: Peer): void {
    for (const [validator, held] of this.#slots) if (held === peer) this.#slots.delete(validator);
  }

  /**
   * Sets the connected members: others lose their slots. Requests are counted while a validator is listed: a reconnect
   * does not reset them.
   */
  keep(members: ReadonlySet<string>, listed: ReadonlySet<string>): void {
    for (const validator of this.#slots.keys()) if (!members.has(validator)) this.#slots.delete(validator);
    for (const map of [this.#asked, this.#toOne, ...this.#toOne.values()])
      for (const validator of map.keys()) if (!listed.has(validator)) map.delete(validator);
  }

  /** A circuit that waits for its ends. */
  open(from: string, to: string, now: number): Circuit | CircuitRefusal {
    if (from === to) return 'same_validator';
    if (!this.#asked.take(from, now)) return 'too_often';
    if (!this.#slots.has(to)) return 'no_slot';
    const all = [...this.#circuits.values()];
    const of = (validator: string) =>
      all.filter(({ ends }) => ends.dialler === validator || ends.dialled === validator);
    const isFull =
      all.length >= CIRCUIT.most ||
      [from, to].some((end) => of(end).length >= CIRCUIT.ofOne) ||
      of(from).filter(({ ends }) => ends.dialler === to || ends.dialled === to).length >= CIRCUIT.ofTwo ||
      all.filter(({ ends, isOpen }) => !isOpen && ends.dialler === from).length >= CIRCUIT.waitingOfOne;
    if (isFull) return 'too_many';
    const toOne = this.#toOne.get(from) ?? new Buckets(CIRCUIT.toOne);
    this.#toOne.set(from, toOne);
    if (!toOne.take(to, now)) return 'too_often';
    const number = ++this.#count;
    const circuit = { number, ends: { dialler: from, dialled: to }, askedAt: now, isOpen: false };
    this.#circuits.set(number, circuit);
    return circuit;
  }

  end(number: number): void {
    this.#circuits.delete(number);
  }

  /** Removes circuits whose ends did not connect in time. */
  late(now: number): readonly number[] {
    const late = [...this.#circuits.values()].filter((each) => !each.isOpen && now - each.askedAt > CIRCUIT.joinMillis);
    for (const { number } of late) this.#circuits.delete(number);
    return late.map(({ number }) => number);
  }

  /** Circuits of which an end has not been listed for a while. */
  unlisted(listed: ReadonlySet<string>, now: number): readonly number[] {
    const found: number[] = [];
    for (const circuit of this.#circuits.values()) {
      const { dialler, dialled } = circuit.ends;
      circuit.unlistedSince = listed.has(dialler) && listed.has(dialled) ? undefined : (circuit.unlistedSince ?? now);
      if (now - (circuit.unlistedSince ?? now) > CIRCUIT.unlistedMillis) found.push(circuit.number);
    }
    return found;
  }

  get size(): number {
    return this.#circuits.size;
  }
}

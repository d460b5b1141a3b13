/**
 * Bans with their ends, bounded. Strangers earn bans by score, with as many addresses as they have: those of the operator
 * have room of their own, so that none of them is forgotten for that.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { clientKey } from '../../runtime/clients/client-address.ts';

export class KeptBans {
  readonly #byScore: BoundedMap<string, number>;
  readonly #operators: BoundedMap<string, number>;

  constructor(capacity: number) {
    this.#byScore = new BoundedMap(capacity);
    this.#operators = new BoundedMap(capacity);
  }

  /** The key of a ban by score is that of a client; see operator-ban.ts for others. */
  #of(key: string): BoundedMap<string, number> {
    return clientKey(key) === key ? this.#byScore : this.#operators;
  }

  set(key: string, untilMillis: number): void {
    const bans = this.#of(key);
    bans.delete(key);
    bans.set(key, untilMillis);
  }

  delete(key: string): boolean {
    return this.#of(key).delete(key);
  }

  /** Undefined when it is over. */
  until(key: string, nowMillis: number): number | undefined {
    const until = this.#of(key).get(key);
    return until === undefined || until > nowMillis ? until : undefined;
  }

  /** Those that hold, of the operator first; the others are forgotten. */
  list(nowMillis: number): { key: string; untilMillis: number }[] {
    const held: { key: string; untilMillis: number }[] = [];
    for (const bans of [this.#operators, this.#byScore])
      for (const [key, untilMillis] of [...bans])
        if (untilMillis > nowMillis) held.push({ key, untilMillis });
        else bans.delete(key);
    return held;
  }
}

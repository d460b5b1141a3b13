/**
 * The delegations of each validator, in the order of their identifiers: payments and slashing walk through them from a
 * cursor. In memory, because a walk must not wait for the disk in the middle of a cut; the store keeps one empty record
 * for each.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { nameOf } from '../ledger/registration.ts';

export class PositionIndex {
  /** Names sort as the bytes do. */
  readonly #byValidator = new Map<string, string[]>();

  add(validator: Bytes, id: Bytes): void {
    const names = this.#byValidator.get(nameOf(validator));
    const name = nameOf(id);
    if (names === undefined) this.#byValidator.set(nameOf(validator), [name]);
    else names.splice(indexOf(names, name), 0, name);
  }

  delete(validator: Bytes, id: Bytes): void {
    const names = this.#byValidator.get(nameOf(validator)) ?? [];
    const index = indexOf(names, nameOf(id));
    if (names[index] === nameOf(id)) names.splice(index, 1);
    if (names.length === 0) this.#byValidator.delete(nameOf(validator));
  }

  count(validator: Bytes): number {
    return this.#byValidator.get(nameOf(validator))?.length ?? 0;
  }

  after(validator: Bytes, after: Bytes | undefined, limit: number): Bytes[] {
    const names = this.#byValidator.get(nameOf(validator)) ?? [];
    let from = after === undefined ? 0 : indexOf(names, nameOf(after));
    if (after !== undefined && names[from] === nameOf(after)) from++;
    return names.slice(from, from + limit).map((name) => Buffer.from(name, 'latin1'));
  }
}

/** The first index whose name is not below. */
function indexOf(names: readonly string[], name: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((names[middle] as string) < name) low = middle + 1;
    else high = middle;
  }
  return low;
}

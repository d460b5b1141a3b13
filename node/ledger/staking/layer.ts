/**
 * The staking records as a cut changes them: a layer over the finalized sets, which becomes the cut's changes of the three tries, of the index of
 * delegations and of the figures.
 */
import { type Bytes, compareBytes } from '../../../protocol/bytes.ts';
import { nameOf } from '../registration.ts';
import type { TrieChange } from '../trie.ts';
import { type Position, positionEntry } from './position.ts';
import { isActive, type Validator, validatorEntry } from './validator.ts';

/** The finalized records as a cut sees them. */
export interface StakingReads {
  validator(id: Bytes): Validator | undefined;
  position(id: Bytes): Position | undefined;
  isKeyUsed(keyHash: Bytes): boolean;
  /** All validators that neither exit nor are slashed. */
  activeValidators(): Iterable<Validator>;
  /** Identifiers of the delegations to a validator above `after`, ascending, at most `limit`. */
  delegations(validator: Bytes, after: Bytes | undefined, limit: number): readonly Bytes[];
}

/** The changes collected by the layer. */
export type StakingChanges = {
  readonly validators: readonly Validator[];
  readonly positions: readonly { readonly before: Position | undefined; readonly after: Position | undefined }[];
  readonly keyHashes: readonly Bytes[];
};

export class StakingLayer implements StakingReads {
  bonded = 0n;
  unbonding = 0n;
  burned = 0n;
  readonly #reads: StakingReads;
  readonly #validators = new Map<string, Validator>();
  /** Those that are also in the finalized set. */
  readonly #positions = new Map<string, Position | undefined>();
  readonly #keyHashes = new Map<string, Bytes>();
  /** Delegations of this cut by validator: an identifier with true is added, with false removed. */
  readonly #delegations = new Map<string, Map<string, { id: Bytes; added: boolean }>>();

  constructor(reads: StakingReads) {
    this.#reads = reads;
  }

  validator(id: Bytes): Validator | undefined {
    return this.#validators.get(nameOf(id)) ?? this.#reads.validator(id);
  }

  position(id: Bytes): Position | undefined {
    const name = nameOf(id);
    return this.#positions.has(name) ? this.#positions.get(name) : this.#reads.position(id);
  }

  isKeyUsed(keyHash: Bytes): boolean {
    return this.#keyHashes.has(nameOf(keyHash)) || this.#reads.isKeyUsed(keyHash);
  }

  *activeValidators(): Iterable<Validator> {
    for (const validator of this.#reads.activeValidators())
      if (!this.#validators.has(nameOf(validator.id))) yield validator;
    for (const validator of this.#validators.values()) if (isActive(validator)) yield validator;
  }

  delegations(validator: Bytes, after: Bytes | undefined, limit: number): readonly Bytes[] {
    const changed = this.#delegations.get(nameOf(validator));
    if (changed === undefined) return this.#reads.delegations(validator, after, limit);
    // As many more as this cut may have removed: what is not read comes after the first `limit` of those that are left.
    const found = this.#reads
      .delegations(validator, after, limit + changed.size)
      .filter((id) => !changed.has(nameOf(id)));
    const added = [...changed.values()].filter(
      ({ id, added }) => added && (after === undefined || compareBytes(id, after) > 0),
    );
    return [...found, ...added.map(({ id }) => id)].sort(compareBytes).slice(0, limit);
  }

  putValidator(validator: Validator): void {
    this.#validators.set(nameOf(validator.id), validator);
  }

  putPosition(position: Position): void {
    if (this.position(position.id) === undefined) this.#noteDelegation(position, true);
    this.#positions.set(nameOf(position.id), position);
  }

  removePosition(position: Position): void {
    this.#noteDelegation(position, false);
    this.#positions.set(nameOf(position.id), undefined);
  }

  useKey(keyHash: Bytes): void {
    this.#keyHashes.set(nameOf(keyHash), keyHash);
  }

  #noteDelegation({ kind, validator, id }: Position, added: boolean): void {
    if (kind !== 'delegation') return;
    const name = nameOf(validator);
    const changed = this.#delegations.get(name) ?? new Map<string, { id: Bytes; added: boolean }>();
    this.#delegations.set(name, changed);
    changed.set(nameOf(id), { id, added });
  }

  validatorChanges(): TrieChange[] {
    return [...this.#validators.values()].map((validator) => ({
      key: validator.id,
      entry: validatorEntry(validator),
      replaces: this.#reads.validator(validator.id) !== undefined,
    }));
  }

  positionChanges(): TrieChange[] {
    const changes: TrieChange[] = [];
    for (const { before, after } of this.changes().positions)
      if (after !== undefined)
        changes.push({ key: after.id, entry: positionEntry(after), replaces: before !== undefined });
      else if (before !== undefined) changes.push({ key: before.id });
    return changes;
  }

  keyChanges(): TrieChange[] {
    return [...this.#keyHashes.values()].map((hash) => ({ key: hash, entry: hash }));
  }

  changes(): StakingChanges {
    return {
      validators: [...this.#validators.values()],
      positions: [...this.#positions].map(([name, after]) => ({
        before: this.#reads.position(Buffer.from(name, 'latin1')),
        after,
      })),
      keyHashes: [...this.#keyHashes.values()],
    };
  }
}

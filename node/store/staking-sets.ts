/**
 * The staking records in the store: the three committed sets, the validators' records beside theirs, and two indexes,
 * delegations by validator and positions by owner. Active validators and the first index are in memory too: the end of
 * an epoch reads all validators, and every cut walks through the index.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import type { StakingTries, StakingUpdate } from '../ledger/apply-cut.ts';
import { nameOf } from '../ledger/registration.ts';
import type { StakingChanges, StakingReads } from '../ledger/staking/layer.ts';
import { POSITION_LAYOUT, type Position, positionOfEntry } from '../ledger/staking/position.ts';
import {
  decodeValidator,
  encodeValidator,
  isActive,
  USED_KEY_LAYOUT,
  VALIDATOR_LAYOUT,
  type Validator,
} from '../ledger/staking/validator.ts';
import type { LedgerState } from '../ledger/state.ts';
import { Trie } from '../ledger/trie.ts';
import { decodeRecord } from '../ledger/unread-record.ts';
import type { BatchOp } from './cut-indexer.ts';
import { KEYS } from './keys.ts';

type Get = (key: Bytes) => Uint8Array | undefined;
type Range = (from: Bytes, to: Bytes) => Promise<[Uint8Array, Uint8Array][]>;

const NOTHING = new Uint8Array(0);

/** The entries of a position in the two indexes. */
export function ownedOperations(position: Position, type: BatchOp['type']): BatchOp[] {
  const keys = [KEYS.owned(position.owner, position.id)];
  if (position.kind === 'delegation') keys.push(KEYS.delegation(position.validator, position.id));
  return keys.map((key) => (type === 'del' ? { type, key } : { type, key, value: NOTHING }));
}

/**
 * The delegations of each validator, in the order of their identifiers: payments and slashing walk through them from a
 * cursor. In memory, because a walk must not wait for the disk in the middle of a cut; the store keeps one empty record
 * for each.
 */
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

export class StakingSets {
  readonly tries: StakingTries;
  readonly #get: Get;
  readonly #active = new Map<string, Validator>();
  readonly #index = new PositionIndex();

  constructor(get: Get) {
    this.#get = get;
    this.tries = {
      validators: new Trie(VALIDATOR_LAYOUT, get),
      positions: new Trie(POSITION_LAYOUT, get),
      usedKeys: new Trie(USED_KEY_LAYOUT, get),
    };
  }

  /** Loads the records from the store. */
  async load(range: Range): Promise<void> {
    for (const [, value] of await range(...KEYS.validatorRange)) this.#note(decodeValidator(value));
    for (const [key] of await range(...KEYS.delegationRange))
      this.#index.add(key.subarray(1, 1 + ID_BYTES), key.subarray(1 + ID_BYTES));
  }

  #note(validator: Validator): void {
    const name = nameOf(validator.id);
    if (isActive(validator)) this.#active.set(name, validator);
    else this.#active.delete(name);
  }

  validator(id: Bytes): Validator | undefined {
    const known = this.#active.get(nameOf(id));
    if (known !== undefined) return known;
    return decodeRecord(this.#get(KEYS.validator(id)), decodeValidator);
  }

  /** The records as the state with these roots has them. */
  reads({ positions, usedKeys }: Pick<LedgerState, 'positions' | 'usedKeys'>): StakingReads {
    return {
      validator: (id) => this.validator(id),
      position: (id) => {
        const entry = this.tries.positions.get(positions, id);
        return entry === undefined ? undefined : positionOfEntry(entry);
      },
      isKeyUsed: (hash) => this.tries.usedKeys.get(usedKeys, hash) !== undefined,
      activeValidators: () => this.#active.values(),
      delegations: (validator, after, limit) => this.#index.after(validator, after, limit),
    };
  }

  delegationCount(validator: Bytes): number {
    return this.#index.count(validator);
  }

  operations(update: StakingUpdate, changes: StakingChanges): BatchOp[] {
    const operations: BatchOp[] = [
      ...update.validators.operations,
      ...update.positions.operations,
      ...update.usedKeys.operations,
    ];
    for (const validator of changes.validators)
      operations.push({ type: 'put', key: KEYS.validator(validator.id), value: encodeValidator(validator) });
    for (const { before, after } of changes.positions) {
      const position = after ?? before;
      if (position === undefined || (before !== undefined && after !== undefined)) continue;
      operations.push(...ownedOperations(position, after === undefined ? 'del' : 'put'));
    }
    return operations;
  }

  /** Call when the operations are in the store. */
  committed(update: StakingUpdate, changes: StakingChanges): void {
    this.tries.validators.committed(update.validators);
    this.tries.positions.committed(update.positions);
    this.tries.usedKeys.committed(update.usedKeys);
    for (const validator of changes.validators) this.#note(validator);
    for (const { before, after } of changes.positions)
      if (before === undefined && after?.kind === 'delegation') this.#index.add(after.validator, after.id);
      else if (after === undefined && before?.kind === 'delegation') this.#index.delete(before.validator, before.id);
  }
}

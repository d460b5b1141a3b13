/**
 * A position (ledger rule 60): coins bonded to a validator, its own or a delegator's. It records its value at the
 * starts of the epoch of its last change and of the one before, so that an epoch can begin without visiting it.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { unbondingCuts } from '../../../protocol/staking/limits.ts';
import type { EntryLayout } from '../trie.ts';
import { unbondHeight, type Validator } from './validator.ts';

export const POSITION_KINDS = ['self_bond', 'delegation'] as const;
export type PositionKind = (typeof POSITION_KINDS)[number];

export type Position = {
  readonly id: Bytes;
  readonly kind: PositionKind;
  readonly validator: Bytes;
  readonly owner: Bytes;
  readonly rewardAddress: Bytes;
  readonly principal: bigint;
  /** The epoch in which the principal was changed last, and what counted at its start and at that of the epoch before. */
  readonly epoch: number;
  readonly atStart: bigint;
  readonly atPrevious: bigint;
  /** The cut from which on it can be withdrawn, where its owner unbonded it; 0 otherwise. */
  readonly releaseHeight: number;
};

const counted = (position: Position): bigint => (position.releaseHeight === 0 ? position.principal : 0n);

/** Its value at the start of an epoch, which must not be earlier than the epoch before its last change. */
export function principalAtStart(position: Position, epoch: number): bigint {
  if (epoch > position.epoch) return counted(position);
  return epoch === position.epoch ? position.atStart : position.atPrevious;
}

/** The same position, ready to be changed in this epoch. */
export function rolled(position: Position, epoch: number): Position {
  if (position.epoch === epoch) return position;
  return {
    ...position,
    epoch,
    atStart: principalAtStart(position, epoch),
    atPrevious: principalAtStart(position, epoch - 1),
  };
}

/**
 * The cut from which on it can be withdrawn; undefined while it is bonded. Exit and slashing set a height only on the
 * validator.
 */
export function releaseOf(position: Position, validator: Validator, intervalCuts: number): number | undefined {
  if (position.releaseHeight !== 0) return position.releaseHeight;
  const since = unbondHeight(validator);
  return since === 0 ? undefined : since + unbondingCuts(intervalCuts);
}

const PRINCIPAL_AT = ID_BYTES + 1 + ID_BYTES + 2 * ADDRESS_PAYLOAD_BYTES;
export const POSITION_ENTRY_BYTES = PRINCIPAL_AT + 5 * 8;

/** The committed entry. */
export function positionEntry(position: Position): Uint8Array<ArrayBuffer> {
  return new ByteWriter(POSITION_ENTRY_BYTES)
    .raw(position.id)
    .u8(POSITION_KINDS.indexOf(position.kind))
    .raw(position.validator)
    .raw(position.owner)
    .raw(position.rewardAddress)
    .u64(position.principal)
    .height(position.epoch)
    .u64(position.atStart)
    .u64(position.atPrevious)
    .height(position.releaseHeight)
    .done();
}

export function positionOfEntry(entry: Bytes): Position {
  const reader = new ByteReader(entry);
  return {
    id: reader.take(ID_BYTES),
    kind: POSITION_KINDS[reader.u8()] as PositionKind,
    validator: reader.take(ID_BYTES),
    owner: reader.take(ADDRESS_PAYLOAD_BYTES),
    rewardAddress: reader.take(ADDRESS_PAYLOAD_BYTES),
    principal: reader.u64(),
    epoch: reader.height(),
    atStart: reader.u64(),
    atPrevious: reader.u64(),
    releaseHeight: reader.height(),
  };
}

export const POSITION_LAYOUT: EntryLayout = {
  prefix: 0x70,
  entryBytes: POSITION_ENTRY_BYTES,
  keyBytes: ID_BYTES,
  amount: (entry) => new DataView(entry.buffer, entry.byteOffset).getBigUint64(PRINCIPAL_AT, true),
};

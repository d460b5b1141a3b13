/**
 * A validator's record (ledger rule 60). Key, endpoint and commission have at most one successor each, which is in force from its epoch on without
 * a write: `asOf` gives the record as an epoch sees it, and the next change writes that form.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES } from '../../../protocol/crypto/key-sizes.ts';
import { EVIDENCE_EPOCHS } from '../../../protocol/staking/limits.ts';
import type { EntryLayout } from '../trie.ts';

export type Pending<T> = { readonly value: T; readonly epoch: number };
/** A key that signed from one epoch through another. */
export type FormerKey = { readonly key: Bytes; readonly from: number; readonly through: number };

export type Validator = {
  readonly id: Bytes;
  readonly owner: Bytes;
  readonly key: Bytes;
  /** First epoch of the key. */
  readonly keyFrom: number;
  readonly nextKey?: Pending<Bytes>;
  readonly formerKeys: readonly FormerKey[];
  readonly endpoint: Bytes;
  readonly nextEndpoint?: Pending<Bytes>;
  /** Basis points. */
  readonly commission: number;
  readonly nextCommission?: Pending<number>;
  /** First epoch whose committee it may sit in: the second after that of its registration, 0 at genesis. */
  readonly seatFrom: number;
  readonly heartbeatEpoch: number;
  /** First epoch in which it may sit again; 0 when it never was jailed. */
  readonly jailedUntil: number;
  /** Its own bond and the active delegations to it; nothing once it exits or is slashed. */
  readonly stake: bigint;
  /** Heights, 0 where it did not happen. */
  readonly exitHeight: number;
  readonly slashHeight: number;
};

export const isActive = (validator: Validator): boolean => validator.exitHeight === 0 && validator.slashHeight === 0;

/** The cut that made all its positions unbond; 0 while it is active. */
export const unbondHeight = (validator: Validator): number => validator.exitHeight || validator.slashHeight;

function inForce<T>(now: T, next: Pending<T> | undefined, epoch: number): { now: T; next: Pending<T> | undefined } {
  return next !== undefined && next.epoch <= epoch ? { now: next.value, next: undefined } : { now, next };
}

/** The record as of an epoch: successors that are due are in force, keys too old for evidence are dropped. */
export function asOf(validator: Validator, epoch: number): Validator {
  const { nextKey: pendingKey, nextEndpoint: _e, nextCommission: _c, ...rest } = validator;
  const key = inForce(validator.key, pendingKey, epoch);
  const endpoint = inForce(validator.endpoint, validator.nextEndpoint, epoch);
  const commission = inForce(validator.commission, validator.nextCommission, epoch);
  const rotated = key.now !== validator.key;
  const formerKeys = rotated
    ? [
        ...validator.formerKeys,
        { key: validator.key, from: validator.keyFrom, through: (pendingKey as Pending<Bytes>).epoch - 1 },
      ]
    : validator.formerKeys;
  return {
    ...rest,
    key: key.now,
    keyFrom: rotated ? (pendingKey as Pending<Bytes>).epoch : validator.keyFrom,
    formerKeys: formerKeys.filter(({ through }) => through + EVIDENCE_EPOCHS >= epoch),
    endpoint: endpoint.now,
    commission: commission.now,
    ...(key.next && { nextKey: key.next }),
    ...(endpoint.next && { nextEndpoint: endpoint.next }),
    ...(commission.next && { nextCommission: commission.next }),
  };
}

/** The key that signs in an epoch; undefined before it was registered and when it is no longer kept. */
export function keyIn(validator: Validator, epoch: number): Bytes | undefined {
  if (validator.nextKey !== undefined && epoch >= validator.nextKey.epoch) return validator.nextKey.value;
  if (epoch >= validator.keyFrom) return validator.key;
  return validator.formerKeys.find(({ from, through }) => from <= epoch && epoch <= through)?.key;
}

export function encodeValidator(validator: Validator): Uint8Array<ArrayBuffer> {
  const { nextKey, nextEndpoint, nextCommission } = validator;
  const writer = new ByteWriter(4096)
    .raw(validator.id)
    .raw(validator.owner)
    .raw(validator.key)
    .height(validator.keyFrom)
    .u8(nextKey === undefined ? 0 : 1);
  if (nextKey !== undefined) writer.raw(nextKey.value).height(nextKey.epoch);
  writer.u8(validator.formerKeys.length);
  for (const { key, from, through } of validator.formerKeys) writer.raw(key).height(from).height(through);
  writer
    .u16(validator.endpoint.length)
    .raw(validator.endpoint)
    .u8(nextEndpoint === undefined ? 0 : 1);
  if (nextEndpoint !== undefined)
    writer.u16(nextEndpoint.value.length).raw(nextEndpoint.value).height(nextEndpoint.epoch);
  writer.u16(validator.commission).u8(nextCommission === undefined ? 0 : 1);
  if (nextCommission !== undefined) writer.u16(nextCommission.value).height(nextCommission.epoch);
  return writer
    .height(validator.seatFrom)
    .height(validator.heartbeatEpoch)
    .height(validator.jailedUntil)
    .u64(validator.stake)
    .height(validator.exitHeight)
    .height(validator.slashHeight)
    .done();
}

export function decodeValidator(bytes: Bytes): Validator {
  const reader = new ByteReader(bytes);
  const head = {
    id: reader.take(ID_BYTES),
    owner: reader.take(ADDRESS_PAYLOAD_BYTES),
    key: reader.take(PUBLIC_KEY_BYTES),
    keyFrom: reader.height(),
  };
  const nextKey = reader.u8() === 1 ? { value: reader.take(PUBLIC_KEY_BYTES), epoch: reader.height() } : undefined;
  const formerKeys: FormerKey[] = [];
  for (let left = reader.u8(); left > 0; left--)
    formerKeys.push({ key: reader.take(PUBLIC_KEY_BYTES), from: reader.height(), through: reader.height() });
  const endpoint = reader.take(reader.u16());
  const nextEndpoint = reader.u8() === 1 ? { value: reader.take(reader.u16()), epoch: reader.height() } : undefined;
  const commission = reader.u16();
  const nextCommission = reader.u8() === 1 ? { value: reader.u16(), epoch: reader.height() } : undefined;
  const validator = {
    ...head,
    ...(nextKey && { nextKey }),
    formerKeys,
    endpoint,
    ...(nextEndpoint && { nextEndpoint }),
    commission,
    ...(nextCommission && { nextCommission }),
    seatFrom: reader.height(),
    heartbeatEpoch: reader.height(),
    jailedUntil: reader.height(),
    stake: reader.u64(),
    exitHeight: reader.height(),
    slashHeight: reader.height(),
  };
  reader.end();
  return validator;
}

/** The committed entry: `validator id 48 | id("SVC_VALIDATOR_RECORD_V1", record) 48`. Records differ in length, entries must not. */
export function validatorEntry(validator: Validator): Uint8Array {
  const entry = new Uint8Array(2 * ID_BYTES);
  entry.set(validator.id);
  entry.set(id(LABELS.validatorRecord, encodeValidator(validator)), ID_BYTES);
  return entry;
}

export const VALIDATOR_LAYOUT: EntryLayout = {
  prefix: 0x76,
  entryBytes: 2 * ID_BYTES,
  keyBytes: ID_BYTES,
  amount: () => 0n,
};

/** Hashes of all consensus keys that ever were registered. */
export const USED_KEY_LAYOUT: EntryLayout = {
  prefix: 0x75,
  entryBytes: ID_BYTES,
  keyBytes: ID_BYTES,
  amount: () => 0n,
};

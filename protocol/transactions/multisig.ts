/**
 * Multisig addresses (ledger rule 19): a threshold and the public keys of all members, in ascending order. The address commits to exactly these, so every spend from it shows
 * the whole set. Keys of any length but that of ML-DSA-65, a key twice, another order, or another threshold are no descriptor.
 */
import { ADDRESS_KINDS } from '../address.ts';
import { type ByteReader, type Bytes, ByteWriter, compareBytes, concat } from '../bytes.ts';
import { id, LABELS } from '../crypto/identifier.ts';
import { PUBLIC_KEY_BYTES } from '../crypto/key-sizes.ts';
import { ProtocolError } from '../errors.ts';

/** Members by threshold: 2-of-3 and 3-of-5. */
export const MULTISIG_MEMBERS = { 2: 3, 3: 5 } as const;
export type Threshold = keyof typeof MULTISIG_MEMBERS;
export const MOST_MEMBERS = 5;

export type MultisigDescriptor = { readonly threshold: Threshold; readonly keys: readonly Bytes[] };

/** Refuses every other form: with a threshold of 1 one stolen key would be enough, and no other form is specified. */
export function checkForm(threshold: number, members: number): Threshold {
  if (MULTISIG_MEMBERS[threshold as Threshold] !== members)
    throw new ProtocolError('out_of_range', `multisig is 2-of-3 or 3-of-5, not ${threshold}-of-${members}`);
  return threshold as Threshold;
}

/** Whether these keys can be a descriptor's: in ascending order, none twice. */
export const areAscending = (keys: readonly Bytes[]): boolean =>
  keys.every((key, i) => i === 0 || compareBytes(keys[i - 1] as Bytes, key) < 0);

export function checkDescriptor({ threshold, keys }: MultisigDescriptor): void {
  checkForm(threshold, keys.length);
  for (const key of keys)
    if (key.length !== PUBLIC_KEY_BYTES)
      throw new ProtocolError('out_of_range', `a public key has ${PUBLIC_KEY_BYTES} bytes`);
  if (!areAscending(keys))
    throw new ProtocolError('not_canonical', 'the members are in ascending order of their keys, none twice');
}

/** From the keys of the members in any order. */
export function multisigDescriptor(threshold: number, members: readonly Bytes[]): MultisigDescriptor {
  const keys = [...members].sort(compareBytes);
  if (keys.some((key, i) => i > 0 && compareBytes(keys[i - 1] as Bytes, key) === 0))
    throw new ProtocolError('duplicate_entry', 'a member is named twice');
  const descriptor = { threshold: checkForm(threshold, keys.length), keys };
  checkDescriptor(descriptor);
  return descriptor;
}

/** `u8 threshold | u8 members | public keys`. */
export function encodeDescriptor(descriptor: MultisigDescriptor): Uint8Array<ArrayBuffer> {
  checkDescriptor(descriptor);
  const { threshold, keys } = descriptor;
  const writer = new ByteWriter(2 + PUBLIC_KEY_BYTES * keys.length).u8(threshold).u8(keys.length);
  for (const key of keys) writer.raw(key);
  return writer.done();
}

/** The keys stay part of the bytes that are read. */
export function readDescriptor(reader: ByteReader): MultisigDescriptor {
  const threshold = reader.u8();
  const members = reader.u8();
  const form = checkForm(threshold, members);
  const descriptor = { threshold: form, keys: Array.from({ length: members }, () => reader.view(PUBLIC_KEY_BYTES)) };
  checkDescriptor(descriptor);
  return descriptor;
}

export const multisigAddressPayload = (descriptor: MultisigDescriptor): Uint8Array<ArrayBuffer> =>
  concat(Uint8Array.of(ADDRESS_KINDS.multisig), id(LABELS.multisig, encodeDescriptor(descriptor)));

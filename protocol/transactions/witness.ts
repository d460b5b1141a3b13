/**
 * Witnesses (ledger rules 15 and 20): the proof that the owner of an address agrees. A profile byte and its data: the
 * key and its signature, the signature alone where the chain has the key, and for multisig addresses the whole set of
 * keys, or of their hashes, with exactly as many signatures as the threshold asks for. A set of signatures has exactly
 * one encoding: without a member's key nobody can give the transaction other bytes.
 */
import { ByteReader, type Bytes, ByteWriter } from '../bytes.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../crypto/key-sizes.ts';
import { ProtocolError } from '../errors.ts';
import { checkForm, encodeDescriptor, type MultisigDescriptor, readDescriptor, type Threshold } from './multisig.ts';

export const WITNESS_PROFILES = { inline: 0, referenced: 1, multisig_inline: 2, multisig_referenced: 3 } as const;

/** `member` is the place of the key in the descriptor. */
export type MultisigSignature = { readonly member: number; readonly signature: Bytes };

export type SingleWitness =
  | { readonly profile: 'inline'; readonly publicKey: Bytes; readonly signature: Bytes }
  | { readonly profile: 'referenced'; readonly signature: Bytes };
export type MultisigWitness =
  | {
      readonly profile: 'multisig_inline';
      readonly descriptor: MultisigDescriptor;
      readonly signatures: readonly MultisigSignature[];
    }
  | {
      readonly profile: 'multisig_referenced';
      readonly threshold: Threshold;
      /** Hash of each member's key, as its own address has it, in the order of the descriptor. */
      readonly keyHashes: readonly Bytes[];
      readonly signatures: readonly MultisigSignature[];
    };
export type Witness = SingleWitness | MultisigWitness;

export const isMultisigWitness = (witness: Witness): witness is MultisigWitness => 'signatures' in witness;

/** What a witness costs depends on its profile and, for multisig, on the form of the address. */
const FORMS = { '2_of_3': [2, 3], '3_of_5': [3, 5] } as const;
type Form = keyof typeof FORMS;
export type WitnessShape = SingleWitness['profile'] | `${MultisigWitness['profile']}_${Form}`;

export function multisigShape(profile: MultisigWitness['profile'], threshold: Threshold): WitnessShape {
  return `${profile}_${threshold === 2 ? '2_of_3' : '3_of_5'}`;
}

const multisigBytes = (form: Form, perMember: number): number => {
  const [threshold, members] = FORMS[form];
  return 3 + members * perMember + threshold * (1 + SIGNATURE_BYTES);
};

/** Bytes on the wire, exactly. */
export const WITNESS_BYTES: Readonly<Record<WitnessShape, number>> = {
  inline: 1 + PUBLIC_KEY_BYTES + SIGNATURE_BYTES,
  referenced: 1 + SIGNATURE_BYTES,
  multisig_inline_2_of_3: multisigBytes('2_of_3', PUBLIC_KEY_BYTES),
  multisig_inline_3_of_5: multisigBytes('3_of_5', PUBLIC_KEY_BYTES),
  multisig_referenced_2_of_3: multisigBytes('2_of_3', ID_BYTES),
  multisig_referenced_3_of_5: multisigBytes('3_of_5', ID_BYTES),
};

export function shapeOfWitness(witness: Witness): WitnessShape {
  if (!isMultisigWitness(witness)) return witness.profile;
  const threshold = witness.profile === 'multisig_inline' ? witness.descriptor.threshold : witness.threshold;
  return multisigShape(witness.profile, threshold);
}

function checkSignatures(signatures: readonly MultisigSignature[], threshold: Threshold, members: number): void {
  if (signatures.length !== threshold)
    throw new ProtocolError('out_of_range', `${threshold} signatures wanted, ${signatures.length} given`);
  for (const [i, { member, signature }] of signatures.entries()) {
    if (member >= members) throw new ProtocolError('out_of_range', `there is no member ${member}`);
    if (i > 0 && member <= (signatures[i - 1] as MultisigSignature).member)
      throw new ProtocolError('not_canonical', 'the signatures are in ascending order of their members, none twice');
    if (signature.length !== SIGNATURE_BYTES)
      throw new ProtocolError('out_of_range', `a signature has ${SIGNATURE_BYTES} bytes`);
  }
}

const readSignatures = (reader: ByteReader, threshold: Threshold, members: number): readonly MultisigSignature[] => {
  const signatures = Array.from({ length: threshold }, () => ({
    member: reader.u8(),
    signature: reader.view(SIGNATURE_BYTES),
  }));
  checkSignatures(signatures, threshold, members);
  return signatures;
};

function writeMultisig(writer: ByteWriter, witness: MultisigWitness): void {
  const { signatures } = witness;
  if (witness.profile === 'multisig_inline') {
    const { descriptor } = witness;
    writer.raw(encodeDescriptor(descriptor));
    checkSignatures(signatures, descriptor.threshold, descriptor.keys.length);
  } else {
    const { threshold, keyHashes } = witness;
    checkSignatures(signatures, checkForm(threshold, keyHashes.length), keyHashes.length);
    writer.u8(threshold).u8(keyHashes.length);
    for (const hash of keyHashes) {
      if (hash.length !== ID_BYTES) throw new ProtocolError('out_of_range', `a hash has ${ID_BYTES} bytes`);
      writer.raw(hash);
    }
  }
  for (const { member, signature } of signatures) writer.u8(member).raw(signature);
}

export function writeWitness(writer: ByteWriter, witness: Witness): void {
  writer.u8(WITNESS_PROFILES[witness.profile]);
  if (isMultisigWitness(witness)) writeMultisig(writer, witness);
  else writeSingle(writer, witness);
}

function writeSingle(writer: ByteWriter, witness: SingleWitness): void {
  if (witness.profile === 'inline') {
    if (witness.publicKey.length !== PUBLIC_KEY_BYTES)
      throw new ProtocolError('out_of_range', `a public key has ${PUBLIC_KEY_BYTES} bytes`);
    writer.raw(witness.publicKey);
  }
  if (witness.signature.length !== SIGNATURE_BYTES)
    throw new ProtocolError('out_of_range', `a signature has ${SIGNATURE_BYTES} bytes`);
  writer.raw(witness.signature);
}

export function readWitness(reader: ByteReader): Witness {
  const profile = reader.u8();
  if (profile === WITNESS_PROFILES.inline)
    return { profile: 'inline', publicKey: reader.view(PUBLIC_KEY_BYTES), signature: reader.view(SIGNATURE_BYTES) };
  if (profile === WITNESS_PROFILES.referenced)
    return { profile: 'referenced', signature: reader.view(SIGNATURE_BYTES) };
  if (profile === WITNESS_PROFILES.multisig_inline) {
    const descriptor = readDescriptor(reader);
    const signatures = readSignatures(reader, descriptor.threshold, descriptor.keys.length);
    return { profile: 'multisig_inline', descriptor, signatures };
  }
  if (profile === WITNESS_PROFILES.multisig_referenced) {
    const given = reader.u8();
    const members = reader.u8();
    const threshold = checkForm(given, members);
    const keyHashes = Array.from({ length: members }, () => reader.view(ID_BYTES));
    return {
      profile: 'multisig_referenced',
      threshold,
      keyHashes,
      signatures: readSignatures(reader, threshold, members),
    };
  }
  throw new ProtocolError('unsupported_profile', `witness profile ${profile} is not supported`);
}

export function encodeWitness(witness: Witness): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(WITNESS_BYTES[shapeOfWitness(witness)]);
  writeWitness(writer, witness);
  return writer.done();
}

export function decodeWitness(bytes: Bytes): Witness {
  const reader = new ByteReader(bytes);
  const witness = readWitness(reader);
  reader.end();
  return witness;
}

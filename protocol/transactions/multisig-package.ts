/**
 * Multisig packages (docs/protocol/multisig.md): a transaction passed between the members of a multisig address, with
 * its signatures so far. Everything that is signed is in its template, and the digest covers it: packages with one
 * digest are about one transaction, on one chain, by one set of members. Signatures are checked wherever a package is
 * read, so the next member already refuses a bad one. How a signature is checked is passed in.
 */

import { keyAddressPayload } from '../address.ts';
import { checkAmount } from '../amount.ts';
import { ByteReader, type Bytes, ByteWriter, compareBytes, concat, equalBytes, utf8 } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { SIGNATURE_BYTES } from '../crypto/key-sizes.ts';
import { ProtocolError } from '../errors.ts';
import { NETWORKS, type NetworkName, networkById } from '../network.ts';
import { bondedBy, decodeOperation } from '../staking/operation.ts';
import type { VerifySignature } from './address-proof.ts';
import { massOf, shapeOf, wireBytesOf } from './fee.ts';
import { encodeDescriptor, type MultisigDescriptor, multisigAddressPayload, readDescriptor } from './multisig.ts';
import {
  decodeTransactionBody,
  encodeTransaction,
  encodeTransactionBody,
  MAX_INPUTS,
  MAX_TRANSACTION_BYTES,
  operationMessage,
  spendMessage,
  type TransactionBody,
  witnessCount,
} from './transaction.ts';
import { type MultisigWitness, multisigShape } from './witness.ts';

export type MultisigProfile = MultisigWitness['profile'];
export const PACKAGE_TAGS: Readonly<Record<MultisigProfile, string>> = {
  multisig_inline: 'TRMSIGP1',
  multisig_referenced: 'TRMSIGP2',
};
const TAG_BYTES = 8;
/** More than the largest that can be completed: five members have signed eight inputs and an operation. */
export const MAX_PACKAGE_BYTES = 192 * 1024;

export type PackageTemplate = {
  readonly profile: MultisigProfile;
  readonly network: NetworkName;
  readonly body: TransactionBody;
  /**
   * Amounts of the spent outputs, in the order of the inputs. With wrong amounts the signatures are invalid on the
   * ledger.
   */
  readonly amounts: readonly bigint[];
  readonly descriptor: MultisigDescriptor;
};

/** The signatures of one member: one per input, then that of the operation if there is one. */
export type SignedBy = { readonly member: number; readonly signatures: readonly Bytes[] };

export type MultisigPackage = PackageTemplate & {
  readonly bodyBytes: Bytes;
  readonly templateBytes: Bytes;
  /** Payload of the address that is spent from. */
  readonly address: Bytes;
  readonly digest: Bytes;
  /** In ascending order of members. */
  readonly signed: readonly SignedBy[];
};

const shapesOf = ({ profile, body, descriptor }: PackageTemplate) =>
  shapeOf(body, Array(witnessCount(body)).fill(multisigShape(profile, descriptor.threshold)));

/** Of the complete transaction. */
export const packageWireBytes = (template: PackageTemplate): number => wireBytesOf(shapesOf(template));
export const packageMass = (template: PackageTemplate): number => massOf(shapesOf(template));

export function packageFee({ amounts, body }: PackageTemplate): bigint {
  let fee = -bondedBy(body.operation && decodeOperation(body.operation));
  for (const amount of amounts) fee += amount;
  for (const { amount } of body.outputs) fee -= amount;
  return fee;
}

function checkTemplate(template: PackageTemplate, address: Bytes): void {
  const { body, amounts } = template;
  if (amounts.length !== body.inputs.length)
    throw new ProtocolError('out_of_range', `${body.inputs.length} amounts wanted, ${amounts.length} given`);
  let total = 0n;
  for (const amount of amounts) {
    if (amount < 1n) throw new ProtocolError('amount_range', 'an output holds at least one atom');
    total += checkAmount(amount);
  }
  checkAmount(total);
  if (packageFee(template) < 0n)
    throw new ProtocolError('amount_range', 'the outputs, and what is bonded, are more than the inputs');
  if (packageWireBytes(template) > MAX_TRANSACTION_BYTES)
    throw new ProtocolError(
      'too_long',
      `a transaction has at most ${MAX_TRANSACTION_BYTES} bytes, this one would have ${packageWireBytes(template)}: spend fewer outputs at once`,
    );
  checkOperation(template, address);
}

/** The members sign for the address as owner; only the ledger knows the owner of a position. */
function checkOperation({ body }: PackageTemplate, address: Bytes): void {
  if (body.operation === undefined) return;
  const operation = decodeOperation(body.operation);
  if (operation.name === 'heartbeat')
    throw new ProtocolError('unsupported_kind', 'a heartbeat is signed by a consensus key');
  if ((operation.name === 'bond' || operation.name === 'register') && !equalBytes(operation.owner, address))
    throw new ProtocolError('package_other', 'the operation names another owner than the multisig address');
}

/** How many outputs of an address of this form one transaction can spend, beside this many outputs and this payload. */
export function mostInputs(
  profile: MultisigProfile,
  { threshold }: MultisigDescriptor,
  outputs: number,
  payloadBytes: number,
): number {
  const shape = multisigShape(profile, threshold);
  const fits = (inputs: number): boolean =>
    wireBytesOf({ witnesses: Array(inputs).fill(shape), inputs, outputs, payloadBytes }) <= MAX_TRANSACTION_BYTES;
  let most = 0;
  while (most < MAX_INPUTS && fits(most + 1)) most++;
  return most;
}

function templateBytesOf({ profile, network, amounts, descriptor }: PackageTemplate, bodyBytes: Bytes): Bytes {
  const writer = new ByteWriter(16_384)
    .raw(utf8(PACKAGE_TAGS[profile]))
    .u32(NETWORKS[network].id)
    .u16(bodyBytes.length)
    .raw(bodyBytes);
  for (const amount of amounts) writer.u64(amount);
  return writer.raw(encodeDescriptor(descriptor)).done();
}

/** Without a signature yet. */
export function newPackage(template: PackageTemplate): MultisigPackage {
  const bodyBytes = encodeTransactionBody(template.body);
  const templateBytes = templateBytesOf(template, bodyBytes);
  const address = multisigAddressPayload(template.descriptor);
  checkTemplate(template, address);
  return {
    ...template,
    bodyBytes,
    templateBytes,
    address,
    digest: id(LABELS.multisigTemplate, templateBytes),
    signed: [],
  };
}

export function encodePackage({ templateBytes, digest, signed }: MultisigPackage): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(templateBytes.length + 256).raw(templateBytes).raw(digest).u8(signed.length);
  for (const { member, signatures } of signed) {
    writer.u8(member);
    for (const signature of signatures) writer.raw(signature);
  }
  return writer.done();
}

export type PackageEdge = {
  /**
   * From the reader's own manifest: a package of another chain or network is refused. Without it all are accepted: for
   * readers that sign nothing.
   */
  readonly network?: NetworkName;
  readonly chainId?: Bytes;
  readonly verify: VerifySignature;
};

function readTag(reader: ByteReader): MultisigProfile {
  const tag = reader.view(TAG_BYTES);
  for (const [profile, known] of Object.entries(PACKAGE_TAGS))
    if (equalBytes(tag, utf8(known))) return profile as MultisigProfile;
  throw new ProtocolError('unsupported_version', 'this is no multisig package that this release knows');
}

export function decodePackage(bytes: Bytes, edge: PackageEdge): MultisigPackage {
  if (bytes.length > MAX_PACKAGE_BYTES)
    throw new ProtocolError('too_long', `a package has at most ${MAX_PACKAGE_BYTES} bytes`);
  const reader = new ByteReader(bytes);
  const profile = readTag(reader);
  const network = networkById(reader.u32()).name;
  if (edge.network !== undefined && network !== edge.network)
    throw new ProtocolError('wrong_network', `the package is for ${network}, not for ${edge.network}`);
  const body = decodeTransactionBody(reader.view(reader.u16()), edge.chainId);
  const amounts = body.inputs.map(() => reader.u64());
  const template = newPackage({ profile, network, body, amounts, descriptor: readDescriptor(reader) });
  if (!equalBytes(reader.view(ID_BYTES), template.digest))
    throw new ProtocolError(
      'package_digest',
      'the digest is not that of the template: the package was damaged or changed',
    );
  const signed: SignedBy[] = [];
  for (let left = reader.u8(); left > 0; left--) {
    const member = reader.u8();
    if (member <= (signed.at(-1)?.member ?? -1))
      throw new ProtocolError('not_canonical', 'members are in ascending order, none twice');
    if (member >= template.descriptor.keys.length)
      throw new ProtocolError('out_of_range', `there is no member ${member}`);
    signed.push({ member, signatures: Array.from({ length: witnessCount(body) }, () => reader.take(SIGNATURE_BYTES)) });
  }
  reader.end();
  for (const one of signed) checkSigned(template, one, edge.verify);
  return { ...template, signed };
}

/** One per input, then that of the operation if there is one: what each member signs. */
export function packageMessages({ bodyBytes, body, amounts, address }: MultisigPackage): readonly Bytes[] {
  const spends = amounts.map((amount, i) => spendMessage(bodyBytes, i, { address, amount }));
  return body.operation === undefined ? spends : [...spends, operationMessage(bodyBytes)];
}

function checkSigned(of: MultisigPackage, { member, signatures }: SignedBy, verify: VerifySignature): void {
  const messages = packageMessages(of);
  if (signatures.length !== messages.length)
    throw new ProtocolError('out_of_range', `${messages.length} signatures wanted, ${signatures.length} given`);
  for (const [i, message] of messages.entries())
    if (!verify(of.descriptor.keys[member] as Bytes, message, signatures[i] as Bytes))
      throw new ProtocolError('package_signature', `signature ${i} of member ${member} does not verify`);
}

/** Throws unless this is the digest of what the caller has reviewed. */
export function checkDigest({ digest }: MultisigPackage, reviewed: Bytes): void {
  if (!equalBytes(digest, reviewed))
    throw new ProtocolError('package_digest', 'the digest is that of another package than this one');
}

/** The place of a key in the descriptor. */
export function memberOf({ keys }: MultisigDescriptor, publicKey: Bytes): number {
  const member = keys.findIndex((key) => equalBytes(key, publicKey));
  if (member < 0) throw new ProtocolError('package_member', 'the key is none of the members');
  return member;
}

/** Of two sets of signatures of one member the lower bytes stay, so that the order in which packages come together does not matter. */
function joined(first: readonly SignedBy[], second: readonly SignedBy[]): readonly SignedBy[] {
  const byMember = new Map<number, SignedBy>();
  for (const one of [...first, ...second]) {
    const before = byMember.get(one.member);
    if (before === undefined || compareBytes(concat(...one.signatures), concat(...before.signatures)) < 0)
      byMember.set(one.member, one);
  }
  return [...byMember.values()].sort((a, b) => a.member - b.member);
}

export function withSignatures(
  to: MultisigPackage,
  publicKey: Bytes,
  signatures: readonly Bytes[],
  verify: VerifySignature,
): MultisigPackage {
  const added = { member: memberOf(to.descriptor, publicKey), signatures };
  checkSigned(to, added, verify);
  return { ...to, signed: joined(to.signed, [added]) };
}

/** Commutative and idempotent. The packages were read, and so their signatures checked, before. */
export function combinePackages(packages: readonly MultisigPackage[]): MultisigPackage {
  const [first, ...rest] = packages;
  if (first === undefined) throw new ProtocolError('out_of_range', 'there is nothing to combine');
  let { signed } = first;
  for (const one of rest) {
    if (!equalBytes(one.address, first.address))
      throw new ProtocolError('package_other', 'the packages are of different multisig addresses');
    if (!equalBytes(one.digest, first.digest))
      throw new ProtocolError('package_other', 'the packages are about different transactions');
    signed = joined(signed, one.signed);
  }
  return { ...first, signed };
}

/** The members whose signatures are missing, while there are too few. */
export const missingSignatures = ({ descriptor, signed }: MultisigPackage): number =>
  Math.max(0, descriptor.threshold - signed.length);

function witnessesOf({ profile, descriptor, signed, body }: MultisigPackage): readonly MultisigWitness[] {
  const { threshold, keys } = descriptor;
  const signing = signed.slice(0, threshold);
  return Array.from({ length: witnessCount(body) }, (_, i): MultisigWitness => {
    const signatures = signing.map(({ member, signatures }) => ({ member, signature: signatures[i] as Bytes }));
    if (profile === 'multisig_inline') return { profile, descriptor, signatures };
    return { profile, threshold, keyHashes: keys.map((key) => keyAddressPayload(key).subarray(1)), signatures };
  });
}

/** The transaction in wire form, with the signatures of the first members that are enough. */
export function completePackage(of: MultisigPackage): Uint8Array<ArrayBuffer> {
  const missing = missingSignatures(of);
  if (missing > 0)
    throw new ProtocolError(
      'package_incomplete',
      `${of.signed.length} of the ${of.descriptor.threshold} members that are needed have signed`,
    );
  return encodeTransaction({ body: of.body, witnesses: witnessesOf(of) });
}

/**
 * Multisig addresses and the packages that travel between their members (docs/protocol/multisig.md; specification: Rule 6). Review comes before signing: the messages to sign are given out for the digest
 * of the reviewed package alone.
 */
import { formatAddress } from '../protocol/address.ts';
import { parseAtoms } from '../protocol/amount.ts';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
import { ID_BYTES } from '../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../protocol/crypto/key-sizes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { inField } from '../protocol/stratum/fields.ts';
import { minimumFee } from '../protocol/transactions/fee.ts';
import {
  checkDescriptor,
  checkForm,
  MOST_MEMBERS,
  type MultisigDescriptor,
  multisigAddressPayload,
  multisigDescriptor,
} from '../protocol/transactions/multisig.ts';
import {
  checkDigest,
  combinePackages,
  completePackage,
  decodePackage,
  encodePackage,
  type MultisigPackage,
  missingSignatures,
  newPackage,
  packageFee,
  packageMass,
  packageMessages,
  packageWireBytes,
  withSignatures,
} from '../protocol/transactions/multisig-package.ts';
import { MAX_INPUTS } from '../protocol/transactions/transaction.ts';
import { encodeWitness, type MultisigSignature } from '../protocol/transactions/witness.ts';
import { bodyDocument, MAX_WITNESSES, readBody } from './bodies.ts';
import {
  decimalOf,
  givenHex,
  givenInteger,
  givenList,
  givenNetwork,
  givenObject,
  hexIn,
  listIn,
  objectIn,
  textIn,
  written,
} from './given.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { ModuleError } from './module-error.ts';
import { verifySignature } from './wasm.ts';

/** More packages than there are members have nothing to add. */
const MOST_PACKAGES = 16;

export const descriptorDocument = ({ threshold, keys }: MultisigDescriptor) => ({
  threshold: String(threshold),
  members: keys.map((key) => toHex(key)),
});

export const signaturesDocument = (signatures: readonly MultisigSignature[]) =>
  signatures.map(({ member, signature }) => ({ member: String(member), signature: toHex(signature) }));

/** In its one form: ascending, no key twice. */
function readDescriptor(descriptorJson: unknown): MultisigDescriptor {
  const fields = givenObject(descriptorJson, 'descriptor');
  const threshold = decimalOf(fields, 'threshold', 255);
  const keys = listIn(fields, 'members', MOST_MEMBERS, hexIn());
  fields.end();
  return inField('descriptor', () => {
    const descriptor = { threshold: checkForm(threshold, keys.length), keys };
    checkDescriptor(descriptor);
    return descriptor;
  });
}

/** `membersJson`: the public keys of the members, in any order. */
export function createMultisigDescriptor(threshold: number | string, membersJson: string): string {
  const keys = givenList(membersJson, 'members', MOST_MEMBERS, hexIn(PUBLIC_KEY_BYTES));
  const least = givenInteger(threshold, 'threshold', 255);
  return written(descriptorDocument(inField('members', () => multisigDescriptor(least, keys))));
}

export function validateMultisigDescriptor(descriptorJson: string): string {
  return written(descriptorDocument(readDescriptor(descriptorJson)));
}

export function multisigAddress(descriptorJson: string, network: string): string {
  return formatAddress(multisigAddressPayload(readDescriptor(descriptorJson)), givenNetwork(network));
}

/** `signaturesJson`: `[{member, signature}]`, exactly as many as the threshold says, in ascending order of members. */
export function encodeMultisigInlineWitness(descriptorJson: string, signaturesJson: string): string {
  const descriptor = readDescriptor(descriptorJson);
  const signatures = givenList(signaturesJson, 'signatures', MOST_MEMBERS, (json, what): MultisigSignature => {
    const fields = objectIn(json, what);
    const one = { member: decimalOf(fields, 'member', 255), signature: fields.hex('signature', SIGNATURE_BYTES) };
    fields.end();
    return one;
  });
  return toHex(inField('signatures', () => encodeWitness({ profile: 'multisig_inline', descriptor, signatures })));
}

/** `inputAmountsJson`: atoms of the outputs that are spent, all of them of the multisig address, in the order of the inputs. */
export function createMultisigPackage(
  descriptorJson: string,
  bodyHex: string,
  inputAmountsJson: string,
  manifestJson: string,
): string {
  const manifest = readManifest(manifestJson);
  const { body } = readBody(bodyHex, manifest);
  const amounts = givenList(inputAmountsJson, 'input_amounts', MAX_INPUTS, (json, what) =>
    parseAtoms(textIn(json, what)),
  );
  const descriptor = readDescriptor(descriptorJson);
  const { network } = manifest;
  const made = inField('body', () => newPackage({ profile: 'multisig_inline', network, body, amounts, descriptor }));
  checkFee(made, manifest);
  return toHex(encodePackage(made));
}

function checkFee(of: MultisigPackage, { minFeePerMass }: Manifest): void {
  const [fee, least] = [packageFee(of), minimumFee(packageMass(of), minFeePerMass)];
  if (fee < least)
    throw new ModuleError('fee_below_minimum', `the fee is ${fee} atoms, at least ${least} are needed`, {
      minimum_fee: least.toString(),
    });
}

const read = (bytes: Bytes, { network, chainId }: Manifest): MultisigPackage =>
  inField('package', () => decodePackage(bytes, { network, chainId, verify: verifySignature }));

const readPackage = (packageHex: unknown, manifest: Manifest): MultisigPackage =>
  read(givenHex(packageHex, 'package'), manifest);

/** Its parts, unchanged: form and signatures are checked; `reviewMultisigPackage` shows what it means. */
export function decodeMultisigPackage(packageHex: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const of = readPackage(packageHex, manifest);
  return written({
    network: of.network,
    chain_id: toHex(of.body.chainId),
    witness_profile: of.profile,
    template_digest: toHex(of.digest),
    descriptor: descriptorDocument(of.descriptor),
    body_hex: toHex(of.bodyBytes),
    input_amounts: of.amounts,
    signatures: of.signed.map(({ member, signatures }) => ({
      member: String(member),
      public_key: toHex(of.descriptor.keys[member] as Bytes),
      signatures: signatures.map((signature) => toHex(signature)),
    })),
  });
}

/** What a person must see before a key signs. `change` marks outputs that return to the multisig address itself. */
export function reviewMultisigPackage(packageHex: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const of = readPackage(packageHex, manifest);
  const { body, bodyBytes, amounts, address, descriptor, signed } = of;
  const { inputs, outputs, ...terms } = bodyDocument(bodyBytes, body, manifest);
  const mass = packageMass(of);
  return written({
    ...terms,
    network: of.network,
    address: formatAddress(address, of.network),
    inputs: (inputs as object[]).map((input, i) => ({ ...input, amount: amounts[i] })),
    recipients: (outputs as object[]).map((output, i) => ({
      ...output,
      change: equalBytes((body.outputs[i] as { address: Bytes }).address, address),
    })),
    fee: packageFee(of),
    wire_bytes: String(packageWireBytes(of)),
    mass: String(mass),
    minimum_fee: minimumFee(mass, manifest.minFeePerMass),
    descriptor: descriptorDocument(descriptor),
    template_digest: toHex(of.digest),
    witness_profile: of.profile,
    signed_by: signed.map(({ member }) => String(member)),
    missing_signatures: String(missingSignatures(of)),
  });
}

/** For the digest that was reviewed, what each member signs: one message per input, then that of the operation if there is one. */
export function multisigPackageSigningMessages(
  packageHex: string,
  templateDigest: string,
  manifestJson: string,
): string {
  const of = readPackage(packageHex, readManifest(manifestJson));
  const digest = givenHex(templateDigest, 'template_digest', ID_BYTES);
  inField('template_digest', () => checkDigest(of, digest));
  return written(packageMessages(of).map((message) => toHex(message)));
}

/** The signatures of one member over these messages, in their order. Each is checked. */
export function addMultisigPackageSignatures(
  packageHex: string,
  publicKey: string,
  signaturesJson: string,
  manifestJson: string,
): string {
  const of = readPackage(packageHex, readManifest(manifestJson));
  const key = givenHex(publicKey, 'public key', PUBLIC_KEY_BYTES);
  const signatures = givenList(signaturesJson, 'signatures', MAX_WITNESSES, hexIn(SIGNATURE_BYTES));
  return toHex(encodePackage(inField('signatures', () => withSignatures(of, key, signatures, verifySignature))));
}

/** A complete package needs no further signature: given here it is a mistake (specification: Protocol module, rule 6). */
function partial(of: MultisigPackage): MultisigPackage {
  if (missingSignatures(of) === 0)
    throw new ProtocolError('package_complete', 'enough members have signed this package: complete it, and send it');
  return of;
}

/** Partial packages of one template, descriptor and manifest, in any order. */
export function combineMultisigPackages(packagesJson: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const packages = givenList(packagesJson, 'packages', MOST_PACKAGES, (json, what) =>
    inField(what, () => partial(read(hexIn()(json, what), manifest))),
  );
  return toHex(encodePackage(inField('packages', () => combinePackages(packages))));
}

/** The transaction for `POST /v1/transactions`, once enough members have signed. */
export function completeMultisigPackage(packageHex: string, manifestJson: string): string {
  const manifest = readManifest(manifestJson);
  const of = readPackage(packageHex, manifest);
  checkFee(of, manifest);
  return toHex(inField('package', () => completePackage(of)));
}

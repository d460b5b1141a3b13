/** Multisig vectors: descriptors, addresses, witnesses and packages on their way between members (ledger rules 19 and 20, docs/protocol/multisig.md). Signatures are the deterministic ones. */
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, concat, toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import {
  encodeDescriptor,
  type MultisigDescriptor,
  multisigAddressPayload,
  multisigDescriptor,
} from '../../protocol/transactions/multisig.ts';
import {
  combinePackages,
  completePackage,
  encodePackage,
  type MultisigPackage,
  type MultisigProfile,
  mostInputs,
  newPackage,
  packageFee,
  packageMass,
  packageMessages,
  packageWireBytes,
  withSignatures,
} from '../../protocol/transactions/multisig-package.ts';
import { WITNESS_BYTES } from '../../protocol/transactions/witness.ts';
import { pattern } from './pattern.ts';

const network = 'development';
const keys = Array.from({ length: 5 }, (_, i) => ml_dsa65.keygen(pattern(`multisig/${i}`, 32)));
const secretOf = (publicKey: Bytes) =>
  keys.find((key) => toHex(key.publicKey) === toHex(publicKey))?.secretKey as Uint8Array;

const descriptorOf = (threshold: number, members: number): MultisigDescriptor =>
  multisigDescriptor(
    threshold,
    keys.slice(0, members).map(({ publicKey }) => publicKey),
  );

const verify = (publicKey: Bytes, message: Bytes, signature: Bytes): boolean =>
  ml_dsa65.verify(Uint8Array.from(signature), Uint8Array.from(message), Uint8Array.from(publicKey));

function signedBy(of: MultisigPackage, member: number): MultisigPackage {
  const publicKey = of.descriptor.keys[member] as Bytes;
  const signatures = packageMessages(of).map((message) =>
    ml_dsa65.sign(Uint8Array.from(message), secretOf(publicKey), { extraEntropy: false }),
  );
  return withSignatures(of, publicKey, signatures, verify);
}

function packageVector(profile: MultisigProfile, descriptor: MultisigDescriptor, members: readonly number[]) {
  const made = newPackage({
    profile,
    network,
    body: {
      chainId: id(LABELS.chain, utf8('vectors')),
      validFromHeight: 10,
      validUntilHeight: 1010,
      inputs: [{ transactionId: pattern('multisig/input', 48), outputIndex: 1 }],
      outputs: [
        { address: concat(Uint8Array.of(0), pattern('multisig/recipient', 48)), amount: 125_000_000n },
        { address: multisigAddressPayload(descriptor), amount: 374_000_000n },
      ],
      payload: new Uint8Array(0),
    },
    amounts: [500_000_000n],
    descriptor,
  });
  const parts = members.map((member) => signedBy(made, member));
  const combined = combinePackages(parts);
  return {
    witness_profile: profile,
    threshold: descriptor.threshold,
    fee: packageFee(made).toString(),
    mass: packageMass(made),
    wire_bytes: packageWireBytes(made),
    template_digest: toHex(made.digest),
    messages: packageMessages(made).map((message) => toHex(message)),
    unsigned: toHex(encodePackage(made)),
    signed: parts.map((part, i) => ({ member: members[i], package: toHex(encodePackage(part)) })),
    combined: toHex(encodePackage(combined)),
    wire: toHex(completePackage(combined)),
  };
}

export function multisigVectors(): unknown {
  const [small, large] = [descriptorOf(2, 3), descriptorOf(3, 5)];
  return {
    descriptors: [small, large].map((descriptor) => ({
      threshold: descriptor.threshold,
      members: descriptor.keys.map((key) => toHex(key)),
      bytes: toHex(encodeDescriptor(descriptor)),
      payload: toHex(multisigAddressPayload(descriptor)),
      address: formatAddress(multisigAddressPayload(descriptor), network),
      most_inputs: {
        inline: mostInputs('multisig_inline', descriptor, 2, 0),
        referenced: mostInputs('multisig_referenced', descriptor, 2, 0),
      },
    })),
    witness_bytes: WITNESS_BYTES,
    packages: [packageVector('multisig_inline', small, [0, 2]), packageVector('multisig_referenced', small, [1, 2])],
  };
}

/**
 * Proof of possession of an address's key (keys rules 9 to 12): a challenge, the message that its holder signs, and the
 * check of the answer. Also the verification words by which two people compare an address aloud. Signature checking is
 * passed in: programs use node:crypto, pages the portable implementation. Multisig addresses cannot be proven.
 */
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { type Address, keyAddressPayload, parseAddress } from '../address.ts';
import { type Bytes, ByteWriter, bigintFromBytesBE, equalBytes, fromHex } from '../bytes.ts';
import { id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { NETWORKS, type NetworkName } from '../network.ts';
import { inField } from '../stratum/fields.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from './transaction.ts';

export const PROOF_VERSION = 1;
export const CHALLENGE_BYTES = 32;
/** The default purpose: the holder shows that the address is theirs, and nothing else follows from it. */
export const OWNERSHIP = 'proof of ownership';
/** Printable ASCII: people must be able to read it, and it must contain no terminal control characters. */
export const PURPOSE_PATTERN = '^[\\x20-\\x7e]{1,160}$';
const PURPOSE = new RegExp(PURPOSE_PATTERN);

/** The challenge in its wire form. The challenger keeps it: the answer is checked against exactly this. */
export type AddressProofRequest = {
  readonly version: number;
  readonly network: NetworkName;
  readonly address: string;
  /** The purpose of the answer, as text. It is signed, so an answer cannot be used for another purpose. */
  readonly purpose: string;
  readonly challenge: string;
  readonly created_millis: number;
  readonly expires_millis: number;
};

/** Integers are numbers in the wallet daemon and the pool, and decimal text in the protocol module: both are read. */
export type WireInteger = number | string;
export const WIRE_INTEGER_PATTERN = '^(0|[1-9][0-9]{0,15})$';
const WIRE_INTEGER = new RegExp(WIRE_INTEGER_PATTERN);
const integerOf = (value: WireInteger): number =>
  typeof value === 'string' && WIRE_INTEGER.test(value) ? Number(value) : (value as number);

/** A request as it came. */
export type WireRequest = Omit<AddressProofRequest, 'version' | 'created_millis' | 'expires_millis'> & {
  readonly version: WireInteger;
  readonly created_millis: WireInteger;
  readonly expires_millis: WireInteger;
};

export const plainRequest = (request: WireRequest): AddressProofRequest => ({
  ...request,
  version: integerOf(request.version),
  created_millis: integerOf(request.created_millis),
  expires_millis: integerOf(request.expires_millis),
});

export type AddressProof = {
  readonly version: WireInteger;
  readonly address: string;
  readonly challenge: string;
  readonly public_key: string;
  readonly signature: string;
};

export type ProofVerdict =
  | { readonly valid: true; readonly address: string }
  | { readonly valid: false; readonly reason: ProofRefusal };

export const PROOF_REFUSALS = [
  'request_malformed',
  'proof_malformed',
  'wrong_network',
  'not_a_key_address',
  'other_address',
  'other_challenge',
  'expired',
  'wrong_key',
  'wrong_signature',
] as const;
export type ProofRefusal = (typeof PROOF_REFUSALS)[number];

const isMillis = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Throws a ProtocolError for anything that is not a request for a key address of this network. */
export function readProofRequest(request: AddressProofRequest, network: NetworkName): Address {
  if (request.version !== PROOF_VERSION)
    throw new ProtocolError('unsupported_version', `proof request version ${String(request.version)}`);
  if (request.network !== network) throw new ProtocolError('wrong_network', `the request is not for ${network}`);
  if (typeof request.address !== 'string' || typeof request.challenge !== 'string')
    throw new ProtocolError('bad_hex', 'address and challenge are text');
  inField('request.challenge', () => fromHex(request.challenge, CHALLENGE_BYTES));
  if (typeof request.purpose !== 'string' || !PURPOSE.test(request.purpose))
    throw new ProtocolError('out_of_range', 'the purpose is 1 to 160 printable characters', {
      field: 'request.purpose',
    });
  if (!isMillis(request.created_millis) || !isMillis(request.expires_millis))
    throw new ProtocolError('out_of_range', 'times are Unix milliseconds');
  const address = inField('request.address', () => parseAddress(request.address, network));
  if (address.kind !== 'key')
    throw new ProtocolError('address_kind', 'only the address of a single key can be proven', {
      field: 'request.address',
    });
  return address;
}

/** The 48 bytes the key of the address signs. Its label keeps it apart from every spend message. */
export function addressProofMessage(request: AddressProofRequest): Uint8Array<ArrayBuffer> {
  const { payload } = readProofRequest(request, request.network);
  const writer = new ByteWriter(320)
    .u8(PROOF_VERSION)
    .u32(NETWORKS[request.network].id)
    .raw(payload)
    .raw(fromHex(request.challenge, CHALLENGE_BYTES))
    .height(request.created_millis)
    .height(request.expires_millis)
    .text(request.purpose);
  return id(LABELS.addressProof, writer.done());
}

export type VerifySignature = (publicKey: Bytes, message: Bytes, signature: Bytes) => boolean;

export function verifyAddressProof(
  request: AddressProofRequest,
  proof: AddressProof,
  edge: { readonly network: NetworkName; readonly nowMillis: number; readonly verify: VerifySignature },
): ProofVerdict {
  const refused = (reason: ProofRefusal): ProofVerdict => ({ valid: false, reason });
  let address: Address;
  try {
    address = readProofRequest(request, edge.network);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    if (error.code === 'wrong_network' || error.code === 'address_network') return refused('wrong_network');
    return refused(error.code === 'address_kind' ? 'not_a_key_address' : 'request_malformed');
  }
  if (
    integerOf(proof.version) !== PROOF_VERSION ||
    typeof proof.public_key !== 'string' ||
    typeof proof.signature !== 'string'
  )
    return refused('proof_malformed');
  let publicKey: Bytes;
  let signature: Bytes;
  try {
    publicKey = fromHex(proof.public_key, PUBLIC_KEY_BYTES);
    signature = fromHex(proof.signature, SIGNATURE_BYTES);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return refused('proof_malformed');
  }
  if (proof.address !== request.address) return refused('other_address');
  if (proof.challenge !== request.challenge) return refused('other_challenge');
  if (edge.nowMillis > request.expires_millis) return refused('expired');
  if (!equalBytes(keyAddressPayload(publicKey), address.payload)) return refused('wrong_key');
  if (!edge.verify(publicKey, addressProofMessage(request), signature)) return refused('wrong_signature');
  return { valid: true, address: request.address };
}

/** Six words of 11 bits: enough that nobody finds a second address with the same words, short enough to read aloud. */
export const VERIFICATION_WORDS = 6;

export function addressVerificationWords(payload: Bytes): readonly string[] {
  const bits = bigintFromBytesBE(id(LABELS.addressWords, payload).subarray(0, 9)) >> 6n;
  return Array.from({ length: VERIFICATION_WORDS }, (_, i) => {
    const shift = BigInt(11 * (VERIFICATION_WORDS - 1 - i));
    return wordlist[Number((bits >> shift) & 0x7ffn)] as string;
  });
}

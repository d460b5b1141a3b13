/** Methods of the group Ownership: a challenge, its answer and the check (keys rules 9 to 12). */

import { either, integer, object, optional, text } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import {
  type AddressProof,
  type AddressProofRequest,
  addressProofMessage,
  CHALLENGE_BYTES,
  OWNERSHIP,
  PROOF_VERSION,
  PURPOSE_PATTERN,
  plainRequest,
  readProofRequest,
  verifyAddressProof,
  WIRE_INTEGER_PATTERN,
  type WireRequest,
} from '../../protocol/transactions/address-proof.ts';
import { signMessage, verifySignature } from '../keys/signing.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { addressField, method, readAddress } from './method.ts';

const HOUR_SECONDS = 3_600;

const purposeField = text({ pattern: PURPOSE_PATTERN, description: 'what the answer will be used for, in words' });

/** A protocol module writes integers as decimal text. */
const wireInteger = either(integer(), text({ pattern: WIRE_INTEGER_PATTERN }));

const requestSchema = object({
  version: wireInteger,
  network: text({ maxLength: 32 }),
  address: addressField,
  purpose: purposeField,
  challenge: text({ maxLength: 64 }),
  created_millis: wireInteger,
  expires_millis: wireInteger,
});
const proofSchema = object({
  version: wireInteger,
  address: addressField,
  challenge: text({ maxLength: 64 }),
  public_key: text({ maxLength: 4096 }),
  signature: text({ maxLength: 8192 }),
});

async function prove(wallet: Wallet, request: AddressProofRequest): Promise<AddressProof> {
  try {
    readProofRequest(request, wallet.network);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError('proof_request_invalid', error.message, { reason: error.code });
  }
  const record = wallet.book.address(request.address);
  if (record === undefined) throw new WalletError('address_not_mine', 'this wallet does not hold that address');
  if (wallet.now() > request.expires_millis)
    throw new WalletError('proof_request_invalid', 'the request has expired', { reason: 'expired' });
  const key = wallet.keyring.key(record);
  return {
    version: PROOF_VERSION,
    address: request.address,
    challenge: request.challenge,
    public_key: toHex(key.publicKey),
    signature: toHex(await signMessage(key, addressProofMessage(request))),
  };
}

export const ownershipMethods = {
  proof_request: method(
    'Ownership',
    'A challenge for the holder of an address',
    object({
      address: addressField,
      purpose: optional(purposeField),
      valid_seconds: optional(integer({ minimum: 1, maximum: 7 * 24 * HOUR_SECONDS })),
    }),
    (wallet, { address, purpose = OWNERSHIP, valid_seconds: seconds = HOUR_SECONDS }) => {
      const parsed = readAddress(wallet, address, 'address');
      if (parsed.kind !== 'key')
        throw new WalletError('address_invalid', 'only the address of a single key can be proven', {
          field: 'address',
          reason: 'address_kind',
        });
      const created = wallet.now();
      return {
        version: PROOF_VERSION,
        network: wallet.network,
        address,
        purpose,
        challenge: toHex(wallet.randomBytes(CHALLENGE_BYTES)),
        created_millis: created,
        expires_millis: created + 1000 * seconds,
      };
    },
  ),
  prove_address: method(
    'Ownership',
    'Answers a challenge for an address of this wallet',
    object({ request: requestSchema }),
    (wallet, { request }) => prove(wallet, plainRequest(request as WireRequest)),
  ),
  verify_address_proof: method(
    'Ownership',
    'Checks the answer to a challenge',
    object({ proof: proofSchema, request: requestSchema }),
    (wallet, { proof, request }) =>
      verifyAddressProof(plainRequest(request as WireRequest), proof, {
        network: wallet.network,
        nowMillis: wallet.now(),
        verify: verifySignature,
      }),
  ),
};

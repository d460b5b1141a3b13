/** Proofs that an address is somebody's (keys rules 9 to 13), made and checked as the wallet daemon does. The module has no clock: the caller says what time it is. */

import { parseAddress } from '../protocol/address.ts';
import { toHex } from '../protocol/bytes.ts';
import type { NetworkName } from '../protocol/network.ts';
import { type Fields, inField } from '../protocol/stratum/fields.ts';
import {
  type AddressProof,
  type AddressProofRequest,
  CHALLENGE_BYTES,
  verifyAddressProof as judge,
  OWNERSHIP,
  PROOF_VERSION,
  type ProofRefusal,
  readProofRequest,
  addressVerificationWords as wordsOf,
} from '../protocol/transactions/address-proof.ts';
import {
  givenInteger,
  givenNetwork,
  givenObject,
  givenOr,
  givenParsed,
  givenText,
  networkOf,
  written,
} from './given.ts';
import { ModuleError } from './module-error.ts';
import { started, verifySignature } from './wasm.ts';

export function addressVerificationWords(address: string): string {
  return written(wordsOf(givenParsed(address, 'address', (text) => parseAddress(text).payload)));
}

/** A request to keep: the answer is checked against exactly this. Its challenge is 32 random bytes. */
export function addressProofRequest(
  address: string,
  network: string,
  createdMillis: number | string,
  expiresMillis: number | string,
  purpose?: string | null,
): string {
  const request: AddressProofRequest = {
    version: PROOF_VERSION,
    network: givenNetwork(network),
    address: givenText(address, 'address'),
    purpose: givenOr(purpose, (value) => givenText(value, 'purpose')) ?? OWNERSHIP,
    challenge: toHex(crypto.getRandomValues(new Uint8Array(CHALLENGE_BYTES))),
    created_millis: givenInteger(createdMillis, 'created_millis', Number.MAX_SAFE_INTEGER),
    expires_millis: givenInteger(expiresMillis, 'expires_millis', Number.MAX_SAFE_INTEGER),
  };
  inField('request', () => readProofRequest(request, request.network));
  return written(request);
}

/** Decimal text, or a number in what a wallet daemon or a pool made. */
const integerOf = (fields: Fields, name: string): number =>
  givenInteger(fields.value(name), fields.pathOf(name), Number.MAX_SAFE_INTEGER);

export function readRequest(requestJson: unknown): AddressProofRequest {
  const fields = givenObject(requestJson, 'request');
  const request = {
    version: integerOf(fields, 'version'),
    network: fields.text('network') as NetworkName,
    address: fields.text('address'),
    purpose: fields.text('purpose'),
    challenge: fields.text('challenge'),
    created_millis: integerOf(fields, 'created_millis'),
    expires_millis: integerOf(fields, 'expires_millis'),
  };
  fields.end();
  networkOf(request.network, fields.pathOf('network'));
  return request;
}

function readProof(proofJson: unknown): AddressProof {
  const fields = givenObject(proofJson, 'proof');
  const proof = {
    version: integerOf(fields, 'version'),
    address: fields.text('address'),
    challenge: fields.text('challenge'),
    public_key: fields.text('public_key'),
    signature: fields.text('signature'),
  };
  fields.end();
  return proof;
}

const REFUSALS: Record<ProofRefusal, string> = {
  request_malformed: 'the request has a wrong form',
  proof_malformed: 'its key or signature has a wrong form',
  wrong_network: 'the request is for another network',
  not_a_key_address: 'only the address of a single key can be proven',
  other_address: 'it is for another address than the request',
  other_challenge: 'it answers another request',
  expired: 'the request has expired, make a new one (times are in milliseconds)',
  wrong_key: 'its key does not belong to the address',
  wrong_signature: 'its signature is wrong, or the request was changed',
};

/** Throws unless the proof answers the request; returns the address. */
export function verifyAddressProof(
  requestJson: string,
  proofJson: string,
  network: string,
  nowMillis: number | string,
): string {
  started();
  const verdict = judge(readRequest(requestJson), readProof(proofJson), {
    network: givenNetwork(network),
    nowMillis: givenInteger(nowMillis, 'now_millis', Number.MAX_SAFE_INTEGER),
    verify: verifySignature,
  });
  if (!verdict.valid) throw new ModuleError(verdict.reason, `the proof does not hold: ${REFUSALS[verdict.reason]}`);
  return written({ address: verdict.address });
}

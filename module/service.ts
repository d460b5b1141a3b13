/** Signed answers of a node (specification: Authentication, rule 7): the identity to pin, and whether an answer is that node's answer to the request that was sent. */
import { type AnswerProblem, NONCE_BYTES, serviceIdentity, verifySignedAnswer } from '../protocol/api/signed-answer.ts';
import { toHex } from '../protocol/bytes.ts';
import { ID_BYTES } from '../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES } from '../protocol/crypto/key-sizes.ts';
import { decimalOf, givenHex, givenObject, textIn, written } from './given.ts';
import { ModuleError } from './module-error.ts';
import { started, verifySignature } from './wasm.ts';

const PROBLEMS: Record<AnswerProblem, string> = {
  answer_unsigned:
    'the answer has no signature: send x-svc-request-nonce with the request, and give the headers of the answer',
  answer_envelope: 'the envelope of the answer is of another version, or its height is none',
  answer_nonce: 'the answer is for another nonce than the one that was sent',
  answer_identity: 'the answer, or the public key, is of another node than the pinned one',
  answer_signature: 'the signature does not fit method, target, bodies, status, nonce and chain: do not use the answer',
};

export function serviceIdentityForPublicKey(publicKey: string): string {
  return toHex(serviceIdentity(givenHex(publicKey, 'public key', PUBLIC_KEY_BYTES)));
}

/**
 * `responseJson`: what was asked and what came, `{method, target, request_body_hex, status, response_body_hex, nonce, headers}`. Throws unless the node with the pinned
 * identity signed it for this chain; returns the finalized height that the node signed.
 */
export function verifyServiceResponse(
  responseJson: string,
  publicKey: string,
  pinnedIdentity: string,
  chainId: string,
): string {
  started();
  const fields = givenObject(responseJson, 'response');
  const headers = new Map<string, string>();
  const given = fields.value('headers');
  if (!(given instanceof Map))
    throw new ModuleError('answer_envelope', 'response.headers must be an object of names and values', {
      field: 'response.headers',
    });
  for (const [name, value] of given) headers.set(name.toLowerCase(), textIn(value, `response.headers.${name}`));
  const answer = {
    method: fields.text('method'),
    target: fields.text('target'),
    requestBody: fields.hex('request_body_hex'),
    status: decimalOf(fields, 'status', 999),
    answerBody: fields.hex('response_body_hex'),
    nonce: fields.hex('nonce', NONCE_BYTES),
    header: (name: string) => headers.get(name),
    publicKey: givenHex(publicKey, 'public key', PUBLIC_KEY_BYTES),
    pinnedIdentity: givenHex(pinnedIdentity, 'identity', ID_BYTES),
    chainId: givenHex(chainId, 'chain_id', ID_BYTES),
  };
  fields.end();
  const verdict = verifySignedAnswer(answer, (signature, message, key) => verifySignature(key, message, signature));
  if (!verdict.ok) throw new ModuleError(verdict.problem, PROBLEMS[verdict.problem]);
  return written({ finalized_height: String(verdict.finalizedHeight) });
}

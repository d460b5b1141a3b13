/** The headers of a signed answer (specification: Authentication, rule 7), for the public API and the mining listener alike. */
import { ANSWER_HEADERS, answerMessage, ENVELOPE_VERSION, NONCE_BYTES } from '../../protocol/api/signed-answer.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import type { Chain } from '../full-node.ts';
import type { NodeIdentity, SigningPlace } from './identity.ts';

export type AnswerToSign = {
  readonly method: string;
  readonly target: string;
  readonly requestBody: Bytes;
  readonly status: number;
  readonly answerBody: Bytes;
};

export const NONCE_RULE = `${ANSWER_HEADERS.nonce} is ${NONCE_BYTES} bytes in hex`;

export const isNonce = (nonce: unknown): nonce is string => typeof nonce === 'string' && /^[0-9a-f]{64}$/i.test(nonce);

/** Names and values in turns. The nonce is given back as it was sent; what is signed are its bytes. */
export async function signedHeaders(
  answer: AnswerToSign,
  nonce: string,
  { identity }: Pick<NodeIdentity, 'identity'>,
  place: SigningPlace,
  chain: Pick<Chain, 'head' | 'chainId'>,
): Promise<readonly string[]> {
  const finalizedHeight = chain.head().height;
  const message = answerMessage({
    ...answer,
    nonce: fromHex(nonce.toLowerCase()),
    chainId: chain.chainId,
    finalizedHeight,
  });
  const signature = await place.sign(message);
  return [
    ANSWER_HEADERS.version,
    String(ENVELOPE_VERSION),
    ANSWER_HEADERS.identity,
    toHex(identity),
    ANSWER_HEADERS.nonce,
    nonce,
    ANSWER_HEADERS.tipHeight,
    String(finalizedHeight),
    ANSWER_HEADERS.signature,
    toHex(signature),
  ];
}

/** The key for checking signatures, once the client has verified that it has the pinned identity. */
export const identityDocument = (
  chain: Pick<Chain, 'chainId'>,
  { identity, publicKey }: Pick<NodeIdentity, 'identity' | 'publicKey'>,
) => ({
  api_version: 1 as const,
  identity: toHex(identity),
  public_key: toHex(publicKey),
  algorithm: 'ML-DSA-65' as const,
  envelope_version: 1 as const,
  chain_id: toHex(chain.chainId),
});

/**
 * Signed answers (specification: Authentication, rule 7; the bytes are decided in docs/api.md). A client sends a random nonce;
 * the node signs what was asked and what it answered, bound to the chain and the finalized height. The verifier needs
 * the identity it pinned and the chain it expects, and nothing from the answer is trusted before the signature holds.
 */
import { type Bytes, ByteWriter, equalBytes, fromHex, toHex, utf8 } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../transactions/transaction.ts';

export const ENVELOPE_VERSION = 1;
export const NONCE_BYTES = 32;

export const ANSWER_HEADERS = {
  version: 'x-svc-envelope-version',
  identity: 'x-svc-node-identity',
  nonce: 'x-svc-request-nonce',
  tipHeight: 'x-svc-tip-height',
  signature: 'x-svc-signature',
} as const;

export type Envelope = {
  readonly method: string;
  /** Path and query exactly as in the request line. */
  readonly target: string;
  readonly requestBody: Bytes;
  readonly status: number;
  readonly answerBody: Bytes;
  readonly nonce: Bytes;
  readonly chainId: Bytes;
  readonly finalizedHeight: number;
};

/** The signed bytes: one identifier over every field, each with its length, so that no two envelopes share bytes. */
export function answerMessage(envelope: Envelope): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(512 + envelope.requestBody.length + envelope.answerBody.length);
  const target = utf8(envelope.target);
  writer
    .u8(ENVELOPE_VERSION)
    .text(envelope.method, 16)
    .u32(target.length)
    .raw(target)
    .u32(envelope.requestBody.length)
    .raw(envelope.requestBody)
    .u16(envelope.status)
    .u32(envelope.answerBody.length)
    .raw(envelope.answerBody)
    .raw(envelope.nonce)
    .raw(envelope.chainId)
    .height(envelope.finalizedHeight);
  return id(LABELS.serviceAnswer, writer.done());
}

/** The name a client pins: the hash of the node's public key. */
export const serviceIdentity = (publicKey: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.nodeIdentity, publicKey);

export type VerifySignature = (signature: Bytes, message: Bytes, publicKey: Bytes) => boolean;

export const ANSWER_PROBLEMS = [
  'answer_unsigned',
  'answer_envelope',
  'answer_nonce',
  'answer_identity',
  'answer_signature',
] as const;
export type AnswerProblem = (typeof ANSWER_PROBLEMS)[number];

export type SignedAnswer = Omit<Envelope, 'finalizedHeight'> & {
  /** Header values as they came; names in lower case. */
  readonly header: (name: string) => string | null | undefined;
  readonly publicKey: Bytes;
  readonly pinnedIdentity: Bytes;
};

export type AnswerVerdict = { ok: true; finalizedHeight: number } | { ok: false; problem: AnswerProblem };

const refuse = (problem: AnswerProblem): AnswerVerdict => ({ ok: false, problem });

function readHex(text: string, bytes: number): Uint8Array<ArrayBuffer> | undefined {
  return text.length === 2 * bytes && /^[0-9a-f]*$/.test(text) ? fromHex(text) : undefined;
}

export function verifySignedAnswer(answer: SignedAnswer, verify: VerifySignature): AnswerVerdict {
  const version = answer.header(ANSWER_HEADERS.version);
  const identity = answer.header(ANSWER_HEADERS.identity);
  const nonce = answer.header(ANSWER_HEADERS.nonce);
  const tip = answer.header(ANSWER_HEADERS.tipHeight);
  const signature = answer.header(ANSWER_HEADERS.signature);
  if (version == null || identity == null || nonce == null || tip == null || signature == null)
    return refuse('answer_unsigned');
  if (version !== String(ENVELOPE_VERSION)) return refuse('answer_envelope');
  if (!/^(0|[1-9]\d{0,15})$/.test(tip) || !Number.isSafeInteger(Number(tip))) return refuse('answer_envelope');
  // Given back as it was sent, in either case.
  if (nonce.toLowerCase() !== toHex(answer.nonce)) return refuse('answer_nonce');
  const claimed = readHex(identity, ID_BYTES);
  if (claimed === undefined || !equalBytes(claimed, answer.pinnedIdentity)) return refuse('answer_identity');
  if (answer.publicKey.length !== PUBLIC_KEY_BYTES || !equalBytes(serviceIdentity(answer.publicKey), claimed))
    return refuse('answer_identity');
  const bytes = readHex(signature, SIGNATURE_BYTES);
  if (bytes === undefined) return refuse('answer_signature');
  const finalizedHeight = Number(tip);
  const message = answerMessage({ ...answer, finalizedHeight });
  return verify(bytes, message, answer.publicKey) ? { ok: true, finalizedHeight } : refuse('answer_signature');
}

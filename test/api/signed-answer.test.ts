/** A signed answer holds exactly as it was given: the verifier against noble, and every byte of it flipped. */

import { sha384 } from '@noble/hashes/sha2.js';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect, test } from 'vitest';
import { PinnedNode } from '../../protocol/api/pinned-node.ts';
import {
  ANSWER_HEADERS,
  answerMessage,
  type SignedAnswer,
  serviceIdentity,
  verifySignedAnswer,
} from '../../protocol/api/signed-answer.ts';
import { concat, toHex, utf8 } from '../../protocol/bytes.ts';
import { count } from '../level.ts';

const keys = ml_dsa65.keygen(new Uint8Array(32).fill(7));
const envelope = {
  method: 'POST',
  target: '/v1/address/balances?x=1',
  requestBody: utf8('{"addresses":["dsvc1"]}'),
  status: 200,
  answerBody: utf8('{"api_version":1}'),
  nonce: new Uint8Array(32).fill(9),
  chainId: new Uint8Array(48).fill(3),
  finalizedHeight: 1234,
};

/** The message by hand, from docs/api.md. */
function byHand(): Uint8Array {
  const le = (value: number, bytes: number) => Uint8Array.from({ length: bytes }, (_, i) => (value / 256 ** i) & 255);
  const sized = (bytes: Uint8Array) => concat(le(bytes.length, 4), bytes);
  return sha384(
    concat(
      utf8('SVC_SERVICE_ANSWER_V1\0'),
      Uint8Array.of(1, 4),
      utf8('POST'),
      sized(utf8(envelope.target)),
      sized(envelope.requestBody),
      le(200, 2),
      sized(envelope.answerBody),
      envelope.nonce,
      envelope.chainId,
      le(1234, 8),
    ),
  );
}

const signature = ml_dsa65.sign(byHand(), keys.secretKey);
const headers: Record<string, string> = {
  [ANSWER_HEADERS.version]: '1',
  [ANSWER_HEADERS.identity]: toHex(serviceIdentity(keys.publicKey)),
  [ANSWER_HEADERS.nonce]: toHex(envelope.nonce),
  [ANSWER_HEADERS.tipHeight]: '1234',
  [ANSWER_HEADERS.signature]: toHex(signature),
};
const answer = {
  ...envelope,
  publicKey: keys.publicKey,
  pinnedIdentity: serviceIdentity(keys.publicKey),
  header: (name: string) => headers[name],
};

const judged = (given: SignedAnswer) =>
  verifySignedAnswer(given, (signed, message, publicKey) => ml_dsa65.verify(signed, message, publicKey));

test('the message is the one the documentation describes, and its signature holds', () => {
  expect(toHex(answerMessage(envelope))).toBe(toHex(byHand()));
  expect(judged(answer)).toEqual({ ok: true, finalizedHeight: 1234 });
});

test('a flipped bit anywhere fails', () => {
  const flipped = (bytes: Uint8Array, at: number) => bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
  for (const field of ['requestBody', 'answerBody', 'nonce', 'chainId', 'pinnedIdentity'] as const)
    for (let at = 0; at < answer[field].length; at += count({ full: 7, deep: 1 }))
      expect(judged({ ...answer, [field]: flipped(answer[field], at) }).ok).toBe(false);
  for (let at = 0; at < keys.publicKey.length; at += count({ full: 97, deep: 1 }))
    expect(judged({ ...answer, publicKey: flipped(keys.publicKey, at) }).ok).toBe(false);
  for (const [name, value] of Object.entries(headers))
    for (let at = 0; at < value.length; at += name === ANSWER_HEADERS.signature ? count({ full: 331, deep: 13 }) : 5) {
      const other = value.slice(0, at) + (value[at] === '0' ? '1' : '0') + value.slice(at + 1);
      expect(judged({ ...answer, header: (n) => (n === name ? other : headers[n]) }).ok, name).toBe(false);
    }
});

test.each([
  ['another method', { method: 'GET' }],
  ['another target', { target: '/v1/address/balances?x=2' }],
  ['another status', { status: 201 }],
])('%s fails', (_, change) => {
  expect(judged({ ...answer, ...change })).toEqual({ ok: false, problem: 'answer_signature' });
});

test('an answer without headers is unsigned, never an exception', () => {
  expect(judged({ ...answer, header: () => null })).toEqual({ ok: false, problem: 'answer_unsigned' });
  for (const junk of ['', 'zz', '-1', '1e3', 'é'.repeat(200), 'A'.repeat(6618)])
    for (const name of Object.keys(headers))
      expect(judged({ ...answer, header: (n) => (n === name ? junk : headers[n]) }).ok).toBe(false);
});

test('the key of a pinned node is asked for again where it could not be read, kept where it could, and nobody else’s is believed', async () => {
  const identity = toHex(serviceIdentity(keys.publicKey));
  const document = {
    api_version: 1,
    identity,
    public_key: toHex(keys.publicKey),
    algorithm: 'ML-DSA-65',
    envelope_version: 1,
    chain_id: toHex(envelope.chainId),
  };
  const foreign = ml_dsa65.keygen(new Uint8Array(32).fill(8)).publicKey;
  const answers: unknown[] = [
    undefined,
    { ...document, public_key: toHex(foreign) },
    { ...document, identity: toHex(serviceIdentity(foreign)), public_key: toHex(foreign) },
    { ...document, algorithm: 'none' },
    document,
  ];
  const node = new PinnedNode({ identity }, async () => {
    const next = answers.shift();
    if (next === undefined) throw new Error('fetch failed');
    return next;
  });
  const raw = { status: 200, bytes: envelope.answerBody, header: (name: string) => headers[name] };
  const prove = (change: object = {}) => node.prove(envelope, { ...raw, ...change } as never);
  await expect(prove()).rejects.toThrow('fetch failed');
  for (let i = 0; i < 2; i++) await expect(prove()).rejects.toThrow('another identity');
  await expect(prove()).rejects.toThrow('not an identity document');
  await prove();
  await prove();
  expect(answers).toEqual([]);
  await expect(prove({ status: 500 })).rejects.toMatchObject({ code: 'client_answer_unproven' });
});

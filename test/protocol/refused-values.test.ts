/** Values that are refused at their bounds: in a payment link, a body, a branch, and what a server tells a miner. */
import { expect, test } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { merkleBranch } from '../../protocol/crypto/merkle.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { checkReconnect, checkWork } from '../../protocol/stratum/messages.ts';
import { parsePaymentUri } from '../../protocol/transactions/payment-uri.ts';
import { decodeRecipientPayloads, encodeRecipientPayloads } from '../../protocol/transactions/recipient-payload.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const payload = Uint8Array.of(0, ...pattern('payee', 48));
const address = formatAddress(payload, 'development');

test('a payment link names its amount once', () => {
  const link = (query: string) => parsePaymentUri(`svc:${address}${query}`);
  expect(link('?amount=5').amount).toBe(500_000_000n);
  for (const query of ['?amount=5&amount=6', '?amount=5&amount=5', '?=5', '?amount', '?a=5', '?'])
    expect(() => link(query)).toThrow();
});

test('the parents of a body are in ascending order, each once', () => {
  const [a, b] = [new Uint8Array(48).fill(1), new Uint8Array(48).fill(2)];
  const body = {
    payout: payload,
    extranonce: encodeExtranonce('', new Uint8Array(17)),
    parents: [a, b],
    transactions: [],
  };
  const bytes = encodeBody(body);
  expect(decodeBody(bytes).parents).toEqual([a, b]);
  const at = bytes.findIndex((_, i) => equalBytes(bytes.subarray(i, i + 48), a));
  for (const parents of [
    [b, a],
    [a, a],
  ] as const) {
    const other = Uint8Array.from(bytes);
    other.set(parents[0], at);
    other.set(parents[1], at + 48);
    expect(() => decodeBody(other)).toThrow('ascending order');
  }
});

test('a tree has no branch of a leaf that it does not have', () => {
  const leaves = [1, 2, 3].map((fill) => new Uint8Array(4).fill(fill));
  expect(leaves.map((_, index) => merkleBranch(leaves, index).index)).toEqual([0, 1, 2]);
  for (const index of [-1, 3, 0.5, Number.NaN]) expect(() => merkleBranch(leaves, index)).toThrow('no leaf');
  expect(() => merkleBranch([], 0)).toThrow('no leaf');
});

test('work has at most 128 bits, and a miner is sent to a host name alone', () => {
  expect([checkWork('work', 0n), checkWork('work', 2n ** 128n - 1n)]).toEqual([0n, 2n ** 128n - 1n]);
  for (const work of [-1n, 2n ** 128n]) expect(() => checkWork('work', work)).toThrow('128 bits');
  const to = (host: string) => checkReconnect({ host, port: 1, waitMillis: 0 }).host;
  expect(to('pool.example')).toBe('pool.example');
  for (const host of ['a b', 'pool/x', 'x'.repeat(1_000)]) expect(() => to(host)).toThrow('a host name');
});

test('each recipient of a payment reads the bytes that are for its output, and no others', () => {
  const bytes = (length: number) => new Uint8Array(length).fill(length);
  const payloads = [0, 2, 7].map((outputIndex) => ({ outputIndex, bytes: bytes(10 * outputIndex + 1) }));
  const encoded = encodeRecipientPayloads(payloads);
  expect(decodeRecipientPayloads(encoded)).toEqual(payloads);
  for (const wrong of [encoded.subarray(1), encoded.subarray(0, -1), Uint8Array.of(...encoded, 0)])
    expect(() => decodeRecipientPayloads(wrong)).toThrow();
  for (const wrong of [[...payloads].reverse(), [payloads[0]!, payloads[0]!]])
    expect(() => encodeRecipientPayloads(wrong)).toThrow();
  expect(() => encodeRecipientPayloads([{ outputIndex: 0, bytes: bytes(70_000) }])).toThrow('too long');
});

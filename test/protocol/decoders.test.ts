/** Every binary and text decoder of the ledger formats under the property of fuzz.ts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { formatCoins, MAX_SUPPLY, parseAtoms, parseCoins } from '../../protocol/amount.ts';
import { type Bytes, compareBytes, concat, fromHex, fromUtf8, toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { attempt, ProtocolError } from '../../protocol/errors.ts';
import { type Body, decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { decodeExtranonce, encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { targetOfWork, workOfTarget } from '../../protocol/ledger/target.ts';
import { shapeOf, wireBytesOf } from '../../protocol/transactions/fee.ts';
import { decodePackage, encodePackage } from '../../protocol/transactions/multisig-package.ts';
import {
  decodeTransaction,
  decodeTransactionBody,
  encodeTransaction,
  encodeTransactionBody,
  type TransactionBody,
} from '../../protocol/transactions/transaction.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { sampleTransactions } from '../../vectors/generate/transaction.ts';
import multisig from '../../vectors/multisig.json' with { type: 'json' };
import { count, seed } from '../level.ts';
import { type Codec, fuzzDecoder } from './fuzz.ts';

const payout = concat(Uint8Array.of(0), pattern('payout', 48));
const transactions = sampleTransactions();
const header = encodeHeader({
  networkId: 4,
  anchorHeight: 12,
  timestampMillis: 34,
  anchorId: pattern('a', 48),
  parentsRoot: pattern('b', 48),
  transactionsRoot: pattern('c', 48),
  rewardRoot: pattern('d', 48),
  stateRoot: pattern('e', 48),
  target: 1n << 240n,
  nonce: pattern('f', 8),
});
const extranonce = encodeExtranonce('tag', pattern('g', 16));
const bodies: Body[] = [
  { payout, extranonce, parents: [], transactions: [] },
  {
    payout,
    extranonce,
    parents: [pattern('p', 48), pattern('q', 48)].sort(compareBytes),
    transactions: [transactions[0]!.wire],
  },
];

/** Text decoders are fuzzed through their UTF-8 bytes. */
const text = <T>(decode: (text: string) => T, encode: (value: T) => string) => ({
  decode: (bytes: Bytes) => decode(fromUtf8(bytes)),
  encode: (value: T) => utf8(encode(value)),
});

const codecs: Codec<never>[] = [
  { name: 'header', decode: decodeHeader, encode: encodeHeader, samples: [header] },
  { name: 'body', decode: decodeBody, encode: encodeBody, samples: bodies.map(encodeBody) },
  {
    name: 'transaction body',
    decode: (bytes: Bytes) => decodeTransactionBody(bytes),
    encode: encodeTransactionBody,
    samples: transactions.map((sample) => encodeTransactionBody(sample.body)),
  },
  {
    name: 'transaction',
    decode: (bytes: Bytes) => decodeTransaction(bytes),
    encode: encodeTransaction,
    samples: [...transactions.map((sample) => sample.wire), ...multisig.packages.map(({ wire }) => fromHex(wire))],
  },
  {
    name: 'multisig package',
    // Without its signatures checked, so that more than one in a thousand gets to the end.
    decode: (bytes: Bytes) =>
      decodePackage(bytes, { network: 'development', chainId: id(LABELS.chain, utf8('vectors')), verify: () => true }),
    encode: encodePackage,
    samples: multisig.packages.flatMap(({ unsigned, combined }) => [fromHex(unsigned), fromHex(combined)]),
  },
  {
    name: 'extranonce',
    decode: decodeExtranonce,
    encode: (value: { tag: string; unique: Bytes }) => encodeExtranonce(value.tag, value.unique),
    samples: [extranonce, encodeExtranonce('', new Uint8Array(0))],
  },
  {
    name: 'address',
    ...text(parseAddress, (address) => formatAddress(address.payload, address.network)),
    samples: [utf8(formatAddress(payout, 'mainnet')), utf8(formatAddress(payout, 'development'))],
  },
  { name: 'hex', ...text((value) => fromHex(value), toHex), samples: [utf8(toHex(header))] },
  { name: 'atoms', ...text(parseAtoms, String), samples: [utf8('0'), utf8('20000000000000000'), utf8('12345')] },
] as unknown as Codec<never>[];

describe('a decoder gives back what was encoded or a typed error', () => {
  test.each(codecs.map((codec) => [codec.name, codec] as const))('%s', (_, codec) => fuzzDecoder(codec));

  test.each(codecs.map((codec) => [codec.name, codec] as const))('%s cut at each byte', (_, codec) => {
    for (const sample of codec.samples)
      for (let length = 0; length < Math.min(sample.length, 700); length++) {
        const result = attempt(() => codec.decode(sample.subarray(0, length)));
        if (result.ok) expect(toHex(codec.encode(result.value))).toBe(toHex(sample.subarray(0, length)));
      }
  });
});

test('coins in text keep every atom', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: MAX_SUPPLY }), (atoms) => {
      expect(parseCoins(formatCoins(atoms))).toBe(atoms);
      expect(parseCoins(formatCoins(atoms).replace(/\.?0+$/, '') || '0')).toBe(atoms);
    }),
    { seed, numRuns: count({ quick: 500, full: 2000, deep: 100_000 }) },
  );
  for (const bad of ['', '.5', '1.', '-1', '+1', '1e3', '01', '1.123456789', '200000000.00000001', '1,5', ' 1', 'NaN'])
    expect(attempt(() => parseCoins(bad)).ok, bad).toBe(false);
});

test('work and target undo each other as far as integers allow', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 1n << 256n }), (work) => {
      const target = targetOfWork(work);
      expect(workOfTarget(target)).toBeGreaterThanOrEqual(work);
      if (target + 1n < 1n << 256n) expect(workOfTarget(target + 1n)).toBeLessThanOrEqual(work);
    }),
    { seed, numRuns: count({ quick: 500, full: 2000, deep: 100_000 }) },
  );
});

test('the size of a transaction is known before it is signed', () => {
  for (const { body, profiles, wire } of transactions) expect(wireBytesOf(shapeOf(body, profiles))).toBe(wire.length);
});

test('encoders refuse what decoders would', () => {
  const body = transactions[0]!.body;
  const wrong: [string, TransactionBody][] = [
    ['out_of_range', { ...body, inputs: [] }],
    [
      'out_of_range',
      { ...body, inputs: Array.from({ length: 9 }, (_, i) => ({ ...body.inputs[0]!, outputIndex: i })) },
    ],
    ['out_of_range', { ...body, outputs: Array.from({ length: 9 }, () => body.outputs[0]!) }],
    ['out_of_range', { ...body, validFromHeight: 2000 }],
    ['amount_range', { ...body, outputs: [{ ...body.outputs[0]!, amount: 0n }] }],
    ['amount_range', { ...body, outputs: [0, 1].map(() => ({ ...body.outputs[0]!, amount: MAX_SUPPLY })) }],
    ['duplicate_entry', { ...body, inputs: [body.inputs[0]!, body.inputs[0]!] }],
    ['unsupported_kind', { ...body, payload: Uint8Array.of(3) }],
    ['too_long', { ...body, payload: new Uint8Array(2049) }],
    ['address_kind', { ...body, outputs: [{ address: new Uint8Array(49).fill(9), amount: 1n }] }],
  ];
  for (const [code, value] of wrong) {
    const result = attempt(() => encodeTransactionBody(value));
    expect(result.ok ? 'accepted' : result.error.code).toBe(code);
  }
  expect(() => encodeBody({ ...bodies[1]!, parents: [...bodies[1]!.parents].reverse() })).toThrow(ProtocolError);
});

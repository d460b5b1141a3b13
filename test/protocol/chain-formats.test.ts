/** Cut headers, certificates and genesis documents: vectors, round trips, refusals. */
import { expect, test } from 'vitest';
import { burnAddressPayload } from '../../protocol/address.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import {
  cutId,
  decodeCertificate,
  decodeCutHeader,
  encodeCertificate,
  encodeCutHeader,
  signersOf,
} from '../../protocol/ledger/cut.ts';
import { chainId, decodeGenesis, encodeGenesis } from '../../protocol/ledger/genesis.ts';
import { SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import vectors from '../../vectors/chain.json' with { type: 'json' };
import { fuzzDecoder } from './fuzz.ts';

test('a cut header reads back to what was written', () => {
  const bytes = fromHex(vectors.cut.header);
  const header = decodeCutHeader(bytes);
  expect([header.height, header.blockCount, header.signers]).toEqual([12_345_678, 64, 11n]);
  expect(encodeCutHeader(header)).toEqual(bytes);
  expect(toHex(cutId(bytes))).toBe(vectors.cut.cut_id);
  expect(() => encodeCutHeader({ ...header, blockCount: 65 })).toThrow(/at most 64/);
  expect(() => decodeCutHeader(bytes.subarray(1))).toThrow();
});

test('a genesis document reads back, and one that does not add up is refused', () => {
  const document = fromHex(vectors.genesis.document);
  const genesis = decodeGenesis(document);
  expect(encodeGenesis(genesis)).toEqual(document);
  expect(toHex(chainId(document))).toBe(vectors.genesis.chain_id);
  const [first, ...rest] = genesis.outputs as [(typeof genesis.outputs)[number], ...typeof genesis.outputs];
  expect(() => encodeGenesis({ ...genesis, outputs: [{ ...first, amount: first.amount + 1n }, ...rest] })).toThrow(
    /hands out/,
  );
  expect(() => encodeGenesis({ ...genesis, validators: [] })).toThrow(/1 to 200/);
  const [validator] = genesis.validators as [(typeof genesis.validators)[number]];
  const two = [validator, validator];
  expect(() => encodeGenesis({ ...genesis, validators: two })).toThrow(/one consensus key/);
  for (const wrong of [{ commission: 7 }, { endpoint: new Uint8Array(3) }, { owner: burnAddressPayload() }])
    expect(() => encodeGenesis({ ...genesis, validators: [{ ...validator, ...wrong }] })).toThrow();
  for (const intervalCuts of [0, 12, 25, 34_572])
    expect(() => encodeGenesis({ ...genesis, intervalCuts })).toThrow(/multiple of 12/);
  expect(() => encodeGenesis({ ...genesis, network: 'testnet' })).toThrow(/34560/);
  // There is no chain of version 1 to read.
  const old = Uint8Array.from(document);
  old[0] = 1;
  expect(() => decodeGenesis(old)).toThrow(/reads versions 2 and 3/);
});

test('a genesis document with a seed is of version 3, and its chain is another one', () => {
  const document = fromHex(vectors.seeded_genesis.document);
  const { seed, ...genesis } = decodeGenesis(document);
  expect(encodeGenesis({ ...genesis, seed: seed! })).toEqual(document);
  expect(encodeGenesis(genesis)).toEqual(fromHex(vectors.genesis.document));
  expect(toHex(chainId(document))).toBe(vectors.seeded_genesis.chain_id);
  expect(vectors.seeded_genesis.chain_id).not.toBe(vectors.genesis.chain_id);
  expect(() => encodeGenesis({ ...genesis, seed: new Uint8Array(31) })).toThrow(/32 bytes/);
});

test('members of a certificate stand in order, each once', () => {
  const signature = new Uint8Array(SIGNATURE_BYTES);
  const signatures = [1, 3, 63].map((member) => ({ member, signature }));
  const certificate = { round: 7, signatures };
  expect(decodeCertificate(encodeCertificate(certificate))).toEqual(certificate);
  expect(signersOf(certificate)).toBe((1n << 63n) | 0b1010n);
  expect(() => encodeCertificate({ round: 7, signatures: [...signatures].reverse() })).toThrow(/ascending/);
  expect(() => encodeCertificate({ round: 0, signatures: [{ member: 64, signature }] })).toThrow();
});

const codecs: [string, () => void][] = [
  [
    'cut header',
    () =>
      fuzzDecoder({
        name: 'cut header',
        decode: decodeCutHeader,
        encode: encodeCutHeader,
        samples: [fromHex(vectors.cut.header)],
      }),
  ],
  [
    'genesis',
    () =>
      fuzzDecoder({
        name: 'genesis',
        decode: decodeGenesis,
        encode: encodeGenesis,
        samples: [fromHex(vectors.genesis.document), fromHex(vectors.seeded_genesis.document)],
      }),
  ],
  [
    'certificate',
    () =>
      fuzzDecoder({
        name: 'certificate',
        decode: decodeCertificate,
        encode: encodeCertificate,
        samples: [
          encodeCertificate({ round: 1, signatures: [{ member: 2, signature: new Uint8Array(SIGNATURE_BYTES) }] }),
        ],
      }),
  ],
];

test.each(codecs)('%s: broken bytes are refused, and only refused', (_name, fuzz) => fuzz());

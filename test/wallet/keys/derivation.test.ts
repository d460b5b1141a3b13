/** docs/protocol/keys.md against vectors/wallet.json, with node:crypto and with noble, each checking the other. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect, test } from 'vitest';
import { formatAddress, keyAddressPayload } from '../../../protocol/address.ts';
import { fromHex, toHex } from '../../../protocol/bytes.ts';
import { NETWORKS, type NetworkName } from '../../../protocol/network.ts';
import {
  type AddressProofRequest,
  addressProofMessage,
  addressVerificationWords,
  PROOF_REFUSALS,
  verifyAddressProof,
} from '../../../protocol/transactions/address-proof.ts';
import { decodeTransactionBody, spendMessage, transactionId } from '../../../protocol/transactions/transaction.ts';
import { BRANCHES, type Branch, WalletRoot } from '../../../wallet/keys/derivation.ts';
import { entropyOfPhrase, phraseOfEntropy } from '../../../wallet/keys/phrase.ts';
import { signingKey, signMessage, verifySignature } from '../../../wallet/keys/signing.ts';
import { WalletError } from '../../../wallet/wallet-error.ts';

type KeyVector = {
  account: number;
  branch: Branch;
  index: number;
  seed: string;
  public_key_sha256: string;
  address: string;
  verification_words: string;
};
type Vectors = {
  wallets: {
    entropy: string;
    words: string;
    passphrase: string;
    network: NetworkName;
    phrase_seed: string;
    keys: KeyVector[];
  }[];
  signature: {
    seed: string;
    public_key: string;
    body: string;
    transaction_id: string;
    input: number;
    spent: { address: string; amount: string };
    spend_message: string;
    signature: string;
  };
  address_proof: { request: AddressProofRequest; message: string; signature: string };
};
const vectors = JSON.parse(readFileSync(new URL('../../../vectors/wallet.json', import.meta.url), 'utf8')) as Vectors;

/** The rules once more, from their text alone. */
function derive(phraseSeed: Buffer, path: readonly number[]): string {
  let node = createHmac('sha512', 'SVC_WALLET_ROOT_V1').update(phraseSeed).digest();
  for (const index of path) {
    const data = Buffer.concat([Buffer.alloc(1), node.subarray(0, 32), Buffer.alloc(4)]);
    data.writeUInt32BE(index + 2 ** 31, 33);
    node = createHmac('sha512', node.subarray(32)).update(data).digest();
  }
  return node.subarray(0, 32).toString('hex');
}

test.each(
  vectors.wallets.map(
    (wallet) => [`${wallet.words.slice(0, 20)} ${wallet.network} '${wallet.passphrase}'`, wallet] as const,
  ),
)('keys of %s', (_, { entropy, words, passphrase, network, phrase_seed, keys }) => {
  expect(phraseOfEntropy(fromHex(entropy))).toBe(words);
  expect(toHex(entropyOfPhrase(`  ${words.toUpperCase().replaceAll(' ', '\n ')} `))).toBe(entropy);
  const seed = pbkdf2Sync(words.normalize('NFKD'), `mnemonic${passphrase}`.normalize('NFKD'), 2048, 64, 'sha512');
  expect(seed.toString('hex')).toBe(phrase_seed);
  const root = new WalletRoot(words, passphrase, network);
  for (const key of keys) {
    const own = root.seed(key);
    expect(toHex(own)).toBe(key.seed);
    expect(derive(seed, [NETWORKS[network].id, key.account, BRANCHES[key.branch], key.index])).toBe(key.seed);
    const node = signingKey(own).publicKey;
    expect(toHex(ml_dsa65.keygen(own).publicKey)).toBe(toHex(node));
    expect(createHash('sha256').update(node).digest('hex')).toBe(key.public_key_sha256);
    const payload = keyAddressPayload(node);
    expect(formatAddress(payload, network)).toBe(key.address);
    expect(addressVerificationWords(payload).join(' ')).toBe(key.verification_words);
  }
  root.wipe();
  expect(() => root.seed({ account: 0, branch: 'receive', index: 0 })).toThrow('wiped');
});

test('spend message and signature, by both implementations', async () => {
  const { signature: vector } = vectors;
  const body = decodeTransactionBody(fromHex(vector.body));
  expect(toHex(transactionId(body))).toBe(vector.transaction_id);
  const spent = { address: fromHex(vector.spent.address), amount: BigInt(vector.spent.amount) };
  const message = spendMessage(fromHex(vector.body), vector.input, spent);
  expect(toHex(message)).toBe(vector.spend_message);
  const publicKey = fromHex(vector.public_key);
  const signature = fromHex(vector.signature);
  expect(verifySignature(publicKey, message, signature)).toBe(true);
  expect(ml_dsa65.verify(signature, message, publicKey)).toBe(true);
  const noble = ml_dsa65.keygen(fromHex(vector.seed));
  expect(toHex(ml_dsa65.sign(message, noble.secretKey, { extraEntropy: false }))).toBe(vector.signature);
  const key = signingKey(fromHex(vector.seed));
  expect(toHex(key.publicKey)).toBe(vector.public_key);
  const [first, second] = [await signMessage(key, message), await signMessage(key, message)];
  expect(ml_dsa65.verify(first, message, publicKey)).toBe(true);
  expect(ml_dsa65.verify(second, message, publicKey)).toBe(true);
  expect(toHex(first), 'signatures are hedged').not.toBe(toHex(second));
  signature[100] = (signature[100] as number) ^ 1;
  expect(verifySignature(publicKey, message, signature)).toBe(false);
  expect(verifySignature(publicKey.subarray(1), message, first)).toBe(false);
});

test('words that are not a phrase are refused with the place of the fault', () => {
  const { words } = vectors.wallets[2] as Vectors['wallets'][number];
  const list = words.split(' ');
  const refusal = (text: string) => {
    try {
      entropyOfPhrase(text);
      return undefined;
    } catch (error) {
      return error instanceof WalletError ? error : undefined;
    }
  };
  expect(refusal(list.slice(1).join(' '))?.code).toBe('phrase_length');
  expect(refusal(list.with(4, 'bitcoinn').join(' '))).toMatchObject({
    code: 'phrase_word',
    message: expect.stringContaining('word 5'),
  });
  const swapped = list.with(0, list[1] as string).with(1, list[0] as string);
  expect(refusal(swapped.join(' '))?.code).toBe('phrase_checksum');
});

test('address proofs: the vector, and every way to be refused', () => {
  const { request, message, signature } = vectors.address_proof;
  const { public_key } = vectors.signature;
  const edge = { network: 'development' as const, nowMillis: request.created_millis, verify: verifySignature };
  const proof = { version: 1, address: request.address, challenge: request.challenge, public_key, signature };
  expect(toHex(addressProofMessage(request))).toBe(message);
  expect(verifyAddressProof(request, proof, edge)).toEqual({ valid: true, address: request.address });
  const noble = (key: Uint8Array, bytes: Uint8Array, sig: Uint8Array) => ml_dsa65.verify(sig, bytes, key);
  expect(verifyAddressProof(request, proof, { ...edge, verify: noble as typeof verifySignature })).toMatchObject({
    valid: true,
  });
  const [{ keys }] = vectors.wallets as [Vectors['wallets'][number]];
  const other = (keys[0] as KeyVector).address;
  const burn = formatAddress(new Uint8Array(49).fill(2, 0, 1), 'development');
  const multisig = formatAddress(new Uint8Array(49).fill(1, 0, 1), 'development');
  const cases: [string, Partial<AddressProofRequest>, Partial<typeof proof>, Partial<typeof edge>][] = [
    ['request_malformed', { challenge: 'zz' }, {}, {}],
    ['request_malformed', { purpose: 'two\nlines' }, {}, {}],
    ['wrong_signature', { purpose: 'log in' }, {}, {}],
    ['proof_malformed', {}, { signature: '00' }, {}],
    ['wrong_network', {}, {}, { network: 'development', nowMillis: 0 }],
    ['not_a_key_address', { address: burn }, {}, {}],
    ['not_a_key_address', { address: multisig }, {}, {}],
    ['other_address', {}, { address: other }, {}],
    ['other_challenge', {}, { challenge: '00'.repeat(32) }, {}],
    ['expired', {}, {}, { nowMillis: request.expires_millis + 1 }],
    ['wrong_key', { address: other }, { address: other }, {}],
    ['wrong_signature', { expires_millis: request.expires_millis + 1 }, {}, {}],
  ];
  const reasons = cases.map(([reason, r, p, e]) => {
    const asked = reason === 'wrong_network' ? { ...request, network: 'testnet' as const } : { ...request, ...r };
    const verdict = verifyAddressProof(asked, { ...proof, ...p }, { ...edge, ...e });
    return [reason, verdict.valid ? 'valid' : verdict.reason];
  });
  for (const [wanted, got] of reasons) expect(got).toBe(wanted);
  expect([...new Set(reasons.map(([wanted]) => wanted))].sort()).toEqual([...PROOF_REFUSALS].sort());
});

/**
 * Wallet vectors: phrase, seed, key, address, verification words, spend message, address proof. Signatures here are the
 * deterministic variant of FIPS 204, so that the file is always the same; wallets sign with fresh randomness.
 */
import { createHash } from 'node:crypto';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { addressProofMessage, addressVerificationWords } from '../../protocol/transactions/address-proof.ts';
import { encodeTransactionBody, spendMessage, transactionId } from '../../protocol/transactions/transaction.ts';
import { type Branch, type KeyPath, WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy, seedOfPhrase } from '../../wallet/keys/phrase.ts';
import { pattern } from './pattern.ts';

const wallets: { entropy: Bytes; passphrase: string; network: NetworkName }[] = [
  { entropy: new Uint8Array(32), passphrase: '', network: 'development' },
  { entropy: new Uint8Array(32), passphrase: '', network: 'mainnet' },
  { entropy: pattern('wallet/1', 32), passphrase: '', network: 'development' },
  { entropy: pattern('wallet/1', 32), passphrase: 'kein Geld für Diebe', network: 'development' },
  { entropy: new Uint8Array(32).fill(0xff), passphrase: '', network: 'testnet' },
];

const paths: KeyPath[] = (
  [
    [0, 'receive', 0],
    [0, 'receive', 1],
    [0, 'change', 0],
    [1, 'receive', 0],
    [2_147_483_647, 'change', 2_147_483_647],
  ] as [number, Branch, number][]
).map(([account, branch, index]) => ({ account, branch, index }));

function keyVector(root: WalletRoot, path: KeyPath) {
  const seed = root.seed(path);
  const { publicKey } = ml_dsa65.keygen(seed);
  const payload = keyAddressPayload(publicKey);
  return {
    ...path,
    seed: toHex(seed),
    public_key_sha256: createHash('sha256').update(publicKey).digest('hex'),
    address: formatAddress(payload, root.network),
    verification_words: addressVerificationWords(payload).join(' '),
  };
}

export function walletVectors() {
  const keys = wallets.map(({ entropy, passphrase, network }) => {
    const words = phraseOfEntropy(entropy);
    const root = new WalletRoot(words, passphrase, network);
    return {
      entropy: toHex(entropy),
      words,
      passphrase,
      network,
      phrase_seed: toHex(seedOfPhrase(words, passphrase)),
      keys: paths.map((path) => keyVector(root, path)),
    };
  });
  const { secretKey, publicKey } = ml_dsa65.keygen(pattern('wallet/signer', 32));
  const address = keyAddressPayload(publicKey);
  const body = {
    chainId: id(LABELS.chain, utf8('vectors')),
    validFromHeight: 100,
    validUntilHeight: 1100,
    inputs: [{ transactionId: pattern('wallet/input', 48), outputIndex: 3 }],
    outputs: [{ address: keyAddressPayload(pattern('wallet/recipient', 1952)), amount: 125_000_000n }],
    payload: new Uint8Array(0),
  };
  const bodyBytes = encodeTransactionBody(body);
  const message = spendMessage(bodyBytes, 0, { address, amount: 500_000_000n });
  const request = {
    version: 1,
    network: 'development' as const,
    address: formatAddress(address, 'development'),
    purpose: 'proof of ownership',
    challenge: toHex(pattern('wallet/challenge', 32)),
    created_millis: 1_700_000_000_000,
    expires_millis: 1_700_003_600_000,
  };
  const proofMessage = addressProofMessage(request);
  const sign = (bytes: Bytes) => toHex(ml_dsa65.sign(Uint8Array.from(bytes), secretKey, { extraEntropy: false }));
  return {
    wallets: keys,
    signature: {
      seed: toHex(pattern('wallet/signer', 32)),
      public_key: toHex(publicKey),
      body: toHex(bodyBytes),
      transaction_id: toHex(transactionId(body)),
      input: 0,
      spent: { address: toHex(address), amount: '500000000' },
      spend_message: toHex(message),
      signature: sign(message),
    },
    address_proof: { request, message: toHex(proofMessage), signature: sign(proofMessage) },
  };
}

/** Vectors of the formats that the protocol module brings: fingerprints of wallets, payment links, payloads per recipient (docs/protocol/module.md). */
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { encodeRecipientPayloads } from '../../protocol/transactions/recipient-payload.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { pattern } from './pattern.ts';

function fingerprint(entropy: Uint8Array, network: NetworkName) {
  const seed = new WalletRoot(phraseOfEntropy(entropy), '', network).seed({ account: 0, branch: 'receive', index: 0 });
  const { publicKey } = ml_dsa65.keygen(seed);
  return {
    entropy: toHex(entropy),
    network,
    fingerprint: toHex(id(LABELS.walletFingerprint, publicKey).subarray(0, 8)),
  };
}

function paymentUris() {
  const address = formatAddress(keyAddressPayload(pattern('module/recipient', 1952)), 'development');
  const request = { address, network: 'development' };
  const bad: [string, string][] = [
    [`bitcoin:${address}`, 'unsupported_kind'],
    [`SVC:${address}`, 'unsupported_kind'],
    [`svc://${address}`, 'address_text'],
    [`svc:${address}?amount=1,25`, 'amount_text'],
    [`svc:${address}?amount=-1`, 'amount_text'],
    [`svc:${address}?amount=1&amount=2`, 'duplicate_entry'],
    [`svc:${address}?fee=1`, 'field_unknown'],
    [`svc:${address}?amount`, 'field_type'],
    [`svc:${address}?`, 'field_type'],
    [`svc:${address}?label=a b`, 'not_canonical'],
    [`svc:${address}?label=%ff`, 'bad_utf8'],
    [`svc:${address}?label=a?b=c?d`, 'not_canonical'],
    [`svc:${address.slice(0, -1)}q?amount=1`, 'address_checksum'],
  ];
  return {
    good: [
      { uri: `svc:${address}`, request },
      { uri: `svc:${address}?amount=1.25`, request: { ...request, amount: '125000000' } },
      {
        uri: `svc:${address}?label=Caf%C3%A9&amount=0.00000001&message=order%20%2317`,
        request: { ...request, label: 'Café', amount: '1', message: 'order #17' },
      },
    ],
    bad: bad.map(([uri, code]) => ({ uri, code })),
  };
}

function recipientPayloads() {
  const lists = [
    [{ output_index: '0', bytes: utf8('invoice 4711') }],
    [
      { output_index: '1', bytes: pattern('module/payload', 40) },
      { output_index: '7', bytes: Uint8Array.of(0) },
    ],
    [{ output_index: '3', bytes: pattern('module/largest', 2043) }],
  ];
  const bad: [string, string][] = [
    ['', 'truncated'],
    ['00', 'unsupported_kind'],
    ['0100', 'out_of_range'],
    ['0101000000', 'out_of_range'],
    ['010100010041ff', 'trailing_bytes'],
    ['0101000200', 'truncated'],
    ['010108010041', 'not_canonical'],
    ['01020101004101010041', 'not_canonical'],
    ['0109', 'truncated'],
  ];
  return {
    good: lists.map((list) => ({
      payloads: list.map(({ output_index, bytes }) => ({ output_index, payload_hex: toHex(bytes) })),
      payload_hex: toHex(
        encodeRecipientPayloads(list.map(({ output_index, bytes }) => ({ outputIndex: Number(output_index), bytes }))),
      ),
    })),
    bad: bad.map(([payload_hex, code]) => ({ payload_hex, code })),
  };
}

export function moduleVectors() {
  return {
    fingerprints: [
      fingerprint(new Uint8Array(32), 'development'),
      fingerprint(new Uint8Array(32), 'mainnet'),
      fingerprint(pattern('module/wallet', 32), 'testnet'),
    ],
    payment_uris: paymentUris(),
    recipient_payloads: recipientPayloads(),
  };
}

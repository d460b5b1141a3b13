/** Address vectors: each kind on each network, keys to addresses, and one text for each refusal. */
import { bech32, bech32m } from '@scure/base';
import {
  ADDRESS_KINDS,
  type AddressKind,
  burnAddressPayload,
  formatAddress,
  keyAddressPayload,
} from '../../protocol/address.ts';
import { concat, toHex } from '../../protocol/bytes.ts';
import { NETWORK_NAMES } from '../../protocol/network.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transactions/transaction.ts';
import { pattern } from './pattern.ts';

export function addressVectors(): unknown {
  const valid = NETWORK_NAMES.flatMap((network) =>
    (Object.keys(ADDRESS_KINDS) as AddressKind[]).map((kind) => {
      const payload =
        kind === 'burn'
          ? burnAddressPayload()
          : concat(Uint8Array.of(ADDRESS_KINDS[kind]), pattern(`address/${network}/${kind}`, 48));
      return { network, kind, payload: toHex(payload), address: formatAddress(payload, network) };
    }),
  );
  const keys = [0, 1, 2].map((i) => {
    const publicKey = pattern(`key/${i}`, PUBLIC_KEY_BYTES);
    const payload = keyAddressPayload(publicKey);
    return { public_key: toHex(publicKey), payload: toHex(payload), address: formatAddress(payload, 'development') };
  });
  const good = formatAddress(concat(Uint8Array.of(0), pattern('good', 48)), 'development');
  const text = (prefix: string, payload: Uint8Array, codec: typeof bech32 | typeof bech32m = bech32m) =>
    codec.encode(prefix, codec.toWords(payload), false);
  const swapped = `${good.slice(0, 20)}${good[20] === 'q' ? 'p' : 'q'}${good.slice(21)}`;
  const payload = concat(Uint8Array.of(0), pattern('good', 48));
  return {
    valid,
    keys,
    invalid: [
      { why: 'empty', address: '', error: 'address_text' },
      { why: 'upper case', address: good.toUpperCase(), error: 'address_text' },
      { why: 'character outside bech32', address: `${good.slice(0, -1)}b`, error: 'address_text' },
      { why: 'too long', address: text('dsvc', pattern('long', 80)), error: 'address_text' },
      { why: 'one character changed', address: swapped, error: 'address_checksum' },
      { why: 'bech32 instead of bech32m', address: text('dsvc', payload, bech32), error: 'address_checksum' },
      { why: 'unknown prefix', address: text('xsvc', payload), error: 'address_network' },
      {
        why: 'another network',
        address: text('tsvc', payload),
        expected_network: 'development',
        error: 'address_network',
      },
      { why: 'payload one byte short', address: text('dsvc', payload.subarray(0, 48)), error: 'address_length' },
      {
        why: 'unknown kind',
        address: text('dsvc', concat(Uint8Array.of(3), pattern('good', 48))),
        error: 'address_kind',
      },
    ],
  };
}

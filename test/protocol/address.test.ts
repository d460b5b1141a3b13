/** Addresses: the quick decoder reads exactly what the general one of bech32m reads. */
import { bech32m } from '@scure/base';
import { expect, test } from 'vitest';
import { ADDRESS_PAYLOAD_BYTES, formatAddress, parseAddress } from '../../protocol/address.ts';
import { attempt } from '../../protocol/errors.ts';
import { NETWORK_NAMES, NETWORKS } from '../../protocol/network.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';

const random = randomOf(seed);
const LETTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l1b';

function payloadOfKind(): Uint8Array<ArrayBuffer> {
  const payload = Uint8Array.from({ length: ADDRESS_PAYLOAD_BYTES }, () => random(256));
  payload[0] = random(3);
  return payload;
}

const general = (text: string) => {
  const decoded = bech32m.decodeUnsafe(text, 90);
  return decoded === undefined ? undefined : bech32m.fromWordsUnsafe(decoded.words);
};

test('what was written is read again, on every network, and only there', () => {
  for (let i = 0; i < count({ quick: 200, full: 2_000, deep: 50_000 }); i++)
    for (const name of NETWORK_NAMES) {
      const payload = payloadOfKind();
      const text = formatAddress(payload, name);
      expect(parseAddress(text, name)).toEqual({
        network: name,
        kind: (['key', 'multisig', 'burn'] as const)[payload[0] as number],
        payload,
      });
      const other = NETWORK_NAMES.find((one) => one !== name);
      expect(attempt(() => parseAddress(text, other))).toMatchObject({ ok: false, error: { code: 'address_network' } });
    }
});

test('texts with a fault are read as the general decoder reads them: not at all', () => {
  for (let i = 0; i < count({ quick: 2_000, full: 20_000, deep: 500_000 }); i++) {
    const name = NETWORK_NAMES[random(NETWORK_NAMES.length)] ?? 'development';
    const letters = [...formatAddress(payloadOfKind(), name)];
    for (let faults = 1 + random(3); faults > 0; faults--) {
      const place = random(letters.length);
      const letter = LETTERS[random(LETTERS.length)] as string;
      const how = random(4);
      if (how === 0) letters.splice(place, 1);
      else if (how === 1) letters.splice(place, 0, letter);
      else letters[place] = letter;
    }
    const text = letters.join('');
    const read = attempt(() => parseAddress(text));
    const payload = general(text);
    if (read.ok) expect(read.value.payload).toEqual(Uint8Array.from(payload ?? []));
    else expect(payload === undefined || payload.length !== ADDRESS_PAYLOAD_BYTES || (payload[0] ?? 9) > 2).toBe(true);
  }
});

test('words beyond the payload must be zero bits, or one address would have several spellings', () => {
  const { addressPrefix } = NETWORKS.development;
  const words = bech32m.toWords(payloadOfKind());
  for (let bit = 0; bit < 3; bit++) {
    const text = bech32m.encode(addressPrefix, [...words.slice(0, -1), (words.at(-1) as number) | (1 << bit)], 90);
    expect(attempt(() => parseAddress(text))).toMatchObject({ ok: false, error: { code: 'address_length' } });
  }
});

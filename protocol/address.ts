/**
 * Addresses (ledger rule 3): bech32m text with one prefix per network over a payload of one kind byte and a 48-byte
 * hash. Code uses the payload; the text form is for people and JSON.
 */
import { bech32m } from '@scure/base';
import { type Bytes, concat } from './bytes.ts';
import { ID_BYTES, id, LABELS } from './crypto/identifier.ts';
import { ProtocolError } from './errors.ts';
import { NETWORK_NAMES, NETWORKS, type Network, type NetworkName } from './network.ts';

export const ADDRESS_KINDS = { key: 0, multisig: 1, burn: 2 } as const;
export type AddressKind = keyof typeof ADDRESS_KINDS;

export const ADDRESS_PAYLOAD_BYTES = 1 + ID_BYTES;
/** Longest text: prefix of 4, separator, 79 characters of payload, 6 of checksum. */
const MAX_TEXT = 90;

export type Address = {
  readonly network: NetworkName;
  readonly kind: AddressKind;
  /** Kind byte and hash: what outputs, bodies and reward roots hold. */
  readonly payload: Uint8Array<ArrayBuffer>;
};

export function payloadKind(payload: Bytes): AddressKind {
  if (payload.length !== ADDRESS_PAYLOAD_BYTES)
    throw new ProtocolError('address_length', `an address payload has 49 bytes, this one ${payload.length}`);
  for (const kind of Object.keys(ADDRESS_KINDS) as AddressKind[]) if (ADDRESS_KINDS[kind] === payload[0]) return kind;
  throw new ProtocolError('address_kind', `address kind ${payload[0]} is not known`);
}

export function formatAddress(payload: Bytes, network: NetworkName): string {
  payloadKind(payload);
  return bech32m.encode(NETWORKS[network].addressPrefix, bech32m.toWords(Uint8Array.from(payload)), MAX_TEXT);
}

function networkOfPrefix(prefix: string): Network | undefined {
  for (const name of NETWORK_NAMES) if (NETWORKS[name].addressPrefix === prefix) return NETWORKS[name];
  return undefined;
}

const WORDS = new Int8Array(128).fill(-1);
for (const [word, letter] of [...'qpzry9x8gf2tvdw0s3jn54khce6mua7l'].entries()) WORDS[letter.charCodeAt(0)] = word;
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3] as const;
const BECH32M = 0x2bc830a3;
const CHECKSUM_WORDS = 6;
const PAYLOAD_WORDS = Math.ceil((8 * ADDRESS_PAYLOAD_BYTES) / 5);

/** One step of the checksum of BIP-350. */
function checksum(before: number, word: number): number {
  const top = before >>> 25;
  let sum = ((before & 0x1ffffff) << 5) ^ word;
  for (let i = 0; i < 5; i++) if (((top >>> i) & 1) === 1) sum ^= GENERATOR[i] as number;
  return sum;
}

/**
 * The payload of a valid address, ten times as fast as the general decoder; undefined for any other text. Decoding
 * addresses is most of the cost of a balance request.
 */
function readPayload(text: string, prefix: string): Uint8Array<ArrayBuffer> | undefined {
  const start = prefix.length + 1;
  if (text.length !== start + PAYLOAD_WORDS + CHECKSUM_WORDS) return undefined;
  let sum = 1;
  for (let i = 0; i < prefix.length; i++) sum = checksum(sum, prefix.charCodeAt(i) >> 5);
  sum = checksum(sum, 0);
  for (let i = 0; i < prefix.length; i++) sum = checksum(sum, prefix.charCodeAt(i) & 31);
  const payload = new Uint8Array(ADDRESS_PAYLOAD_BYTES);
  let [bits, held, at] = [0, 0, 0];
  for (let i = start; i < text.length; i++) {
    const word = WORDS[text.charCodeAt(i)] ?? -1;
    if (word < 0) return undefined;
    sum = checksum(sum, word);
    if (i >= start + PAYLOAD_WORDS) continue;
    held = ((held << 5) | word) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      payload[at++] = held >> bits;
    }
  }
  const padding = held & ((1 << bits) - 1);
  return sum === BECH32M && padding === 0 ? payload : undefined;
}

/** Reads an address of any network; `expected` refuses those of another. Lower case only: one address, one spelling. */
export function parseAddress(text: string, expected?: NetworkName): Address {
  if (text.length > MAX_TEXT || !/^[a-z]+1[02-9ac-hj-np-z]+$/.test(text))
    throw new ProtocolError('address_text', 'not an address: expected lower-case bech32m such as dsvc1...');
  const network = networkOfPrefix(text.slice(0, text.lastIndexOf('1')));
  if (network === undefined)
    throw new ProtocolError('address_network', `'${text.slice(0, text.lastIndexOf('1'))}' is no network's prefix`);
  const quick = readPayload(text, network.addressPrefix);
  if (quick !== undefined && (expected === undefined || network.name === expected))
    return { network: network.name, kind: payloadKind(quick), payload: quick };
  // Invalid: the slow decoder says why.
  const decoded = bech32m.decodeUnsafe(text, MAX_TEXT);
  if (decoded === undefined)
    throw new ProtocolError('address_checksum', 'the checksum does not match: mistyped address');
  if (expected !== undefined && network.name !== expected)
    throw new ProtocolError('address_network', `this is an address of ${network.name}, not of ${expected}`);
  const payload = bech32m.fromWordsUnsafe(decoded.words);
  if (payload === undefined || payload.length !== ADDRESS_PAYLOAD_BYTES)
    throw new ProtocolError('address_length', 'an address holds 49 bytes');
  return { network: network.name, kind: payloadKind(payload), payload: Uint8Array.from(payload) };
}

export const keyAddressPayload = (publicKey: Bytes): Uint8Array<ArrayBuffer> =>
  concat(Uint8Array.of(ADDRESS_KINDS.key), id(LABELS.address, publicKey));

/** The hash of the burn address is all zero: visibly, nobody knows a preimage. */
export const burnAddressPayload = (): Uint8Array<ArrayBuffer> => {
  const payload = new Uint8Array(ADDRESS_PAYLOAD_BYTES);
  payload[0] = ADDRESS_KINDS.burn;
  return payload;
};

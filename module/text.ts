/** Addresses, payment links and amounts as text. */
import { burnAddressPayload, formatAddress, keyAddressPayload, parseAddress as parse } from '../protocol/address.ts';
import { formatCoins, parseAtoms, parseCoins } from '../protocol/amount.ts';
import { toHex } from '../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../protocol/crypto/key-sizes.ts';
import { parsePaymentUri as parseUri } from '../protocol/transactions/payment-uri.ts';
import { givenHex, givenNetwork, givenNetworkOr, givenParsed, written } from './given.ts';

export function addressFromPublicKey(publicKey: string, network: string): string {
  const payload = keyAddressPayload(givenHex(publicKey, 'public key', PUBLIC_KEY_BYTES));
  return formatAddress(payload, givenNetwork(network));
}

/** With a network, an address of another one is refused. */
export function parseAddress(address: string, network?: string | null): string {
  const expected = givenNetworkOr(network);
  const { network: found, kind, payload } = givenParsed(address, 'address', (text) => parse(text, expected));
  return written({ address, network: found, kind, payload_hex: toHex(payload) });
}

export function burnAddress(network: string): string {
  return formatAddress(burnAddressPayload(), givenNetwork(network));
}

export function parsePaymentUri(uri: string, network?: string | null): string {
  const expected = givenNetworkOr(network);
  return written(givenParsed(uri, 'uri', (text) => parseUri(text, expected)));
}

/** From coins, such as 1.25, to atoms. */
export function parseAmount(coins: string): string {
  return givenParsed(coins, 'amount', parseCoins).toString();
}

/** From atoms to coins with 8 decimals. */
export function formatAmount(atoms: string): string {
  return formatCoins(givenParsed(atoms, 'amount', parseAtoms));
}

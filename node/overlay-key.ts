/**
 * The overlay key of a validator and its endpoint (specification: Operator commands, `svcd validator-endpoint`). The key is made once, in `network/validator-overlay/` of the data
 * directory, and never replaced: the chain knows its public half.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import { join } from 'node:path';
import { utf8 } from '../protocol/bytes.ts';
import { encodeEndpoint, MAX_ROUTES, OVERLAY_KEY_BYTES, type Route } from '../protocol/staking/endpoint.ts';
import { addressBytes } from '../runtime/client-address.ts';
import { createDurably } from '../runtime/durable-file.ts';
import { PRIVATE_MODE, privateText } from '../runtime/private-file.ts';
import { ValidatorError } from './validator-key.ts';

/** A route as it was written; without a port it is the network's. */
export type RouteWord = { readonly host: string; readonly port: number | undefined };

/** HOST, HOST:PORT, an IPv6 address alone, or in brackets with a port. */
export function readRoute(word: string): RouteWord {
  if (isIP(word) !== 0) return { host: word, port: undefined };
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(word) ?? [];
  const host = bracketed ?? plain;
  const number = port === undefined ? undefined : Number(port);
  if (host === undefined || (bracketed !== undefined && isIP(bracketed) !== 6))
    throw new Error('must be HOST or HOST:PORT, an IPv6 address with a port in brackets');
  if (number !== undefined && (number < 1 || number > 65_535)) throw new Error('a port is 1 to 65535');
  return { host, port: number };
}

function routeOf({ host, port }: RouteWord, standard: number): Route {
  if (isIP(host) === 0) return { kind: 'name', host: utf8(host.toLowerCase()), port: port ?? standard };
  return { kind: isIPv4(host) ? 'ipv4' : 'ipv6', host: addressBytes(host), port: port ?? standard };
}

const keyFileOf = (dataDir: string): string => join(dataDir, 'network', 'validator-overlay', 'overlay-key.pem');

/** The public half of the key of this data directory, which is made if there is none. */
export async function overlayKey(dataDir: string): Promise<Uint8Array> {
  const file = keyFileOf(dataDir);
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
  const { privateKey } = generateKeyPairSync('ed25519');
  // One that is there stays.
  await createDurably(file, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), PRIVATE_MODE);
  try {
    const key = createPrivateKey(privateText(file, 'overlay key'));
    const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
    if (key.asymmetricKeyType !== 'ed25519') throw new Error('it is of another kind');
    return new Uint8Array(spki.subarray(spki.length - OVERLAY_KEY_BYTES));
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('secret_file_') === true) throw error;
    throw new ValidatorError('validator_key_damaged', `${file} is no overlay key: ${(error as Error).message}`);
  }
}

/** Canonical bytes of the endpoint: what a registration carries. */
export function endpointOf(key: Uint8Array, words: readonly RouteWord[], standardPort: number): Uint8Array {
  if (words.length > MAX_ROUTES) throw new ValidatorError('validator_config', `at most ${MAX_ROUTES} routes`);
  const routes = words.map((word) => routeOf(word, standardPort));
  const names = new Set(routes.map(({ host, port }) => `${host.join('.')} ${port}`));
  if (names.size < routes.length) throw new ValidatorError('validator_config', 'a route stands there twice');
  return encodeEndpoint({ overlayKey: key, routes });
}

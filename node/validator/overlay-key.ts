/**
 * The overlay key of a validator and its endpoint (specification: Operator commands, `svcd validator-endpoint`). The
 * key is made once, in `network/validator-overlay/` of the data directory, and never replaced: its public key is on the
 * chain.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { existsSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import { join } from 'node:path';
import { utf8 } from '../../protocol/bytes.ts';
import { encodeEndpoint, MAX_ROUTES, OVERLAY_KEY_BYTES, type Route } from '../../protocol/staking/endpoint.ts';
import { addressBytes } from '../../runtime/clients/client-address.ts';
import { createDurably } from '../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import { PRIVATE_MODE, privateText } from '../../runtime/files/private-file.ts';
import { type HostAndPort, readHostAndPort } from '../../runtime/listen-address.ts';
import { directoryError } from '../../runtime/runtime-error.ts';
import { ValidatorError } from './validator-key.ts';

/** A route as it was written; without a port it is the network's. */
export type RouteWord = HostAndPort;

/** Refused: unspecified, multicast and link-local addresses. */
function isUndialled(host: string): boolean {
  const kind = isIP(host);
  if (kind === 0) return false;
  const bytes = addressBytes(host);
  const [first = 0] = bytes;
  return host.includes('%') || bytes.every((byte) => byte === 0) || (kind === 4 ? first >= 224 : first === 255);
}

/** HOST, HOST:PORT, an IPv6 address alone, or in brackets with a port. */
export function readRoute(word: string): RouteWord {
  const route = readHostAndPort(word);
  if (route === undefined) throw new Error('must be HOST or HOST:PORT, an IPv6 address with a port in brackets');
  if (isUndialled(route.host)) throw new Error(`'${route.host}' is no address that others can dial`);
  if (route.port === 0) throw new Error('a port is 1 to 65535');
  return route;
}

function routeOf({ host, port }: RouteWord, standard: number): Route {
  if (isIP(host) === 0) return { kind: 'name', host: utf8(host.toLowerCase()), port: port ?? standard };
  return { kind: isIPv4(host) ? 'ipv4' : 'ipv6', host: addressBytes(host), port: port ?? standard };
}

const keyFileOf = (dataDir: string): string => join(dataDir, 'network', 'validator-overlay', 'overlay-key.pem');

/** The public key of this data directory, created if missing. */
export async function overlayKey(dataDir: string): Promise<Uint8Array> {
  const file = keyFileOf(dataDir);
  const { privateKey } = generateKeyPairSync('ed25519');
  try {
    makeDirectory(join(file, '..'), 0o700);
    // An existing key is kept.
    await createDurably(file, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), PRIVATE_MODE);
  } catch (error) {
    throw directoryError(join(file, '..'), error);
  }
  return readOverlayKey(file).publicKey;
}

export type OverlaySigner = { readonly publicKey: Uint8Array; readonly sign: (message: Uint8Array) => Uint8Array };

/** The key of this data directory; undefined if there is none. */
export const overlaySigner = (dataDir: string): OverlaySigner | undefined =>
  existsSync(keyFileOf(dataDir)) ? readOverlayKey(keyFileOf(dataDir)) : undefined;

function readOverlayKey(file: string): OverlaySigner {
  try {
    const key = createPrivateKey(privateText(file, 'overlay key'));
    const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
    if (key.asymmetricKeyType !== 'ed25519') throw new Error('it is of another kind');
    const publicKey = new Uint8Array(spki.subarray(spki.length - OVERLAY_KEY_BYTES));
    return { publicKey, sign: (message) => sign(null, message, key) };
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('secret_file_') === true) throw error;
    throw new ValidatorError('validator_key_damaged', `${file} is no overlay key: ${(error as Error).message}`);
  }
}

/** Canonical bytes of the endpoint, as in a registration. */
export function endpointOf(key: Uint8Array, words: readonly RouteWord[], standardPort: number): Uint8Array {
  if (words.length > MAX_ROUTES) throw new ValidatorError('validator_config', `at most ${MAX_ROUTES} routes`);
  const routes = words.map((word) => routeOf(word, standardPort));
  const names = new Set(routes.map(({ host, port }) => `${host.join('.')} ${port}`));
  if (names.size < routes.length) throw new ValidatorError('validator_config', 'a route is given twice');
  return encodeEndpoint({ overlayKey: key, routes });
}

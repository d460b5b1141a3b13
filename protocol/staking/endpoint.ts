/**
 * The endpoint of a validator (ledger rule 61): `u8 1 | Ed25519 overlay key 32 | u8 count, each (u8 kind: 4 IPv4, 6
 * IPv6, 0 name; u8 length, host; u16 port)`. At most four routes. Without any, the validator dials the others.
 */
import { ByteReader, type Bytes, ByteWriter, fromUtf8 } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

const VERSION = 1;
export const OVERLAY_KEY_BYTES = 32;
export const MAX_ROUTES = 4;
const MAX_NAME = 253;
const HOST_KINDS = { name: 0, ipv4: 4, ipv6: 6 } as const;
export type HostKind = keyof typeof HOST_KINDS;

/** A host is 4 or 16 bytes of an address, or a name in lower-case ASCII. */
export type Route = { readonly kind: HostKind; readonly host: Bytes; readonly port: number };
export type Endpoint = { readonly overlayKey: Bytes; readonly routes: readonly Route[] };

export const MAX_ENDPOINT_BYTES = 1 + OVERLAY_KEY_BYTES + 1 + MAX_ROUTES * (2 + MAX_NAME + 2);

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

function checkRoute({ kind, host, port }: Route): void {
  if (port < 1) throw new ProtocolError('out_of_range', 'a route has a port from 1 on');
  if (kind === 'ipv4' || kind === 'ipv6') {
    if (host.length !== (kind === 'ipv4' ? 4 : 16))
      throw new ProtocolError('out_of_range', `an address of ${host.length} bytes`);
    return;
  }
  if (host.length < 1 || host.length > MAX_NAME) throw new ProtocolError('too_long', 'a name has 1 to 253 characters');
  for (const label of fromUtf8(host).split('.'))
    if (!LABEL.test(label)) throw new ProtocolError('not_canonical', 'a name is lower-case letters, digits, - and .');
}

export function encodeEndpoint({ overlayKey, routes }: Endpoint): Uint8Array<ArrayBuffer> {
  if (overlayKey.length !== OVERLAY_KEY_BYTES) throw new ProtocolError('out_of_range', 'an overlay key has 32 bytes');
  if (routes.length > MAX_ROUTES) throw new ProtocolError('too_long', `at most ${MAX_ROUTES} routes`);
  const writer = new ByteWriter(64).u8(VERSION).raw(overlayKey).u8(routes.length);
  for (const route of routes) {
    checkRoute(route);
    writer.u8(HOST_KINDS[route.kind]).short(route.host, MAX_NAME).u16(route.port);
  }
  return writer.done();
}

export function decodeEndpoint(bytes: Bytes): Endpoint {
  const reader = new ByteReader(bytes);
  const version = reader.u8();
  if (version !== VERSION) throw new ProtocolError('unsupported_version', `endpoint version ${version}`);
  const overlayKey = reader.take(OVERLAY_KEY_BYTES);
  const count = reader.u8();
  if (count > MAX_ROUTES) throw new ProtocolError('too_long', `at most ${MAX_ROUTES} routes`);
  const routes: Route[] = [];
  for (let i = 0; i < count; i++) {
    const kind = reader.u8();
    const name = (Object.keys(HOST_KINDS) as HostKind[]).find((known) => HOST_KINDS[known] === kind);
    if (name === undefined) throw new ProtocolError('unsupported_kind', `host kind ${kind} is not known`);
    const route = { kind: name, host: reader.short(MAX_NAME), port: reader.u16() };
    checkRoute(route);
    routes.push(route);
  }
  reader.end();
  return { overlayKey, routes };
}

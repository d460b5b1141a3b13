/**
 * Encoding of the addresses that peers exchange, `/svc/peers/1`: an IP address, a port and the key of the peer there.
 * At most 32.
 */
import { publicKeyFromRaw } from '@libp2p/crypto/keys';
import { peerIdFromPublicKey, peerIdFromString } from '@libp2p/peer-id';
import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { canonicalIp } from '../../../runtime/clients/address-reach.ts';
import { addressBytes } from '../../../runtime/clients/client-address.ts';
import { type HostPlace, placeOf } from '../peers/peer-address.ts';

export const PEERS_PROTOCOL = '/svc/peers/1';
export const MAX_PEERS_TOLD = 32;
const KEY_BYTES = 32;
export const PEERS_ANSWER_BYTES = 1 + MAX_PEERS_TOLD * (1 + 16 + 2 + KEY_BYTES);

/** The Ed25519 key in a peer's name. */
function keyOf(peer: string): Uint8Array | undefined {
  try {
    const { publicKey } = peerIdFromString(peer);
    return publicKey?.type === 'Ed25519' ? publicKey.raw : undefined;
  } catch {
    return undefined;
  }
}

/** The addresses that can be announced. */
export function encodePeers(addresses: readonly string[]): Uint8Array<ArrayBuffer> {
  const told = addresses.flatMap((address) => {
    const place = placeOf(address);
    const key = place && keyOf(place.peer);
    return place === undefined || key === undefined ? [] : [{ ...place, key }];
  });
  const some = told.slice(0, MAX_PEERS_TOLD);
  const writer = new ByteWriter(PEERS_ANSWER_BYTES).u8(some.length);
  for (const { ip, port, key } of some) {
    const bytes = addressBytes(ip);
    writer.u8(bytes.length).raw(bytes).u16(port).raw(key);
  }
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodePeers(bytes: Bytes): HostPlace[] {
  const reader = new ByteReader(bytes);
  const count = reader.u8();
  if (count > MAX_PEERS_TOLD) throw new ProtocolError('out_of_range', `at most ${MAX_PEERS_TOLD} peers are sent`);
  const told = Array.from({ length: count }, () => readPlace(reader));
  reader.end();
  return told;
}

function readPlace(reader: ByteReader): HostPlace {
  const length = reader.u8();
  if (length !== 4 && length !== 16) throw new ProtocolError('out_of_range', 'an address has 4 or 16 bytes');
  const ip = textOf(reader.take(length));
  const port = reader.u16();
  if (port === 0) throw new ProtocolError('out_of_range', 'nobody listens on port 0');
  return { ip, port, peer: nameOfKey(reader.take(KEY_BYTES)) };
}

/** An IPv4 address has its own form: in 16 bytes it would be counted as another host. */
function textOf(bytes: Bytes): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number)).toString(16),
  );
  const ip = canonicalIp(groups.join(':'));
  if (ip === undefined || ip.includes('.')) throw new ProtocolError('not_canonical', 'an IPv4 address in 16 bytes');
  return ip;
}

function nameOfKey(key: Bytes): string {
  try {
    return peerIdFromPublicKey(publicKeyFromRaw(Uint8Array.from(key))).toString();
  } catch (error) {
    throw new ProtocolError('out_of_range', `no key: ${(error as Error).message}`);
  }
}

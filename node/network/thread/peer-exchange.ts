/** Addresses that peers tell each other, `/svc/peers/1`: at most 32, each of at most 200 characters. */
import { ByteReader, type Bytes, ByteWriter, fromUtf8, utf8 } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { ipOf, isDialable } from '../peer-book.ts';

export const PEERS_PROTOCOL = '/svc/peers/1';
export const MAX_PEERS_TOLD = 32;
export const PEERS_ANSWER_BYTES = 1 + MAX_PEERS_TOLD * 201;

export function encodePeers(addresses: readonly string[]): Uint8Array<ArrayBuffer> {
  const told = addresses.filter(isDialable).slice(0, MAX_PEERS_TOLD).map(utf8);
  const writer = new ByteWriter(PEERS_ANSWER_BYTES).u8(told.length);
  for (const text of told) writer.u8(text.length).raw(text);
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodePeers(bytes: Bytes): string[] {
  const reader = new ByteReader(bytes);
  const count = reader.u8();
  if (count > MAX_PEERS_TOLD) throw new ProtocolError('out_of_range', `at most ${MAX_PEERS_TOLD} peers are told`);
  const told = Array.from({ length: count }, () => fromUtf8(reader.take(reader.u8())));
  reader.end();
  return told.filter(isDialable);
}

/** An address inside a private network is worth something only to whoever is in it: a stranger's word must not make this node knock at its neighbours. */
export const isWorthTelling = (address: string, of: string, isPrivate: (ip: string) => boolean): boolean => {
  const [ip, from] = [ipOf(address), ipOf(`${of}/`)];
  return ip === undefined || !isPrivate(ip) || (from !== undefined && isPrivate(from));
};

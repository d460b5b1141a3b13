/**
 * The first exchange with a peer, `/svc/hello/1`: chain, rule set, release and height. A peer on another chain or with
 * other rules is disconnected; nothing else is requested from a peer before.
 */
import { ByteReader, type Bytes, ByteWriter, equalBytes, fromUtf8, utf8 } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';

const HELLO_VERSION = 1;
const MAX_RELEASE_BYTES = 32;
export const MAX_HELLO_BYTES = 1 + ID_BYTES + 4 + 1 + MAX_RELEASE_BYTES + 8;

export type Hello = {
  readonly chainId: Bytes;
  readonly ruleSet: number;
  readonly release: string;
  /** Of the newest final cut; a claim until the peer proves it. */
  readonly height: number;
};

export function encodeHello({ chainId, ruleSet, release, height }: Hello): Uint8Array<ArrayBuffer> {
  const text = utf8(release).subarray(0, MAX_RELEASE_BYTES);
  const writer = new ByteWriter(MAX_HELLO_BYTES).u8(HELLO_VERSION).raw(chainId).u32(ruleSet).u8(text.length);
  return writer.raw(text).height(height).done();
}

/** Throws a ProtocolError. */
export function decodeHello(bytes: Bytes): Hello {
  const reader = new ByteReader(bytes);
  const version = reader.u8();
  if (version !== HELLO_VERSION) throw new ProtocolError('unsupported_version', `hello version ${version}`);
  const chainId = reader.take(ID_BYTES);
  const ruleSet = reader.u32();
  const length = reader.u8();
  if (length > MAX_RELEASE_BYTES) throw new ProtocolError('out_of_range', 'the name of a release is too long');
  const release = fromUtf8(reader.take(length));
  if (!/^[\x21-\x7e]*$/.test(release)) throw new ProtocolError('out_of_range', 'a release is named in plain text');
  const height = reader.height();
  reader.end();
  return { chainId, ruleSet, release, height };
}

/** Why the two are incompatible; undefined if they are not. */
export function mismatch(own: Pick<Hello, 'chainId' | 'ruleSet'>, other: Hello): string | undefined {
  if (!equalBytes(own.chainId, other.chainId)) return 'it is on another chain';
  return own.ruleSet === other.ruleSet ? undefined : `it follows rule set ${other.ruleSet}`;
}

/** Whether a release such as 1.10.0 is newer than another. Other forms are ignored. */
export function isNewer(release: string, than: string): boolean {
  const [a, b] = [release, than].map((text) => /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})$/.exec(text)?.slice(1).map(Number));
  if (a === undefined || b === undefined) return false;
  for (let i = 0; i < 3; i++) if (a[i] !== b[i]) return (a[i] as number) > (b[i] as number);
  return false;
}

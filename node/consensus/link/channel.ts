/**
 * Authenticates the frames of an overlay connection (consensus rule 22). Each side creates an X25519 key for the
 * connection and sends it in its hello; every frame after the hellos carries a tag that only the two owners of those
 * keys can make. Identities are signed over both hellos, so a node in the middle can forward bytes, but add none.
 * Nothing is encrypted: all consensus messages are public.
 */
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { type Bytes, ByteWriter, concat, equalBytes } from '../../../protocol/bytes.ts';
import { id, LABELS } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { encodeHello, type Hello, TAG_BYTES } from './frames.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const X25519_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');

/** The signer's role. A signature of one role is not valid for the other. */
export const ROLES = { dialler: 1, dialled: 2 } as const;
export type Role = keyof typeof ROLES;

/** The hellos of a connection, by role. */
export type Ends = { readonly [R in Role]: Hello };

const bothOf = ({ dialler, dialled }: Ends): Bytes => concat(encodeHello(dialler), encodeHello(dialled));

/** The bytes that the end of this role signs with its consensus key. */
export const identityMessage = (role: Role, ends: Ends): Bytes =>
  id(LABELS.overlay, concat(Uint8Array.of(ROLES[role]), bothOf(ends)));

export type ConnectionKey = { readonly secret: KeyObject; readonly channelKey: Bytes };

export function newConnectionKey(): ConnectionKey {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const der = publicKey.export({ format: 'der', type: 'spki' });
  return { secret: privateKey, channelKey: new Uint8Array(der.subarray(X25519_PREFIX.length)) };
}

function sharedSecret(secret: KeyObject, channelKey: Bytes): Bytes {
  try {
    const publicKey = createPublicKey({ key: Buffer.concat([X25519_PREFIX, channelKey]), format: 'der', type: 'spki' });
    return diffieHellman({ privateKey: secret, publicKey });
  } catch {
    // With a point of small order everybody knows the result.
    throw new ProtocolError('not_canonical', 'its channel key is not valid');
  }
}

/** Keys of both directions: what the dialler sends, then what the dialled sends. */
export function channelKeys(secret: KeyObject, other: Bytes, ends: Ends): { readonly [R in Role]: Bytes } {
  const salt = id(LABELS.overlay, concat(Uint8Array.of(0), bothOf(ends)));
  const bytes = new Uint8Array(hkdfSync('sha384', sharedSecret(secret, other), salt, 'channel', 2 * KEY_BYTES));
  return { dialler: bytes.slice(0, KEY_BYTES), dialled: bytes.slice(KEY_BYTES) };
}

/** The tag of the frame with this number in its direction: AES-256-GCM over an empty plaintext. */
export function tagOf(key: Bytes | KeyObject, number: number, bytes: Bytes): Bytes {
  const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number));
  cipher.setAAD(bytes).final();
  return cipher.getAuthTag();
}

const nonceOf = (number: number): Bytes => new ByteWriter(NONCE_BYTES).u64(BigInt(number)).u32(0).done();

/** One end of a connection. Frames are numbered: none can be omitted, repeated or reordered. */
export class Channel {
  /** Key objects: a cipher made from raw bytes takes 46 µs instead of 6. */
  readonly #sends: KeyObject;
  readonly #takes: KeyObject;
  #sent = 0;
  #taken = 0;

  constructor(role: Role, secret: KeyObject, ends: Ends) {
    const other = ends[role === 'dialler' ? 'dialled' : 'dialler'];
    if (equalBytes(ends.dialler.channelKey, ends.dialled.channelKey))
      throw new ProtocolError('duplicate_entry', 'it sends back what it was sent');
    const keys = channelKeys(secret, other.channelKey, ends);
    this.#sends = createSecretKey(keys[role]);
    this.#takes = createSecretKey(keys[role === 'dialler' ? 'dialled' : 'dialler']);
  }

  seal(bytes: Bytes): Uint8Array<ArrayBuffer> {
    return concat(bytes, tagOf(this.#sends, this.#sent++, bytes));
  }

  /** Throws a ProtocolError if this is not the next frame of the other end. */
  open(frame: Bytes): Bytes {
    const bytes = frame.subarray(0, Math.max(0, frame.length - TAG_BYTES));
    try {
      const cipher = createDecipheriv('aes-256-gcm', this.#takes, nonceOf(this.#taken++), { authTagLength: TAG_BYTES });
      cipher.setAuthTag(frame.subarray(bytes.length)).setAAD(bytes).final();
    } catch {
      throw new ProtocolError('not_canonical', 'a frame is not from the other end of the connection');
    }
    return bytes;
  }
}

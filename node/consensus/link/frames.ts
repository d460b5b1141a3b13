/**
 * Frames between neighbours, over TCP or QUIC (consensus rule 22): `u32 length | bytes`, little-endian. The first frame of each
 * side is the hello: `u32 mark | u16 version | chain_id 48 | name of the process 16 | 32 random bytes of the connection
 * | X25519 key of the connection 32 | validator 48`, the last one zero for none. The chain id is the hash of the
 * genesis document, so nodes with different ones disconnect at once. Every later frame ends with a tag of 16 bytes
 * (channel.ts); an empty frame is ignored. The second frame of each side is its identity, that of the dialler
 * first: empty, or `consensus key 1,952 | signature 3,309`.
 */
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { MAX_BODY_BYTES } from '../../../protocol/ledger/body.ts';
import { HEADER_BYTES } from '../../../protocol/ledger/header.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../../protocol/transactions/transaction.ts';
import { PROCESS_BYTES } from './process-name.ts';

const MARK = 0x4f43_5653;
export const OVERLAY_VERSION = 7;
export const CHALLENGE_BYTES = 32;
export const CHANNEL_KEY_BYTES = 32;
export const TAG_BYTES = 16;
export const HELLO_BYTES = 4 + 2 + ID_BYTES + PROCESS_BYTES + CHALLENGE_BYTES + CHANNEL_KEY_BYTES + ID_BYTES;
export const IDENTITY_BYTES = PUBLIC_KEY_BYTES + SIGNATURE_BYTES;
/** Without length and tag: a block is the longest message. */
export const MAX_FRAME_BYTES = 1 + HEADER_BYTES + MAX_BODY_BYTES;
const LENGTH_BYTES = 4;
const NOTHING = new Uint8Array(0);
/** Mark and version: what every version begins with. */
const HELLO_START = 4 + 2;

export function frameBytes(bytes: Bytes): Uint8Array<ArrayBuffer> {
  if (bytes.length > MAX_FRAME_BYTES + TAG_BYTES)
    throw new ProtocolError('too_long', 'a frame that no neighbour reads');
  return concat(new ByteWriter(LENGTH_BYTES).u32(bytes.length).done(), bytes);
}

export type Hello = {
  readonly chainId: Bytes;
  /** The name of the process. */
  readonly process: Bytes;
  /** Unique to this connection: a recorded identity is not valid on another one. */
  readonly challenge: Bytes;
  /** Also unique to this connection: the sender of later frames has its secret. */
  readonly channelKey: Bytes;
  /** The identifier of the consensus key that this side has, zero without one. */
  readonly validator: Bytes;
};

export const NO_VALIDATOR: Bytes = new Uint8Array(ID_BYTES);

export const encodeHello = (hello: Hello): Uint8Array<ArrayBuffer> =>
  new ByteWriter(HELLO_BYTES)
    .u32(MARK)
    .u16(OVERLAY_VERSION)
    .raw(hello.chainId)
    .raw(hello.process)
    .raw(hello.challenge)
    .raw(hello.channelKey)
    .raw(hello.validator)
    .done();

/** Throws a ProtocolError that says what is wrong: another program, version or chain, or this very process. */
export function readHello(bytes: Bytes, own: Pick<Hello, 'chainId' | 'process'>): Hello {
  const reader = new ByteReader(bytes);
  if (bytes.length < HELLO_START || reader.u32() !== MARK)
    throw new ProtocolError('not_canonical', 'it is not a node of this overlay');
  const version = reader.u16();
  if (version !== OVERLAY_VERSION) throw new ProtocolError('unsupported_version', `it speaks version ${version}`);
  if (bytes.length !== HELLO_BYTES) throw new ProtocolError('not_canonical', 'its hello is not valid');
  const chainId = reader.take(ID_BYTES);
  if (!equalBytes(chainId, own.chainId)) throw new ProtocolError('wrong_network', 'it is on another chain');
  const process = reader.take(PROCESS_BYTES);
  if (equalBytes(process, own.process)) throw new ProtocolError('duplicate_entry', 'it is this node itself');
  const challenge = reader.take(CHALLENGE_BYTES);
  return { chainId, process, challenge, channelKey: reader.take(CHANNEL_KEY_BYTES), validator: reader.take(ID_BYTES) };
}

/** A consensus key, and its signature over both hellos and the role of the signer. */
export type Identity = { readonly publicKey: Bytes; readonly signature: Bytes };

export const encodeIdentity = (identity: Identity | undefined): Bytes =>
  identity === undefined ? new Uint8Array(0) : concat(identity.publicKey, identity.signature);

export function decodeIdentity(bytes: Bytes): Identity | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes.length !== IDENTITY_BYTES) throw new ProtocolError('not_canonical', 'its identity is not valid');
  return { publicKey: bytes.slice(0, PUBLIC_KEY_BYTES), signature: bytes.slice(PUBLIC_KEY_BYTES) };
}

/**
 * A connection that becomes one half of a circuit (rule 24) begins otherwise: it gets the relay's hello like every
 * connection, sends `u32 mark | token 16` instead of its own, and an empty frame signals that the other half is
 * connected. Everything after that is between the two ends.
 */
export const TOKEN_BYTES = 16;
const CIRCUIT_MARK = 0x5243_5653;
const OPENING_BYTES = 4 + TOKEN_BYTES;

export const circuitOpening = (token: Bytes): Bytes =>
  frameBytes(new ByteWriter(OPENING_BYTES).u32(CIRCUIT_MARK).raw(token).done());

/** The token, if a first frame opens a circuit instead of being a hello. */
export function tokenIn(frame: Bytes): Bytes | undefined {
  if (frame.length !== OPENING_BYTES) return undefined;
  const reader = new ByteReader(frame);
  return reader.u32() === CIRCUIT_MARK ? reader.take(TOKEN_BYTES) : undefined;
}

/** Signals that the other half is connected. */
export const JOINED: Bytes = frameBytes(NOTHING);
/** What a relay sends before the bytes of the other end. */
export const BEFORE_CIRCUIT_BYTES = frameBytes(new Uint8Array(HELLO_BYTES)).length + JOINED.length;

/**
 * Assembles frames from chunks of any size. It never holds more than twice one frame and the last chunk, however small
 * the chunks are: they are copied into one buffer, which grows by doubling.
 */
export class FrameReader {
  #buffer: Uint8Array = NOTHING;
  #held = 0;
  /** The limit before the hello has arrived: the size of a hello. */
  limit = HELLO_BYTES;

  /** Throws a ProtocolError for a frame that is too long, before its bytes have arrived. */
  *push(piece: Bytes): Generator<Bytes> {
    const all = this.#held === 0 ? piece : this.#append(piece);
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    let at = 0;
    try {
      while (all.length - at >= LENGTH_BYTES) {
        const length = view.getUint32(at, true);
        if (length > this.limit) throw new ProtocolError('too_long', `a frame of ${length} bytes`);
        const end = at + LENGTH_BYTES + length;
        if (all.length < end) return;
        // A copy: a stored part of a frame must not retain the whole chunk.
        const frame = new Uint8Array(all.subarray(at + LENGTH_BYTES, end));
        at = end;
        yield frame;
      }
    } finally {
      this.#keep(all.subarray(at));
    }
  }

  #append(piece: Bytes): Bytes {
    const length = this.#held + piece.length;
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#buffer.length));
      larger.set(this.#buffer.subarray(0, this.#held));
      this.#buffer = larger;
    }
    this.#buffer.set(piece, this.#held);
    this.#held = length;
    return this.#buffer.subarray(0, length);
  }

  /** The incomplete last frame. */
  #keep(rest: Bytes): void {
    const isWhole = rest.buffer === this.#buffer.buffer && rest.byteOffset === this.#buffer.byteOffset;
    if (!isWhole) this.#buffer = rest.length === 0 ? NOTHING : new Uint8Array(rest);
    this.#held = rest.length;
  }
}

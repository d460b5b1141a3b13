/**
 * Messages between a validator without an open port and its relay (consensus rule 24), besides those of consensus,
 * blocks, roll call and echo; and the first frames of a connection that becomes one half of a circuit. It receives the
 * relay's hello like every connection, sends `u32 mark | token 16`, and an empty frame signals that the other half is
 * connected: everything after that is between the two ends.
 */
import { ByteReader, type Bytes, ByteWriter, concat } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { ROLES, type Role } from '../reach/overlay-channel.ts';
import { frameBytes, HELLO_BYTES } from '../reach/tcp-frames.ts';

export const CIRCUIT_TYPES = { record: 14, slot: 15, granted: 16, circuit: 17, invitation: 18 } as const;
export const TOKEN_BYTES = 16;
const MARK = 0x5243_5653;
const OPENING_BYTES = 4 + TOKEN_BYTES;

export type CircuitMessage =
  | { readonly type: 'record'; readonly bytes: Bytes }
  /** Request for a slot, and its grant. */
  | { readonly type: 'slot' | 'granted' }
  /** Request for a circuit to this validator. */
  | { readonly type: 'circuit'; readonly validator: Bytes }
  /** Invitation to connect to the relay with this token, in this role, for a circuit with this validator. */
  | { readonly type: 'invitation'; readonly validator: Bytes; readonly role: Role; readonly token: Bytes };

export function encodeCircuitMessage(message: CircuitMessage): Bytes {
  const type = Uint8Array.of(CIRCUIT_TYPES[message.type]);
  if (message.type === 'record') return concat(type, message.bytes);
  if (message.type === 'circuit') return concat(type, message.validator);
  if (message.type === 'invitation')
    return concat(type, message.validator, Uint8Array.of(ROLES[message.role]), message.token);
  return type;
}

/** Undefined for a message of another kind. Throws a ProtocolError for a malformed one. */
export function decodeCircuitMessage(bytes: Bytes): CircuitMessage | undefined {
  const reader = new ByteReader(bytes);
  const type = bytes.length === 0 ? 0 : reader.u8();
  if (type < CIRCUIT_TYPES.record || type > CIRCUIT_TYPES.invitation) return undefined;
  const message = read(type, reader);
  reader.end();
  return message;
}

function read(type: number, reader: ByteReader): CircuitMessage {
  if (type === CIRCUIT_TYPES.record) return { type: 'record', bytes: reader.take(reader.left) };
  if (type === CIRCUIT_TYPES.slot) return { type: 'slot' };
  if (type === CIRCUIT_TYPES.granted) return { type: 'granted' };
  const validator = reader.take(ID_BYTES);
  if (type === CIRCUIT_TYPES.circuit) return { type: 'circuit', validator };
  return { type: 'invitation', validator, role: readRole(reader), token: reader.take(TOKEN_BYTES) };
}

function readRole(reader: ByteReader): Role {
  const role = reader.u8();
  if (role === ROLES.dialler) return 'dialler';
  if (role === ROLES.dialled) return 'dialled';
  throw new ProtocolError('not_canonical', 'a role is 1 or 2');
}

/** Sent by the end of a circuit to its relay instead of a hello. */
export const circuitOpening = (token: Bytes): Bytes =>
  frameBytes(new ByteWriter(OPENING_BYTES).u32(MARK).raw(token).done());

/** The token, if a first frame opens a circuit instead of being a hello. */
export function tokenIn(frame: Bytes): Bytes | undefined {
  if (frame.length !== OPENING_BYTES) return undefined;
  const reader = new ByteReader(frame);
  return reader.u32() === MARK ? reader.take(TOKEN_BYTES) : undefined;
}

/** Signals that the other half is connected. */
export const JOINED: Bytes = frameBytes(new Uint8Array(0));
/** Bytes from a relay before those of the other end: its hello, and the signal that the other half is connected. */
export const BEFORE_CIRCUIT_BYTES = frameBytes(new Uint8Array(HELLO_BYTES)).length + JOINED.length;

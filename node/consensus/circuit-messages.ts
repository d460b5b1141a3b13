/**
 * Messages between a validator without an open port and its relay (consensus rule 24), beside those of consensus, blocks, roll call and echo; and what a connection begins with that becomes one half of a circuit. It gets the relay's hello as every connection does, sends `u32 mark | token 16`, and an empty frame
 * tells it that the other half is there: all that follows is between the two ends.
 */
import { ByteReader, type Bytes, ByteWriter, concat } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { ID_BYTES } from '../../protocol/identifier.ts';
import { ROLES, type Role } from './overlay-channel.ts';
import { frameBytes, HELLO_BYTES } from './tcp-frames.ts';

export const CIRCUIT_TYPES = { record: 14, slot: 15, granted: 16, circuit: 17, invitation: 18 } as const;
export const TOKEN_BYTES = 16;
const MARK = 0x5243_5653;
const OPENING_BYTES = 4 + TOKEN_BYTES;

export type CircuitMessage =
  | { readonly type: 'record'; readonly bytes: Bytes }
  /** A slot is asked for, and given. */
  | { readonly type: 'slot' | 'granted' }
  /** To this validator. */
  | { readonly type: 'circuit'; readonly validator: Bytes }
  /** To connect to the relay with this token, in this role, for a circuit with this validator. */
  | { readonly type: 'invitation'; readonly validator: Bytes; readonly role: Role; readonly token: Bytes };

export function encodeCircuitMessage(message: CircuitMessage): Bytes {
  const type = Uint8Array.of(CIRCUIT_TYPES[message.type]);
  if (message.type === 'record') return concat(type, message.bytes);
  if (message.type === 'circuit') return concat(type, message.validator);
  if (message.type === 'invitation')
    return concat(type, message.validator, Uint8Array.of(ROLES[message.role]), message.token);
  return type;
}

/** Undefined where it is a message of another kind. Throws a ProtocolError for one that is malformed. */
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

/** What the end of a circuit sends to its relay in the place of a hello. */
export const circuitOpening = (token: Bytes): Bytes =>
  frameBytes(new ByteWriter(OPENING_BYTES).u32(MARK).raw(token).done());

/** The token, where a first frame is no hello but the opening of a circuit. */
export function tokenIn(frame: Bytes): Bytes | undefined {
  if (frame.length !== OPENING_BYTES) return undefined;
  const reader = new ByteReader(frame);
  return reader.u32() === MARK ? reader.take(TOKEN_BYTES) : undefined;
}

/** The other half is there. */
export const JOINED: Bytes = frameBytes(new Uint8Array(0));
/** What comes from a relay before the other end: its hello, and that the other half is there. */
export const BEFORE_CIRCUIT_BYTES = frameBytes(new Uint8Array(HELLO_BYTES)).length + JOINED.length;

/**
 * Messages between a validator without an open port and its relay (consensus rule 24), besides those of consensus,
 * blocks, roll call and echo.
 */
import { ByteReader, type Bytes, concat } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { ROLES, type Role } from '../link/channel.ts';
import { TOKEN_BYTES } from '../link/frames.ts';
import { CIRCUIT_TYPES } from '../link/message-types.ts';

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

/** Messages of the roll call as bytes (consensus rule 23). */
import { ByteReader, type Bytes, ByteWriter, concat } from '../../../protocol/bytes.ts';
import { id, LABELS } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { SIGNATURE_BYTES } from '../../../protocol/transactions/transaction.ts';
import { ROLL_CALL_TYPES } from '../link/message-types.ts';
import { PROCESS_BYTES } from '../link/process-name.ts';

export const CALL_BYTES = 8;

/** The state of the calling process. One that signs, or has stopped for good, does not ask but only reports that. */
const CALLERS = ['listens', 'stopped', 'signs'] as const;
export type Caller = (typeof CALLERS)[number];

/** `call`: a random value, so that an answer belongs to one call, and replayed answers are detected. */
export type RollCallMessage =
  /** The process that asks whether its key also runs elsewhere. */
  | { readonly type: 'call'; readonly process: Bytes; readonly call: Bytes; readonly caller: Caller }
  | {
      readonly type: 'answer';
      readonly process: Bytes;
      readonly call: Bytes;
      readonly isTaken: boolean;
      readonly height: number;
    }
  /** `by`: the other process of the key, which signs. */
  | {
      readonly type: 'here';
      readonly process: Bytes;
      readonly call: Bytes;
      readonly by: Bytes;
      readonly signature: Bytes;
    };

/** The bytes that this process signs in answer to a call. */
export const hereMessage = (chainId: Bytes, process: Bytes, call: Bytes, by: Bytes): Bytes =>
  id(LABELS.rollCall, concat(chainId, process, call, by));

export function encodeRollCall(message: RollCallMessage): Bytes {
  const { type, process, call } = message;
  const head = concat(Uint8Array.of(ROLL_CALL_TYPES[type]), process, call);
  if (type === 'here') return concat(head, message.by, message.signature);
  if (type === 'call') return concat(head, Uint8Array.of(CALLERS.indexOf(message.caller)));
  return concat(
    head,
    new ByteWriter(9)
      .u8(message.isTaken ? 1 : 0)
      .height(message.height)
      .done(),
  );
}

/** Undefined for a message of another kind. Throws a ProtocolError for a malformed one. */
export function decodeRollCall(bytes: Bytes): RollCallMessage | undefined {
  const reader = new ByteReader(bytes);
  const type = bytes.length === 0 ? 0 : reader.u8();
  if (type < ROLL_CALL_TYPES.call || type > ROLL_CALL_TYPES.here) return undefined;
  const message = read(type, reader);
  reader.end();
  return message;
}

function read(type: number, reader: ByteReader): RollCallMessage {
  const [process, call] = [reader.take(PROCESS_BYTES), reader.take(CALL_BYTES)];
  if (type === ROLL_CALL_TYPES.call) return { type: 'call', process, call, caller: readCaller(reader) };
  if (type === ROLL_CALL_TYPES.answer)
    return { type: 'answer', process, call, isTaken: readFlag(reader), height: reader.height() };
  return { type: 'here', process, call, by: reader.take(PROCESS_BYTES), signature: reader.take(SIGNATURE_BYTES) };
}

function readCaller(reader: ByteReader): Caller {
  const caller = CALLERS[reader.u8()];
  if (caller === undefined) throw new ProtocolError('not_canonical', 'what a caller does is 0, 1 or 2');
  return caller;
}

function readFlag(reader: ByteReader): boolean {
  const flag = reader.u8();
  if (flag > 1) throw new ProtocolError('not_canonical', 'a flag is 0 or 1');
  return flag === 1;
}

/**
 * Payloads per recipient (module rule 4): `u8 1 | u8 count | each (u8 output number, u16 length, bytes)`, the output numbers ascending. All of it has at most
 * 2,048 bytes. Everyone can read them: they are not encrypted.
 */
import { ByteReader, type Bytes, ByteWriter } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { MAX_OUTPUTS, MAX_PAYLOAD_BYTES, PAYLOAD_KINDS } from './transaction.ts';

export type RecipientPayload = { readonly outputIndex: number; readonly bytes: Bytes };

function checkPayloads(payloads: readonly RecipientPayload[]): void {
  if (payloads.length < 1 || payloads.length > MAX_OUTPUTS)
    throw new ProtocolError('out_of_range', `1 to ${MAX_OUTPUTS} recipients have a payload`);
  let before = -1;
  for (const { outputIndex, bytes } of payloads) {
    if (outputIndex <= before || outputIndex >= MAX_OUTPUTS)
      throw new ProtocolError('not_canonical', 'output numbers ascend and are below 8');
    if (bytes.length === 0) throw new ProtocolError('out_of_range', 'a payload has at least one byte');
    before = outputIndex;
  }
}

export function encodeRecipientPayloads(payloads: readonly RecipientPayload[]): Uint8Array<ArrayBuffer> {
  checkPayloads(payloads);
  const writer = new ByteWriter(256).u8(PAYLOAD_KINDS.perRecipient).u8(payloads.length);
  for (const { outputIndex, bytes } of payloads) {
    if (bytes.length > MAX_PAYLOAD_BYTES) throw new ProtocolError('too_long', 'a payload is too long');
    writer.u8(outputIndex).u16(bytes.length).raw(bytes);
  }
  const encoded = writer.done();
  if (encoded.length > MAX_PAYLOAD_BYTES)
    throw new ProtocolError('too_long', `${encoded.length} bytes of payloads, at most ${MAX_PAYLOAD_BYTES} fit`);
  return encoded;
}

export function decodeRecipientPayloads(payload: Bytes): readonly RecipientPayload[] {
  if (payload.length > MAX_PAYLOAD_BYTES) throw new ProtocolError('too_long', 'a payload is too long');
  const reader = new ByteReader(payload);
  if (reader.u8() !== PAYLOAD_KINDS.perRecipient)
    throw new ProtocolError('unsupported_kind', 'this is no payload per recipient');
  const payloads: RecipientPayload[] = [];
  for (let left = reader.u8(); left > 0; left--)
    payloads.push({ outputIndex: reader.u8(), bytes: reader.take(reader.u16()) });
  reader.end();
  checkPayloads(payloads);
  return payloads;
}

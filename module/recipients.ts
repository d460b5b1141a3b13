/** Payloads for single recipients of a transaction, which everyone can read (module rule 4). */
import { toHex } from '../protocol/bytes.ts';
import { inField } from '../protocol/stratum/fields.ts';
import {
  decodeRecipientPayloads as decode,
  encodeRecipientPayloads as encode,
} from '../protocol/transactions/recipient-payload.ts';
import { MAX_OUTPUTS } from '../protocol/transactions/transaction.ts';
import { decimalOf, givenHex, givenList, objectIn, written } from './given.ts';

/** From `[{output_index, payload_hex}]` to the `payload_hex` of a body. */
export function encodeRecipientPayloads(payloadsJson: string): string {
  const payloads = givenList(payloadsJson, 'payloads', MAX_OUTPUTS, (json, what) => {
    const fields = objectIn(json, what);
    const payload = {
      outputIndex: decimalOf(fields, 'output_index', MAX_OUTPUTS - 1),
      bytes: fields.hex('payload_hex'),
    };
    fields.end();
    return payload;
  });
  return toHex(inField('payloads', () => encode(payloads)));
}

export function decodeRecipientPayloads(payloadHex: string): string {
  const payload = givenHex(payloadHex, 'payload');
  return written(
    inField('payload', () => decode(payload)).map(({ outputIndex, bytes }) => ({
      output_index: String(outputIndex),
      payload_hex: toHex(bytes),
    })),
  );
}

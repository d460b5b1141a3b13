/** A history event written straight from the index's bytes: a page has up to 256 of them, thousands of pages a second. */
import { CHANGE_KINDS } from '../../protocol/api/documents.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { asBuffer, BY_AT, eventPlace, PLACE_AT } from '../index/index-keys.ts';
import { OUTPUT_SOURCES } from '../ledger/effects.ts';

export function historyEventJson(value: Uint8Array): string {
  const bytes = asBuffer(value);
  const made = bytes.toString('hex', 10, 10 + ID_BYTES);
  const by = bytes[0] === 0 ? made : bytes.toString('hex', BY_AT, PLACE_AT);
  return (
    `{"finalized_height":${eventPlace(value).height},"kind":"${CHANGE_KINDS[bytes[0] as number]}",` +
    `"outpoint":{"transaction_id":"${made}","output_index":${bytes.readUInt32BE(10 + ID_BYTES)}},` +
    `"amount":"${bytes.readBigUInt64LE(2)}","source":"${OUTPUT_SOURCES[bytes[1] as number]}","transaction_id":"${by}"}`
  );
}

/** A history event written straight from the index's bytes: a page has up to 256 of them, thousands of pages a second. */
import { CHANGE_KINDS } from '../../protocol/api/documents.ts';
import { ID_BYTES } from '../../protocol/identifier.ts';
import { asBuffer, BY_AT, eventPlace, PLACE_AT } from '../index/index-keys.ts';
import { OUTPUT_SOURCES } from '../ledger/effects.ts';
import { type JsonBytes, piece } from './json-bytes.ts';

const MADE_AT = 10;
const HEIGHT = piece('{"finalized_height":');
const KINDS = CHANGE_KINDS.map((kind) => piece(`,"kind":"${kind}","outpoint":{"transaction_id":"`));
const INDEX = piece('","output_index":');
const AMOUNT = piece('},"amount":"');
const SOURCES = OUTPUT_SOURCES.map((source) => piece(`","source":"${source}","transaction_id":"`));
const END = piece('"}');

export function writeHistoryEvent(json: JsonBytes, value: Uint8Array): void {
  const bytes = asBuffer(value);
  const kind = bytes[0] as number;
  json
    .piece(HEIGHT)
    .text(String(eventPlace(value).height))
    .piece(KINDS[kind] as Uint8Array)
    .hex(bytes, MADE_AT, MADE_AT + ID_BYTES)
    .piece(INDEX)
    .text(String(bytes.readUInt32BE(MADE_AT + ID_BYTES)))
    .piece(AMOUNT)
    .text(String(bytes.readBigUInt64LE(2)))
    .piece(SOURCES[bytes[1] as number] as Uint8Array)
    // What was received names the transaction that made it, what was spent the one that spent it.
    .hex(bytes, kind === 0 ? MADE_AT : BY_AT, kind === 0 ? MADE_AT + ID_BYTES : PLACE_AT)
    .piece(END);
}

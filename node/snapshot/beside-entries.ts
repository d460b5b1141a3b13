/**
 * Data that accompanies the entries of a snapshot piece: for each entry of the key registry its public key, for each
 * validator its record. An entry is the hash of that data, which proves it. A piece is written as its entries, then
 * these in the same order, records with `u32 length` before each.
 */
import { keyAddressPayload } from '../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { SETS, type SetName } from './committed-sets.ts';
import { isPiece, type Piece } from './set-outline.ts';
import { checkPart, falsePart } from './snapshot-error.ts';

/** A record has at most 255 former keys, each with two epochs. */
const MAX_RECORD_BYTES = 300 * (PUBLIC_KEY_BYTES + 16);

/** Keys of the registry and records of validators; nothing of the other sets. */
export type ProvenPiece = {
  readonly set: SetName;
  readonly entries: readonly Bytes[];
  readonly beside: readonly Bytes[];
};

export function maxPieceBytes(set: SetName, { side }: Piece): number {
  const beside = set === 'keys' ? PUBLIC_KEY_BYTES : set === 'validators' ? 4 + MAX_RECORD_BYTES : 0;
  return side.count * (SETS[set].layout.entryBytes + beside);
}

export function splitEntries(set: SetName, bytes: Bytes): Bytes[] {
  const { entryBytes } = SETS[set].layout;
  return Array.from({ length: bytes.length / entryBytes }, (_, i) =>
    bytes.subarray(i * entryBytes, (i + 1) * entryBytes),
  );
}

/** `beside` returns the data of an entry. */
export function encodePiece(set: SetName, entries: Bytes, beside: (entry: Bytes) => Bytes): Bytes {
  if (set !== 'keys' && set !== 'validators') return entries;
  const writer = new ByteWriter(2 * entries.length).raw(entries);
  for (const entry of splitEntries(set, entries)) {
    const bytes = beside(entry);
    if (set === 'validators') writer.u32(bytes.length);
    writer.raw(bytes);
  }
  return writer.done();
}

/** Throws if the bytes are not the piece. */
export function readPiece(set: SetName, piece: Piece, bytes: Bytes): ProvenPiece {
  return checkPart(`a piece of ${set}`, () => {
    const { layout } = SETS[set];
    const reader = new ByteReader(bytes);
    const all = reader.view(piece.side.count * layout.entryBytes);
    if (!isPiece(layout, piece, all)) throw falsePart(`a piece of ${set} is not the one that was proven`);
    const entries = splitEntries(set, all);
    const beside = entries.flatMap((entry) => besideOf(set, entry, reader));
    reader.end();
    return { set, entries, beside };
  });
}

function besideOf(set: SetName, entry: Bytes, reader: ByteReader): Bytes[] {
  if (set === 'keys') {
    const key = reader.take(PUBLIC_KEY_BYTES);
    if (!equalBytes(keyAddressPayload(key).subarray(1), entry))
      throw falsePart('a public key is not the registered one');
    return [key];
  }
  if (set !== 'validators') return [];
  const record = reader.take(reader.u32());
  if (!equalBytes(id(LABELS.validatorRecord, record), entry.subarray(ID_BYTES)))
    throw falsePart('the record of a validator is another');
  return [record];
}

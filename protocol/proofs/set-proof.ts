/**
 * Proofs of the committed sets (ledger rule 34): the leaf of the trie that contains an entry, or would, and the other
 * sides up to the root, which commits the sum and the number of all entries. The root is part of the state whose hash
 * is the state root of a cut, so a reader that trusts a cut needs to trust nothing else.
 *
 * Bytes: `u16 sides | sides from the root down, each digest 48 | u64 sum | u64 count | u16 leaf length | leaf`.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import { ByteReader, type Bytes, ByteWriter, equalBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';

export type SetSide = { readonly digest: Bytes; readonly sum: bigint; readonly count: number };
export type SetPath = { readonly path: readonly SetSide[]; readonly leaf: Bytes };

export type SetShape = {
  /** Which of the roots in the state it has (ledger rule 33). */
  readonly place: number;
  readonly keyBytes: number;
  readonly entryBytes: number;
  /** Offset of the u64 that the set sums up; undefined if it has no sum. */
  readonly sumAt: number | undefined;
};

const OUTPOINT_BYTES = ID_BYTES + 4;
const POSITION_SUM_AT = ID_BYTES + 1 + ID_BYTES + 2 * ADDRESS_PAYLOAD_BYTES;
export const SET_SHAPES = {
  /** Outpoint, address, u64 atoms, u8 source. */
  outputs: {
    place: 0,
    keyBytes: OUTPOINT_BYTES,
    entryBytes: OUTPOINT_BYTES + ADDRESS_PAYLOAD_BYTES + 8 + 1,
    sumAt: OUTPOINT_BYTES + ADDRESS_PAYLOAD_BYTES,
  },
  /** Identifier, digest of the record. */
  validators: { place: 2, keyBytes: ID_BYTES, entryBytes: 2 * ID_BYTES, sumAt: undefined },
  /** As ledger rule 60 says; the principal is added up. */
  positions: { place: 3, keyBytes: ID_BYTES, entryBytes: POSITION_SUM_AT + 5 * 8, sumAt: POSITION_SUM_AT },
} as const satisfies Record<string, SetShape>;

const LEAF_ENTRIES = 16;
const MAX_SIDES = 8 * ID_BYTES;
const SIDE_BYTES = ID_BYTES + 8 + 8;
/** Chain id, height, previous cut and timestamp come before the roots. */
const ROOTS_OFFSET = ID_BYTES + 8 + ID_BYTES + 8;

const readSide = (reader: ByteReader): SetSide => ({
  digest: reader.take(ID_BYTES),
  sum: reader.u64(),
  count: reader.height(),
});
const writeSide = (writer: ByteWriter, side: SetSide): ByteWriter =>
  writer.raw(side.digest).u64(side.sum).height(side.count);

const isLeaf = ({ entryBytes }: SetShape, length: number): boolean =>
  length % entryBytes === 0 && length <= LEAF_ENTRIES * entryBytes;

export function encodeSetProof({ path, leaf }: SetPath): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(2048).u16(path.length);
  for (const side of path) writeSide(writer, side);
  return writer.u16(leaf.length).raw(leaf).done();
}

export function decodeSetProof(shape: SetShape, bytes: Bytes): SetPath {
  const reader = new ByteReader(bytes);
  const sides = reader.u16();
  if (sides > MAX_SIDES) throw new ProtocolError('too_long', `a path has at most ${MAX_SIDES} sides`);
  const path: SetSide[] = [];
  for (let i = 0; i < sides; i++) path.push(readSide(reader));
  const length = reader.u16();
  if (!isLeaf(shape, length)) throw new ProtocolError('out_of_range', `a leaf of ${length} bytes`);
  const leaf = reader.take(length);
  reader.end();
  return { path, leaf };
}

/** The root of a set inside a state, once the state was found to have the hash that a cut commits. */
export function setRoot({ place }: SetShape, state: Bytes, stateRoot: Bytes): SetSide {
  if (!equalBytes(id(LABELS.state, state), stateRoot))
    throw new ProtocolError('not_canonical', 'the state is not the one of the cut');
  const reader = new ByteReader(state);
  reader.take(ROOTS_OFFSET + place * SIDE_BYTES);
  return readSide(reader);
}

function leafSide({ entryBytes, sumAt }: SetShape, leaf: Bytes): SetSide {
  if (leaf.length === 0) return { digest: new Uint8Array(ID_BYTES), sum: 0n, count: 0 };
  const view = new DataView(leaf.buffer, leaf.byteOffset, leaf.byteLength);
  let sum = 0n;
  if (sumAt !== undefined)
    for (let at = 0; at < leaf.length; at += entryBytes) sum += view.getBigUint64(at + sumAt, true);
  return { digest: id(LABELS.stateLeaf, leaf), sum, count: leaf.length / entryBytes };
}

function above(left: SetSide, right: SetSide): SetSide {
  const bytes = writeSide(writeSide(new ByteWriter(128), left), right).done();
  return { digest: id(LABELS.stateNode, bytes), sum: left.sum + right.sum, count: left.count + right.count };
}

export type SetVerdict = { readonly ok: true; readonly entry: Bytes | undefined } | { readonly ok: false };

/** The set's entry under the key: an entry, proven absence, or an invalid proof. */
export function verifySetProof(shape: SetShape, root: SetSide, key: Bytes, { path, leaf }: SetPath): SetVerdict {
  const { keyBytes, entryBytes } = shape;
  if (key.length !== keyBytes || !isLeaf(shape, leaf.length) || path.length > MAX_SIDES) return { ok: false };
  let side = leafSide(shape, leaf);
  for (let depth = path.length - 1; depth >= 0; depth--) {
    const other = path[depth] as SetSide;
    const right = (((key[depth >> 3] as number) >> (7 - (depth & 7))) & 1) === 1;
    side = right ? above(other, side) : above(side, other);
  }
  if (!equalBytes(side.digest, root.digest) || side.sum !== root.sum || side.count !== root.count) return { ok: false };
  for (let at = 0; at < leaf.length; at += entryBytes) {
    const entry = leaf.subarray(at, at + entryBytes);
    if (equalBytes(entry.subarray(0, keyBytes), key)) return { ok: true, entry };
  }
  return { ok: true, entry: undefined };
}

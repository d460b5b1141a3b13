/**
 * Proofs of the output set (ledger rule 34), as POST /v1/proofs/utxos hands them out: the leaf of the trie that holds an output,
 * or would hold it, and the other sides up to the root, which commits the sum and the number of all outputs. The root
 * stands in the state whose hash is the state root of a cut, so a reader who trusts a cut needs to trust nothing else.
 *
 * Bytes: `u16 sides | sides from the root down, each digest 48 | u64 sum | u64 count | u16 leaf length | leaf`.
 */
import { ADDRESS_PAYLOAD_BYTES } from './address.ts';
import { ByteReader, type Bytes, ByteWriter, equalBytes } from './bytes.ts';
import { ProtocolError } from './errors.ts';
import { ID_BYTES, id, LABELS } from './identifier.ts';
import type { Outpoint, Output } from './transaction.ts';

export type OutputSetSide = { readonly digest: Bytes; readonly sum: bigint; readonly count: number };
export type OutputSetPath = { readonly path: readonly OutputSetSide[]; readonly leaf: Bytes };

const LEAF_ENTRIES = 16;
const KEY_BYTES = ID_BYTES + 4;
/** Outpoint, address, u64 atoms, u8 source. */
const ENTRY_BYTES = KEY_BYTES + ADDRESS_PAYLOAD_BYTES + 8 + 1;
const MAX_SIDES = 8 * ID_BYTES;
/** Chain id, height, previous cut and timestamp come before the output-set root. */
const ROOT_OFFSET = ID_BYTES + 8 + ID_BYTES + 8;

const readSide = (reader: ByteReader): OutputSetSide => ({
  digest: reader.take(ID_BYTES),
  sum: reader.u64(),
  count: reader.height(),
});
const writeSide = (writer: ByteWriter, side: OutputSetSide): ByteWriter =>
  writer.raw(side.digest).u64(side.sum).height(side.count);

export function encodeOutputProof({ path, leaf }: OutputSetPath): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(2048).u16(path.length);
  for (const side of path) writeSide(writer, side);
  return writer.u16(leaf.length).raw(leaf).done();
}

export function decodeOutputProof(bytes: Bytes): OutputSetPath {
  const reader = new ByteReader(bytes);
  const sides = reader.u16();
  if (sides > MAX_SIDES) throw new ProtocolError('too_long', `a path has at most ${MAX_SIDES} sides`);
  const path: OutputSetSide[] = [];
  for (let i = 0; i < sides; i++) path.push(readSide(reader));
  const length = reader.u16();
  if (length % ENTRY_BYTES !== 0 || length > LEAF_ENTRIES * ENTRY_BYTES)
    throw new ProtocolError('out_of_range', `a leaf of ${length} bytes`);
  const leaf = reader.take(length);
  reader.end();
  return { path, leaf };
}

/** The output-set root inside a state, once the state was found to have the hash that a cut commits. */
export function outputSetRoot(state: Bytes, stateRoot: Bytes): OutputSetSide {
  if (!equalBytes(id(LABELS.state, state), stateRoot))
    throw new ProtocolError('not_canonical', 'the state is not the one of the cut');
  const reader = new ByteReader(state);
  reader.take(ROOT_OFFSET);
  return readSide(reader);
}

const entryView = (entry: Bytes): DataView => new DataView(entry.buffer, entry.byteOffset, entry.byteLength);
const atomsOf = (entry: Bytes): bigint => entryView(entry).getBigUint64(KEY_BYTES + ADDRESS_PAYLOAD_BYTES, true);

function leafSide(leaf: Bytes): OutputSetSide {
  if (leaf.length === 0) return { digest: new Uint8Array(ID_BYTES), sum: 0n, count: 0 };
  let sum = 0n;
  for (let at = 0; at < leaf.length; at += ENTRY_BYTES) sum += atomsOf(leaf.subarray(at, at + ENTRY_BYTES));
  return { digest: id(LABELS.stateLeaf, leaf), sum, count: leaf.length / ENTRY_BYTES };
}

function above(left: OutputSetSide, right: OutputSetSide): OutputSetSide {
  const bytes = writeSide(writeSide(new ByteWriter(128), left), right).done();
  return { digest: id(LABELS.stateNode, bytes), sum: left.sum + right.sum, count: left.count + right.count };
}

export type OutputVerdict = { readonly ok: true; readonly output: Output | undefined } | { readonly ok: false };

/** What the set with this root holds under the outpoint: an output, proven nothing, or no proof at all. */
export function verifyOutputProof(
  root: OutputSetSide,
  outpoint: Outpoint,
  { path, leaf }: OutputSetPath,
): OutputVerdict {
  if (leaf.length % ENTRY_BYTES !== 0 || leaf.length > LEAF_ENTRIES * ENTRY_BYTES || path.length > MAX_SIDES)
    return { ok: false };
  const key = new Uint8Array(KEY_BYTES);
  key.set(outpoint.transactionId, 0);
  new DataView(key.buffer).setUint32(ID_BYTES, outpoint.outputIndex);
  let side = leafSide(leaf);
  for (let depth = path.length - 1; depth >= 0; depth--) {
    const other = path[depth] as OutputSetSide;
    const right = (((key[depth >> 3] as number) >> (7 - (depth & 7))) & 1) === 1;
    side = right ? above(other, side) : above(side, other);
  }
  if (!equalBytes(side.digest, root.digest) || side.sum !== root.sum || side.count !== root.count) return { ok: false };
  for (let at = 0; at < leaf.length; at += ENTRY_BYTES) {
    const entry = leaf.subarray(at, at + ENTRY_BYTES);
    if (equalBytes(entry.subarray(0, KEY_BYTES), key))
      return {
        ok: true,
        output: {
          address: Uint8Array.from(entry.subarray(KEY_BYTES, KEY_BYTES + ADDRESS_PAYLOAD_BYTES)),
          amount: atomsOf(entry),
        },
      };
  }
  return { ok: true, output: undefined };
}

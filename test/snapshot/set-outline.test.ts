/** Outlines and pieces of committed sets against the trie that the ledger keeps: what is read is what was put in, and nothing else passes. */
import { hash as nodeHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { OUTPUT_LAYOUT } from '../../node/ledger/output-set.ts';
import { EMPTY_TRIE, Trie, type TrieRoot } from '../../node/ledger/trie.ts';
import { SetWalk, type Subtree, wholeSet } from '../../node/ledger/trie-walk.ts';
import {
  encodeOutline,
  isPiece,
  MAX_PIECES,
  type Piece,
  readOutline,
  sideOfEntries,
} from '../../node/snapshot/set-outline.ts';
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';

useNativeSha384();

const { entryBytes, keyBytes } = OUTPUT_LAYOUT;
const random = randomOf(seed);

/** Outputs of distinct transactions, in order. */
function entriesOf(size: number): Buffer {
  const entries = Array.from({ length: size }, () => {
    const entry = Buffer.alloc(entryBytes);
    entry.set(nodeHash('sha384', `${random(2 ** 31)} ${random(2 ** 31)}`, 'buffer'));
    entry.writeBigUInt64LE(BigInt(random(1_000_000)), entryBytes - 9);
    return entry;
  });
  return Buffer.concat(entries.sort(compareBytes));
}

function setOf(entries: Buffer): { root: TrieRoot; walk: SetWalk } {
  const nodes = new Map<string, Uint8Array>();
  const name = (key: Bytes) => Buffer.from(key).toString('latin1');
  const trie = new Trie(OUTPUT_LAYOUT, (key) => nodes.get(name(key)));
  const changes = [];
  for (let at = 0; at < entries.length; at += entryBytes)
    changes.push({ key: entries.subarray(at, at + keyBytes), entry: entries.subarray(at, at + entryBytes) });
  const update = trie.update(EMPTY_TRIE, changes);
  for (const operation of update.operations)
    if (operation.type === 'put') nodes.set(name(operation.key), operation.value);
  return { root: update.root, walk: new SetWalk(OUTPUT_LAYOUT, (key) => nodes.get(name(key))) };
}

const SIZES = [
  0,
  1,
  16,
  17,
  63,
  64,
  65,
  200,
  900,
  ...Array.from({ length: count({ quick: 2, full: 6, deep: 60 }) }, () => random(3_000)),
];

test('a set is read from its outline and pieces as it was, in order, and each piece proves itself', () => {
  for (const size of SIZES)
    for (const limit of [16, 64, 1_000]) {
      const entries = entriesOf(size);
      const { root, walk } = setOf(entries);
      expect(sideOfEntries(OUTPUT_LAYOUT, entries, 0)).toEqual(root);
      const steps = [...walk.subtrees(wholeSet(root), limit)];
      const places = steps.filter((step): step is Subtree => step !== 'node' && step.side.count > 0);
      const pieces = readOutline(encodeOutline(steps), root, limit);
      expect(pieces.length).toBe(places.length);
      const read = places.map((place, i) => {
        const bytes = walk.entries(place);
        expect(bytes.length).toBeLessThanOrEqual(limit * entryBytes);
        expect(isPiece(OUTPUT_LAYOUT, pieces[i] as Piece, bytes)).toBe(true);
        return bytes;
      });
      expect(Buffer.concat(read).equals(entries)).toBe(true);
    }
});

test('one bit changed in an outline or a piece, an entry more, less or out of order: none passes', () => {
  const { root, walk } = setOf(entriesOf(700));
  const steps = [...walk.subtrees(wholeSet(root), 64)];
  const outline = encodeOutline(steps);
  const pieces = readOutline(outline, root, 64);
  for (let bit = 0; bit < 8 * outline.length; bit += 1 + random(40)) {
    const other = Buffer.from(outline);
    other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
    expect(() => readOutline(other, root, 64), `bit ${bit}`).toThrow();
  }
  expect(() => readOutline(outline.subarray(0, -1), root, 64)).toThrow();
  expect(() => readOutline(Buffer.concat([outline, outline]), root, 64)).toThrow();
  // The same set divided elsewhere.
  expect(() => readOutline(outline, root, 32)).toThrow(/too large/);
  expect(() => readOutline(outline, root, 700)).toThrow(/small enough/);

  const [place] = steps.filter((step): step is Subtree => step !== 'node');
  const [piece] = pieces as [Piece];
  const bytes = Buffer.from(walk.entries(place as Subtree));
  const passes = (other: Buffer) => isPiece(OUTPUT_LAYOUT, piece, other);
  expect(passes(bytes)).toBe(true);
  for (let bit = 0; bit < 8 * bytes.length; bit += 1 + random(200)) {
    const other = Buffer.from(bytes);
    other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
    expect(passes(other), `bit ${bit}`).toBe(false);
  }
  const [first, second] = [bytes.subarray(0, entryBytes), bytes.subarray(entryBytes, 2 * entryBytes)];
  const rest = bytes.subarray(2 * entryBytes);
  expect(passes(Buffer.concat([second, first, rest]))).toBe(false);
  expect(passes(Buffer.concat([first, rest]))).toBe(false);
  expect(passes(Buffer.concat([first, first, second, rest]))).toBe(false);
  expect(passes(bytes.subarray(1))).toBe(false);
  expect(passes(Buffer.concat([bytes, Buffer.alloc(1)]))).toBe(false);
});

test('a set of one piece must have the sum, the count and the digest of its root; a piece without entries is the empty one', () => {
  const { root } = setOf(entriesOf(40));
  const outline = encodeOutline([{ side: root }]);
  expect(readOutline(outline, root, 64).length).toBe(1);
  expect(() => readOutline(outline, { ...root, sum: root.sum + 1n }, 64)).toThrow(/does not lead/);
  expect(() => readOutline(outline, { ...root, count: root.count + 1 }, 64)).toThrow(/does not lead/);
  const nothing = { ...EMPTY_TRIE, sum: 1n };
  expect(() => readOutline(encodeOutline([{ side: nothing }]), nothing, 64)).toThrow(/not empty/);
  const same = Buffer.concat(Array.from({ length: 40 }, () => entriesOf(1).fill(7)));
  expect(() => sideOfEntries(OUTPUT_LAYOUT, same, 0)).toThrow(/same key/);
});

test('an outline of too many pieces, or one that only goes deeper, is refused before it is hashed to its end', () => {
  expect(() => readOutline(Buffer.alloc(100_000), EMPTY_TRIE, 64)).toThrow(/no tree/);
  const piece = Buffer.alloc(65);
  piece[0] = 1;
  piece.writeBigUInt64LE(1n, 57);
  let tree = piece;
  // Twice as many as there may be, one entry each.
  for (let pieces = 1; pieces <= MAX_PIECES; pieces *= 2) tree = Buffer.concat([Buffer.alloc(1), tree, tree]);
  expect(() => readOutline(tree, EMPTY_TRIE, 1)).toThrow(`more than ${MAX_PIECES} pieces`);
});

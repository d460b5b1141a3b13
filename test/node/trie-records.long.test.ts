/**
 * The committed sets as they lie in the store, four levels of nodes in a record: against a set that is made anew from the rule for every question
 * (trie-reference.ts), after changes that were dropped, from cold caches, with keys that agree in many bits; and records that were damaged.
 */
import { createHash, hash as nodeHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { EMPTY_TRIE, type EntryLayout, Trie, type TrieChange, type TrieRoot } from '../../node/ledger/trie.ts';
import type { BatchOp } from '../../node/store/batch.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { count, seed } from '../level.ts';
import { type Random, randomOf } from '../random.ts';
import { TrieReference } from './trie-reference.ts';

useNativeSha384();

const LAYOUT: EntryLayout = {
  prefix: 0x61,
  entryBytes: 56,
  keyBytes: 48,
  amount: (entry) => new DataView(entry.buffer, entry.byteOffset).getBigUint64(48, true),
};
/** A trie forgets everything when it holds more nodes than this. */
const LIMITS = [undefined, { nodes: 20, leaves: 3 }, { nodes: 0, leaves: 0 }];
const name = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

const plain = (bytes: Uint8Array | undefined): Uint8Array | undefined => bytes && new Uint8Array(bytes);

class Store {
  readonly records = new Map<string, Uint8Array>();

  write(operations: readonly BatchOp[]): void {
    for (const operation of operations)
      if (operation.type === 'put') this.records.set(name(operation.key), operation.value);
      else this.records.delete(name(operation.key));
  }

  /** Of everything that it holds. */
  digest(): string {
    const hash = createHash('sha384');
    for (const [key, value] of [...this.records].sort(([a], [b]) => (a < b ? -1 : 1)))
      hash.update(`${key.length} ${value.length} ${key}`, 'latin1').update(value);
    return hash.digest('hex');
  }

  open = (limits?: { nodes: number; leaves: number }): Trie =>
    new Trie(LAYOUT, (key) => this.records.get(name(key)), limits);
}

/** Some agree with others in so many bits that the tree is deep there, and crosses records. */
function entryOf(random: Random): Uint8Array {
  const entry = Buffer.concat([nodeHash('sha384', `${random(2 ** 31)}`, 'buffer'), Buffer.alloc(8)]);
  const kind = random(4);
  if (kind === 0) entry.fill(0x5a, 0, 1 + random(3));
  if (kind === 1) entry.fill(0xff, 0, 6);
  // Up to the largest sum that a figure can have.
  entry.writeBigUInt64LE(random(50) === 0 ? 2n ** 52n - BigInt(random(9)) : BigInt(random(2 ** 31)), 48);
  return entry;
}

test('random changes: the roots and proofs are those of the rule, and the store holds what a set made at once would', () => {
  const random = randomOf(seed);
  for (let round = 0; round < count({ quick: 2, full: 5, deep: 300 }); round++) {
    const [store, limits] = [new Store(), LIMITS[round % LIMITS.length]];
    let trie = store.open(limits);
    let root: TrieRoot = EMPTY_TRIE;
    const inside = new Map<string, Uint8Array>();
    for (let step = 0; step < 25; step++) {
      const changes: TrieChange[] = [];
      const after = new Map(inside);
      for (const [key, entry] of inside)
        if (random(12) < (random(6) === 0 || step % 9 === 8 ? 12 : 1)) {
          const replaces = random(3) === 0;
          const changed = Uint8Array.from(entry);
          changed[48] = random(256);
          changes.push({ key: entry.subarray(0, 48), ...(replaces && { entry: changed, replaces }) });
          if (replaces) after.set(key, changed);
          else after.delete(key);
        }
      for (let i = random(step % 5 === 0 ? 300 : 40); i > 0; i--) {
        const entry = entryOf(random);
        const key = name(entry.subarray(0, 48));
        if (after.has(key) || inside.has(key)) continue;
        after.set(key, entry);
        changes.push({ key: entry.subarray(0, 48), entry });
      }
      const update = trie.update(root, changes);
      // A proposal that was not decided: nothing of it may stay.
      if (random(4) === 0) continue;
      const reference = new TrieReference(LAYOUT, after.values());
      expect(update.root).toEqual(reference.root());
      store.write(update.operations);
      const before = [...inside.values()];
      for (const entry of before.slice(0, 5))
        expect(plain(trie.get(root, entry.subarray(0, 48))), 'readers of the cut before').toEqual(plain(entry));
      // Killed before it could settle, or not.
      if (random(4) === 0) trie = store.open(limits);
      else trie.committed(update);
      root = update.root;
      inside.clear();
      for (const [key, entry] of after) inside.set(key, entry);
      for (const entry of [...after.values()]
        .sort(() => random(3) - 1)
        .slice(0, 4)
        .concat([entryOf(random)])) {
        const path = trie.path(root, entry.subarray(0, 48));
        expect({ ...path, leaf: plain(path.leaf) }).toEqual(reference.path(entry));
      }
    }
    const made = new Store();
    made.write(
      made.open().update(
        EMPTY_TRIE,
        [...inside.values()].map((entry) => ({ key: entry.subarray(0, 48), entry })),
      ).operations,
    );
    expect(store.digest()).toBe(made.digest());
  }
});

/** Nodes for ever and hardly a leaf, so that a leaf of before could come back; memory that is forgotten whole, so that places get other numbers. */
const AHEAD_LIMITS = [
  { nodes: 100_000, leaves: 3 },
  { nodes: 40, leaves: 8 },
  { nodes: 90, leaves: 1_000 },
  { nodes: 150, leaves: 1_000 },
];

test('what was read ahead is kept only where nothing has changed since it was asked for', async () => {
  const random = randomOf(seed);
  for (let round = 0; round < count({ quick: 4, full: 8, deep: 300 }); round++) {
    const [store, limits] = [new Store(), AHEAD_LIMITS[round % AHEAD_LIMITS.length]];
    const trie = store.open(limits);
    let root: TrieRoot = EMPTY_TRIE;
    let inside: Uint8Array[] = [];
    // Answers come when they come, and show the store as it was when it was asked or as it is.
    let answers: (() => void)[] = [];
    const some = async (): Promise<void> => {
      const now = answers.filter(() => random(2) === 0);
      answers = answers.filter((answer) => !now.includes(answer));
      for (const answer of now) answer();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const ahead = (keys: readonly Uint8Array[]): void =>
      void trie.readAhead(root, keys, (places) => {
        const read = () => places.map((place) => store.records.get(name(place)));
        const early = random(2) === 0 ? read() : undefined;
        return new Promise((resolve) => answers.push(() => resolve(early ?? read())));
      });
    for (let step = 0; step < 30; step++) {
      const leaving = inside.filter(() => random(10) === 0);
      const coming = Array.from({ length: random(80) }, () => entryOf(random)).filter(
        (entry) => !inside.some((other) => Buffer.compare(other.subarray(0, 48), entry.subarray(0, 48)) === 0),
      );
      ahead([...leaving, ...coming].map((entry) => entry.subarray(0, 48)));
      await some();
      const update = trie.update(root, [
        ...leaving.map((entry) => ({ key: entry.subarray(0, 48) })),
        ...coming.map((entry) => ({ key: entry.subarray(0, 48), entry })),
      ]);
      await some();
      ahead(inside.filter(() => random(5) === 0).map((entry) => entry.subarray(0, 48)));
      if (random(4) === 0) continue;
      store.write(update.operations);
      await some();
      trie.committed(update);
      root = update.root;
      inside = [...inside.filter((entry) => !leaving.includes(entry)), ...coming];
      expect(root).toEqual(new TrieReference(LAYOUT, inside).root());
      await some();
      for (const entry of inside.filter(() => random(20) === 0))
        expect(plain(trie.get(root, entry.subarray(0, 48)))).toEqual(plain(entry));
    }
  }
});

test('an answer of before a cut, of one that is being written, and of before memory was forgotten is dropped', async () => {
  const random = randomOf(seed);
  const entries = Array.from({ length: 1_000 }, () =>
    Buffer.concat([nodeHash('sha384', `${random(2 ** 31)}`, 'buffer'), Buffer.alloc(8)]),
  ).sort(Buffer.compare);
  const keys = entries.map((entry) => entry.subarray(0, 48));
  const [first, last] = [keys[0] as Buffer, keys[999] as Buffer];
  const made = () => {
    const store = new Store();
    const { root, operations } = store.open().update(
      EMPTY_TRIE,
      entries.map((entry) => ({ key: entry.subarray(0, 48), entry })),
    );
    store.write(operations);
    return { store, root };
  };
  /** Asks; the answer is what the store holds now, and comes when the function is called. */
  const asked = (trie: Trie, root: TrieRoot, store: Store, wanted: readonly Buffer[]) => {
    let come = (): void => undefined;
    const done = trie.readAhead(root, wanted, (places) => {
      const leaves = places.map((place) => store.records.get(name(place)));
      return new Promise((resolve) => {
        come = () => resolve(leaves);
      });
    });
    return async () => {
      come();
      await done;
    };
  };
  for (const moment of ['before', 'within']) {
    const { store, root } = made();
    const trie = store.open({ nodes: 1_000, leaves: 1 });
    const early = asked(trie, root, store, [first]);
    const update = trie.update(root, [{ key: first }]);
    store.write(update.operations);
    trie.get(root, last);
    const late = asked(trie, root, store, [first]);
    if (moment === 'before') {
      trie.committed(update);
      trie.get(update.root, last);
      await early();
      expect(trie.get(update.root, first)).toBeUndefined();
    } else {
      await late();
      expect(plain(trie.get(root, first))).toEqual(plain(entries[0]));
    }
  }
  const { store, root } = made();
  const trie = store.open({ nodes: 60, leaves: 1_000 });
  const answer = asked(trie, root, store, keys.toReversed());
  trie.get(root, keys[500] as Buffer);
  await answer();
  for (const i of [500, 490, 510, 480, 520, 470, 530])
    expect(plain(trie.get(root, keys[i] as Buffer))).toEqual(plain(entries[i]));
});

test('a path of 384 levels: one record for four of them, and nothing is left when it goes', () => {
  const store = new Store();
  const trie = store.open();
  const entries = Array.from({ length: 17 }, (_, i) => {
    const entry = new Uint8Array(56).fill(0xee, 0, 47);
    entry[47] = i;
    return entry;
  });
  const update = trie.update(
    EMPTY_TRIE,
    entries.map((entry) => ({ key: entry.subarray(0, 48), entry })),
  );
  expect(update.root).toEqual(new TrieReference(LAYOUT, entries).root());
  store.write(update.operations);
  trie.committed(update);
  // Nodes of depths 0 to 379 or so, and the leaves below.
  expect(store.records.size).toBeLessThan(384 / 4 + 5);
  const cold = store.open();
  const last = entries[16] as Uint8Array;
  expect(plain(cold.get(update.root, last.subarray(0, 48)))).toEqual(last);
  const away = cold.update(
    update.root,
    entries.slice(1).map((entry) => ({ key: entry.subarray(0, 48) })),
  );
  store.write(away.operations);
  expect(away.root).toEqual(new TrieReference(LAYOUT, entries.slice(0, 1)).root());
  expect(store.records.size).toBe(1);
});

test('a record that was changed, cut short, or lost is noticed', () => {
  const random = randomOf(seed);
  const store = new Store();
  const entries = Array.from({ length: 2_000 }, () => entryOf(random));
  const { root, operations } = store.open().update(
    EMPTY_TRIE,
    entries.map((entry) => ({ key: entry.subarray(0, 48), entry })),
  );
  store.write(operations);
  const readAll = () => {
    const cold = store.open();
    for (const entry of entries) cold.get(root, entry.subarray(0, 48));
  };
  readAll();
  // Records of nodes: the others are leaves, whose length is that of whole entries.
  const records = [...store.records].filter(([, bytes]) => bytes.length % 64 === 2);
  expect(records.length).toBeGreaterThan(20);
  for (const [key, bytes] of records) {
    const spoiled = Uint8Array.from(bytes);
    const at = random(3) === 0 ? random(2) : random(bytes.length);
    spoiled[at] = (spoiled[at] as number) ^ (1 << random(8));
    for (const bad of [spoiled, bytes.subarray(0, random(bytes.length)), Buffer.concat([bytes, Buffer.alloc(64)])]) {
      store.records.set(key, bad);
      expect(readAll).toThrow(/state record [0-9a-f]+ is damaged/);
    }
    store.records.delete(key);
    expect(readAll).toThrow(/state record [0-9a-f]+ is missing/);
    store.records.set(key, bytes);
  }
  readAll();
});

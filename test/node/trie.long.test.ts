/** The committed sets (ledger rule 34): the root follows from the contents, sums and counts are right, proofs prove. */
import { expect, test } from 'vitest';
import type { UnspentOutput } from '../../node/full-node.ts';
import { findOutput, OUTPUT_LAYOUT, outpointKey, proveOutput } from '../../node/ledger/output-set.ts';
import { EMPTY_TRIE, Trie, type TrieChange, type TrieRoot } from '../../node/ledger/trie.ts';
import { verifyOutputProof } from '../../protocol/proofs/output-proof.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { adding, MemoryTrie, name, outputOf, removing, SMALL, started } from './memory-trie.ts';

test('the root depends on the contents alone, and the store holds nothing else', () => {
  const random = randomOf(seed);
  for (let round = 0; round < count({ full: 20, deep: 200 }); round++) {
    const grown = new MemoryTrie();
    const forgetful = new MemoryTrie(SMALL);
    const inside = new Map<number, UnspentOutput>();
    let next = 0;
    for (let step = 0; step < 30; step++) {
      const changes: TrieChange[] = [];
      for (let i = random(40); i > 0; i--) {
        const output = outputOf(next >> 2, next & 3);
        inside.set(next++, output);
        changes.push(adding(output));
      }
      // Now and then nearly everything leaves, so that nodes shrink back to leaves.
      const leaving = random(5) === 0 ? Math.max(0, inside.size - 10) : random(20);
      const fresh = new Set(changes.map(({ key }) => name(key)));
      for (const [i, output] of [...inside].sort(() => random(3) - 1).slice(0, leaving)) {
        if (fresh.has(name(outpointKey(output.outpoint)))) continue;
        inside.delete(i);
        changes.push(removing(output));
      }
      grown.apply(changes);
      forgetful.apply(changes);
      expect(forgetful.root).toEqual(grown.root);
      let sum = 0n;
      for (const { amount } of inside.values()) sum += amount;
      expect([grown.root.sum, grown.root.count]).toEqual([sum, inside.size]);
    }
    const built = new MemoryTrie();
    built.apply([...inside.values()].map(adding));
    expect(built.root).toEqual(grown.root);
    expect([...grown.nodes.keys()].sort()).toEqual([...built.nodes.keys()].sort());
    expect(forgetful.nodes).toEqual(grown.nodes);
    for (const { trie, root } of [grown, forgetful])
      for (const output of inside.values()) expect(findOutput(trie, root, output.outpoint)).toEqual(output);
    grown.apply([...inside.values()].map(removing));
    expect(grown.root).toEqual(EMPTY_TRIE);
    expect(grown.nodes.size).toBe(0);
  }
});

test('while an update is on its way into the store, readers see what was before, whatever the store shows', () => {
  const random = randomOf(seed);
  for (let round = 0; round < 20; round++) {
    const { trie, nodes, root, apply } = started(300, round % 2 === 0 ? undefined : SMALL);
    const leaving = Array.from({ length: 300 }, (_, i) => i).filter(() => random(10) < round % 10);
    const coming = Array.from({ length: random(200) }, (_, i) => 300 + i);
    const update = trie.update(root, [
      ...leaving.map((i) => removing(outputOf(i))),
      ...coming.map((i) => adding(outputOf(i))),
    ]);
    apply(update);
    for (let i = 0; i < 300; i++) expect(findOutput(trie, root, outputOf(i).outpoint)).toEqual(outputOf(i));
    for (const i of coming) expect(findOutput(trie, root, outputOf(i).outpoint)).toBeUndefined();
    trie.committed(update);
    // From the caches, and from the store alone.
    for (const reader of [trie, new Trie(OUTPUT_LAYOUT, (key) => nodes.get(name(key)))]) {
      for (const i of coming) expect(findOutput(reader, update.root, outputOf(i).outpoint)).toEqual(outputOf(i));
      for (const i of leaving) expect(findOutput(reader, update.root, outputOf(i).outpoint)).toBeUndefined();
    }
  }
});

test('keys that agree in more bits than a place has in one number', () => {
  const alike = Array.from({ length: 40 }, (_, i): UnspentOutput => {
    const output = outputOf(i);
    const transactionId = Uint8Array.from(output.outpoint.transactionId).fill(0xa5, 0, 6);
    return { ...output, outpoint: { transactionId, outputIndex: 0 } };
  });
  const trie = new MemoryTrie();
  trie.apply(alike.map(adding));
  for (const output of alike) expect(findOutput(trie.trie, trie.root, output.outpoint)).toEqual(output);
  trie.apply(alike.slice(10).map(removing));
  expect(trie.nodes.size).toBe(1);
  for (const output of alike.slice(0, 10)) expect(findOutput(trie.trie, trie.root, output.outpoint)).toEqual(output);
});

test('a proof stays what it is when the set changes, and only the last update made can be committed', () => {
  const trie = new MemoryTrie();
  trie.apply(Array.from({ length: 300 }, (_, i) => adding(outputOf(i))));
  const { outpoint } = outputOf(17);
  const { path, leaf, root } = proveOutput(trie.trie, trie.root, outpoint);
  trie.apply(Array.from({ length: 100 }, (_, i) => removing(outputOf(100 + i))));
  expect(verifyOutputProof(root, outpoint, { path, leaf })).toMatchObject({ ok: true });
  const dropped = trie.trie.update(trie.root, [adding(outputOf(1_000))]);
  trie.apply([adding(outputOf(2_000))]);
  expect(() => trie.trie.committed(dropped)).toThrow(/not the last/);
  expect(findOutput(trie.trie, trie.root, outputOf(1_000).outpoint)).toBeUndefined();
  expect(findOutput(trie.trie, trie.root, outputOf(2_000).outpoint)).toEqual(outputOf(2_000));
});

test('adding what is there and removing what is not are faults', () => {
  const trie = new MemoryTrie();
  trie.apply([adding(outputOf(1))]);
  expect(() => trie.apply([adding(outputOf(1))])).toThrow(/added twice/);
  expect(() => trie.apply([removing(outputOf(2))])).toThrow(/removed without/);
});

test('a proof shows an output or its absence, and no changed proof verifies', () => {
  const trie = new MemoryTrie();
  const outputs = Array.from({ length: 300 }, (_, i) => outputOf(i));
  trie.apply(outputs.map(adding));
  const there = outputs[17] as UnspentOutput;
  const { path, leaf, root } = proveOutput(trie.trie, trie.root, there.outpoint);
  expect(verifyOutputProof(root, there.outpoint, { path, leaf })).toEqual({
    ok: true,
    output: { address: there.address, amount: there.amount },
  });
  const missing = outputOf(5_000).outpoint;
  const absent = proveOutput(trie.trie, trie.root, missing);
  expect(verifyOutputProof(root, missing, absent)).toEqual({ ok: true, output: undefined });
  const [first, ...rest] = path as [(typeof path)[number], ...typeof path];
  const denied = { ok: false };
  expect(verifyOutputProof(root, there.outpoint, { path: rest, leaf })).toEqual(denied);
  expect(verifyOutputProof(root, there.outpoint, { path: [{ ...first, sum: first.sum + 1n }, ...rest], leaf })).toEqual(
    denied,
  );
  expect(verifyOutputProof(root, there.outpoint, { path, leaf: leaf.slice(110) })).toEqual(denied);
  expect(verifyOutputProof({ ...root, sum: root.sum + 1n }, there.outpoint, { path, leaf })).toEqual(denied);
});

test('a leaf in memory keeps its own bytes there and no others', () => {
  const { trie, nodes, root, apply } = started(300);
  const kept = (at: TrieRoot, i: number) => trie.path(at, outpointKey(outputOf(i).outpoint)).leaf;
  const isOwn = (leaf: Uint8Array) => leaf.buffer.byteLength <= 2 * leaf.length;
  // From a store whose answers are parts of something larger, as small buffers are; the first read gives what was read.
  for (const [key, value] of nodes) nodes.set(key, Buffer.concat([value]));
  for (const i of [1, 1]) kept(root, i);
  expect(isOwn(kept(root, 1))).toBe(true);
  const update = trie.update(root, [removing(outputOf(2)), ...[300, 301, 302].map((i) => adding(outputOf(i)))]);
  apply(update);
  trie.committed(update);
  for (const i of [2, 300, 301, 302]) expect(isOwn(kept(update.root, i))).toBe(true);
});

/** The committed sets (ledger rule 34) across their store: what an update does not change is still there, and readers see one state. trie.long.test.ts has the rest. */
import { expect, test } from 'vitest';
import { findOutput, OUTPUT_LAYOUT } from '../../node/ledger/output-set.ts';
import { Trie } from '../../node/ledger/trie.ts';
import { adding, name, outputOf, removing, SMALL, started } from './memory-trie.ts';

/** Enough for several records, one below another. */
const OUTPUTS = 600;

test.each([
  ['ample', undefined],
  ['little', SMALL],
])('with %s memory an update leaves all else in the store, and is not seen before it is there', (_, limits) => {
  const { trie, nodes, root, apply } = started(OUTPUTS, limits);
  const all = Array.from({ length: OUTPUTS + 1 }, (_, i) => outputOf(i));
  const update = trie.update(root, [removing(outputOf(7)), adding(outputOf(OUTPUTS))]);
  apply(update);
  const read = (reader: Trie, at: typeof root): number[] =>
    all.flatMap(({ outpoint }, i) => (findOutput(reader, at, outpoint) === undefined ? [i] : []));
  expect(read(trie, root)).toEqual([OUTPUTS]);
  trie.committed(update);
  // From memory, and as after a restart.
  for (const reader of [trie, new Trie(OUTPUT_LAYOUT, (key) => nodes.get(name(key)), limits)])
    expect(read(reader, update.root)).toEqual([7]);
});

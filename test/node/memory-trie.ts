/** A set of outputs over a store in memory, and the ways into that store. */
import { hash as nodeHash } from 'node:crypto';
import type { UnspentOutput } from '../../node/full-node.ts';
import { OUTPUT_LAYOUT, outpointKey, outputEntry } from '../../node/ledger/output-set.ts';
import {
  EMPTY_TRIE,
  Trie,
  type TrieChange,
  type TrieLimits,
  type TrieRoot,
  type TrieUpdate,
} from '../../node/ledger/trie.ts';
import type { Bytes } from '../../protocol/bytes.ts';

export class MemoryTrie {
  readonly nodes = new Map<string, Uint8Array>();
  readonly trie: Trie;
  root: TrieRoot = EMPTY_TRIE;

  constructor(limits?: TrieLimits) {
    this.trie = new Trie(OUTPUT_LAYOUT, (key) => this.nodes.get(name(key)), limits);
  }

  apply(changes: readonly TrieChange[]): void {
    const update = this.trie.update(this.root, changes);
    for (const operation of update.operations)
      if (operation.type === 'put') this.nodes.set(name(operation.key), operation.value);
      else this.nodes.delete(name(operation.key));
    this.trie.committed(update);
    this.root = update.root;
  }
}

/** So little that every few reads the trie forgets what it has loaded. */
export const SMALL: TrieLimits = { nodes: 5, leaves: 3 };

export const name = (key: Bytes): string => Buffer.from(key).toString('latin1');

export const outputOf = (i: number, index = 0): UnspentOutput => ({
  outpoint: { transactionId: new Uint8Array(nodeHash('sha384', `output ${i}`, 'buffer')), outputIndex: index },
  address: new Uint8Array(49).fill(i % 251, 1),
  amount: BigInt(i + 1),
  source: 'regular',
});

export const adding = (output: UnspentOutput): TrieChange => ({
  key: outpointKey(output.outpoint),
  entry: outputEntry(output),
});
export const removing = (output: UnspentOutput): TrieChange => ({ key: outpointKey(output.outpoint) });

/** A trie whose caches are cold, as after a restart, and the way into its store. */
export function started(outputs: number, limits?: TrieLimits) {
  const { nodes, root } = (() => {
    const filled = new MemoryTrie();
    filled.apply(Array.from({ length: outputs }, (_, i) => adding(outputOf(i))));
    return filled;
  })();
  const apply = ({ operations }: TrieUpdate) => {
    for (const operation of operations)
      if (operation.type === 'put') nodes.set(name(operation.key), operation.value);
      else nodes.delete(name(operation.key));
  };
  return { nodes, root, apply, trie: new Trie(OUTPUT_LAYOUT, (key) => nodes.get(name(key)), limits) };
}

/**
 * A committed set written down from ledger rule 34 alone: the whole tree is made anew for every question, with nothing kept and nothing stored. For tests of
 * the trie, which keeps and stores.
 */
import type { EntryLayout, TrieRoot } from '../../node/ledger/trie.ts';
import { type Bytes, compareBytes, concat } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';

type Path = { leaf: Uint8Array; siblings: { right: boolean; side: TrieRoot }[] };

const u64 = (value: bigint): Uint8Array => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
};
const sideBytes = ({ digest, sum, count }: TrieRoot): Uint8Array => concat(digest, u64(sum), u64(BigInt(count)));
const bit = (key: Bytes, depth: number): number => ((key[depth >> 3] as number) >> (7 - (depth & 7))) & 1;

export class TrieReference {
  readonly #layout: EntryLayout;
  readonly #sorted: Uint8Array[];

  constructor(layout: EntryLayout, entries: Iterable<Uint8Array>) {
    this.#layout = layout;
    this.#sorted = [...entries].sort(compareBytes);
  }

  root(): TrieRoot {
    return this.#side(this.#sorted, 0);
  }

  #side(entries: readonly Uint8Array[], depth: number): TrieRoot {
    if (entries.length === 0) return { digest: new Uint8Array(48), sum: 0n, count: 0 };
    let sum = 0n;
    for (const entry of entries) sum += this.#layout.amount(entry);
    const bytes = entries.length <= 16 ? concat(...entries) : concat(...this.#halves(entries, depth).map(sideBytes));
    const label = entries.length <= 16 ? 'SVC_STATE_LEAF_V1' : 'SVC_STATE_NODE_V1';
    return { digest: id(label, bytes), sum, count: entries.length };
  }

  #halves(entries: readonly Uint8Array[], depth: number): TrieRoot[] {
    return [0, 1].map((side) =>
      this.#side(
        entries.filter((entry) => bit(entry, depth) === side),
        depth + 1,
      ),
    );
  }

  path(key: Bytes): Path {
    const siblings: Path['siblings'] = [];
    let entries = this.#sorted;
    for (let depth = 0; entries.length > 16; depth++) {
      const own = bit(key, depth);
      siblings.push({ right: own === 1, side: this.#halves(entries, depth)[1 - own] as TrieRoot });
      entries = entries.filter((entry) => bit(entry, depth) === own);
    }
    return { leaf: concat(...entries), siblings };
  }
}

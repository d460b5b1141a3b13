/**
 * Which transactions a template carries (specification, "Template transaction selection"; ledger rule 54): by fee rate; within one rate first those
 * submitted to this node, then relayed ones; a relayed one counts as own once it is one cut interval older than the oldest own
 * transaction still waiting; a random draw within each group. Transactions that a waiting block carries already are left to it.
 */
import type { Entry, RateGroup } from './mempool.ts';

export type SelectionRules = {
  readonly maxTransactions: number;
  /** Bytes of the body that are free for transactions; each takes 4 more than its wire form. */
  readonly maxBytes: number;
  readonly cutMillis: number;
  readonly oldestOwnMillis: number | undefined;
  /** An integer from 0 to below `limit`. */
  random(limit: number): number;
};

const LENGTH_BYTES = 4;
/** One input, no output, referenced: nothing smaller exists, so less room than this is no room. */
const SMALLEST = 3_400;

/** `kept` are taken already; the rest of the room is filled. */
export function selectTransactions(
  groups: Iterable<RateGroup>,
  rules: SelectionRules,
  kept: readonly Entry[] = [],
): Entry[] {
  const chosen = [...kept];
  const taken = new Set(kept);
  let room = rules.maxBytes;
  for (const entry of kept) room -= entry.wire.length + LENGTH_BYTES;
  for (const group of groups)
    for (const tier of tiersOf(group, rules)) {
      for (const entry of drawn(tier, rules.random)) {
        if (chosen.length >= rules.maxTransactions || room < SMALLEST) return chosen;
        const bytes = entry.wire.length + LENGTH_BYTES;
        if (bytes > room || taken.has(entry)) continue;
        chosen.push(entry);
        room -= bytes;
      }
    }
  return chosen;
}

function tiersOf(group: RateGroup, { oldestOwnMillis, cutMillis }: SelectionRules): [Entry[], Entry[]] {
  const first: Entry[] = [];
  const second: Entry[] = [];
  for (const entry of group.own) if (entry.carriers.size === 0) first.push(entry);
  for (const entry of group.relayed) {
    if (entry.carriers.size > 0) continue;
    const aged = oldestOwnMillis !== undefined && entry.seenMillis + cutMillis <= oldestOwnMillis;
    (aged ? first : second).push(entry);
  }
  return [first, second];
}

/** Every order is equally likely; only as much of it is made as is taken. */
function* drawn(entries: Entry[], random: (limit: number) => number): Iterable<Entry> {
  for (let i = 0; i < entries.length; i++) {
    const j = i + random(entries.length - i);
    const entry = entries[j] as Entry;
    entries[j] = entries[i] as Entry;
    yield entry;
  }
}

/**
 * Selects the transactions of a template (specification, "Template transaction selection"; ledger rule 54): by fee
 * rate; within one rate first those submitted to this node, then relayed ones; a relayed one counts as own once it is
 * one cut interval older than the oldest own transaction still waiting; a random draw within each group. Transactions
 * in a waiting block are skipped. The mempool keeps the groups, so that only selected transactions are visited, not all
 * waiting ones.
 */
import { MIN_TRANSACTION_BYTES } from '../../protocol/ledger/body.ts';
import type { DrawSet } from './draw-set.ts';
import type { Entry, RateGroup } from './mempool.ts';

export type SelectionRules = {
  readonly maxTransactions: number;
  /** Bytes of the body that are free for transactions; each takes 4 more than its wire form. */
  readonly maxBytes: number;
  readonly maxSignatures: number;
  /** Whether a transaction submitted to this node waits. If none does, no relayed one comes before another of its rate. */
  readonly ownWaits: boolean;
  /** Heartbeats and evidence: they come first in a part of the room, whatever they pay. */
  readonly reserved?: RateGroup;
  /** An integer from 0 to below `limit`. */
  random(limit: number): number;
};

const LENGTH_BYTES = 4;
/** This part of a body is for heartbeats and evidence first. */
const RESERVED_PART = 4;
/** Less room than this is no room. */
const SMALLEST = LENGTH_BYTES + MIN_TRANSACTION_BYTES;
/**
 * After this many consecutive transactions that do not fit, the body counts as full: the remaining space is small, and
 * a search through all waiting transactions could take long.
 */
const MAX_MISFITS = 256;

/** What fits of `kept` is taken first; the rest of the room is filled. */
export function selectTransactions(
  groups: Iterable<RateGroup>,
  rules: SelectionRules,
  kept: readonly Entry[] = [],
): Entry[] {
  const chosen: Entry[] = [];
  const taken = new Set<Entry>();
  let room = rules.maxBytes;
  let signatures = rules.maxSignatures;
  const take = (entry: Entry, most = room): boolean => {
    const bytes = entry.wire.length + LENGTH_BYTES;
    if (bytes > most || entry.read.signatures > signatures) return false;
    chosen.push(entry);
    taken.add(entry);
    room -= bytes;
    signatures -= entry.read.signatures;
    return true;
  };
  for (const entry of kept) take(entry);
  const unreserved = room - Math.min(room, rules.maxBytes / RESERVED_PART);
  for (const entry of rules.reserved === undefined ? [] : drawn([rules.reserved.first], rules.random))
    if (!taken.has(entry) && chosen.length < rules.maxTransactions) take(entry, room - unreserved);
  let misfits = 0;
  for (const { first, second } of groups)
    for (const tier of rules.ownWaits ? [[first], [second]] : [[first, second]])
      for (const entry of drawn(tier, rules.random)) {
        const isFull = room < SMALLEST || signatures < 1 || misfits >= MAX_MISFITS;
        if (chosen.length >= rules.maxTransactions || isFull) return chosen;
        if (!taken.has(entry)) misfits = take(entry) ? 0 : misfits + 1;
      }
  return chosen;
}

/** A lazy shuffle: every order of all members is equally likely, but only the taken part is computed. */
function* drawn(sets: readonly DrawSet<Entry>[], random: (limit: number) => number): Iterable<Entry> {
  const drawings = sets.map((set) => set.drawing());
  let left = 0;
  for (const set of sets) left += set.size;
  for (; left > 0; left--) {
    let k = random(left);
    for (const drawing of drawings) {
      if (k < drawing.left()) {
        yield drawing.take(k);
        break;
      }
      k -= drawing.left();
    }
  }
}

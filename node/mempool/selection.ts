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

/** `kept` are taken already; the rest of the room is filled. */
export function selectTransactions(
  groups: Iterable<RateGroup>,
  rules: SelectionRules,
  kept: readonly Entry[] = [],
): Entry[] {
  const chosen = [...kept];
  const taken = new Set(kept);
  let misfits = 0;
  let room = rules.maxBytes;
  for (const entry of kept) room -= entry.wire.length + LENGTH_BYTES;
  let reservedRoom = Math.min(room, rules.maxBytes / RESERVED_PART);
  for (const entry of rules.reserved === undefined ? [] : drawn([rules.reserved.first], rules.random)) {
    const bytes = entry.wire.length + LENGTH_BYTES;
    if (taken.has(entry) || bytes > reservedRoom || chosen.length >= rules.maxTransactions) continue;
    chosen.push(entry);
    taken.add(entry);
    reservedRoom -= bytes;
    room -= bytes;
  }
  for (const { first, second } of groups)
    for (const tier of rules.ownWaits ? [[first], [second]] : [[first, second]])
      for (const entry of drawn(tier, rules.random)) {
        if (chosen.length >= rules.maxTransactions || room < SMALLEST || misfits >= MAX_MISFITS) return chosen;
        const bytes = entry.wire.length + LENGTH_BYTES;
        if (taken.has(entry)) continue;
        if (bytes > room) {
          misfits++;
          continue;
        }
        misfits = 0;
        chosen.push(entry);
        room -= bytes;
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

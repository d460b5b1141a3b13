/**
 * How far the ledger is: as the pool claims it, as the miner's node has it, and as the pool's own jobs show it. Anything that
 * prevents the check of rewards is reported, because a pool could cause it with a false height.
 */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import type { WallClock } from '../../runtime/clock/clock.ts';
import type { Terms, Watching } from './pool-reads.ts';

export type Heights = {
  /** The height of the pool's books as it claims it, bounded by what is possible: with a false height it could delay any list. */
  readonly said: number | undefined;
  /** Height of the miner's node; undefined if it does not follow the chain. */
  readonly known: number | undefined;
  /** The lower of the pool's height and the node's, even if the node is behind. */
  readonly least: number | undefined;
  /** Of the newest job that the pool gave; undefined before the first. */
  readonly worked: number | undefined;
  /**
   * The pool is so far ahead of the node that one of them is wrong. Data that the node does not have yet is not false.
   */
  readonly isApart: boolean;
};

type Node = NonNullable<BooksSources['node']>;
/** `lapse`: why the node's height cannot be relied on. */
type NodeHeight = { readonly height: number | undefined; readonly lapse: string | undefined };

/** Cuts by which the pool may be ahead of the miner's node. */
const MAX_AHEAD = 240;
/**
 * Books further behind the ledger than this (an hour) do not show their newest lists; if it lasts, that counts as
 * hiding them.
 */
const MAX_BEHIND = 1_440;
/** A node that follows the chain has a newer cut than this, ten minutes. */
const OLD_MILLIS = 600_000;
/**
 * Without a node: books that advance by fewer cuts than this within an hour count as stopped. No network is so slow.
 */
const STILL_MILLIS = 3_600_000;
const STILL_CUTS = 36;
const STILL = 'by the pool’s own word its books have stood still for over an hour';
const UNSAID = 'the pool does not say how far its books are';
const NODE_SILENT = 'this miner’s node does not answer';
const NODE_BEHIND = 'this miner’s node is behind the pool, or the clock of this machine is ahead';
const NODE_APART =
  'the pool is further before this miner’s node than it can be: the node is behind, or the pool makes it up';

/**
 * Why nothing of the last hour can be in the books, according to the miner's node or the pool's own jobs; undefined if
 * it can.
 */
export function booksBehind({ said, known, worked, isApart }: Heights): string | undefined {
  if (said === undefined) return undefined;
  if ((known ?? 0) - said > MAX_BEHIND)
    return `the books of the pool are ${(known ?? 0) - said} cuts behind the ledger`;
  // If the pool is far ahead of the node, `said` is capped at what the node allows.
  if (!isApart && (worked ?? 0) - said > MAX_BEHIND)
    return `the books of the pool are ${(worked ?? 0) - said} cuts behind its own jobs`;
  return undefined;
}

const saidBy = ({ height }: Terms): number | undefined => (isWhole(height) ? height : undefined);

/**
 * A node that does not answer is not the pool's fault. One below the pool's height whose newest cut is old is behind
 * itself; or this machine's clock is ahead.
 */
export async function readNodeHeight(terms: Terms, node: Node, wallMillis: WallClock): Promise<NodeHeight> {
  const asked = { addresses: [terms.address], after_height: 0, limit: 1 };
  const height = await node
    .addressChanges(asked)
    .then(({ indexed_height: indexed }) => indexed)
    .catch(() => undefined);
  if (!isWhole(height)) return { height, lapse: NODE_SILENT };
  if ((saidBy(terms) ?? 0) <= height) return { height, lapse: undefined };
  const newest = await node.cuts({ limit: 1 }).catch(() => undefined);
  const at = newest?.cuts[0]?.finalized_at_millis;
  const isOld = isWhole(at) && wallMillis() - at > OLD_MILLIS;
  return { height, lapse: newest === undefined ? NODE_SILENT : isOld ? NODE_BEHIND : undefined };
}

export class ChainHeights {
  readonly #watching: Pick<Watching, 'note' | 'nowMillis'>;
  #isHeightMissed = false;
  /** Why rewards are not checked, or not all of them. */
  lapse: string | undefined;
  /** The pool's last height, and when it last increased. */
  #moved: { readonly said: number; readonly atMillis: number } | undefined;
  /** Work on an old cut finds no block, so the heights in the pool's own jobs are a lower bound for its books. */
  #worked: number | undefined;

  constructor(watching: Pick<Watching, 'note' | 'nowMillis'>) {
    this.#watching = watching;
  }

  worked(height: number): void {
    if (isWhole(height)) this.#worked = Math.max(this.#worked ?? 0, height);
  }

  /** `node`: what the miner's own says; null without one. */
  of(terms: Terms, node: NodeHeight | null): Heights {
    const said = saidBy(terms);
    if (said === undefined && !this.#isHeightMissed) this.#watching.note(UNSAID, {});
    this.#isHeightMissed ||= said === undefined;
    const read = node?.height;
    const lapse = node === null ? this.#stillness(said) : node.lapse;
    const known = isWhole(read) && lapse === undefined ? read : undefined;
    const isApart = known !== undefined && (said ?? 0) > known + MAX_AHEAD;
    const fields = { node_height: read, pool_height: said };
    this.#note(lapse, node === null ? 'nothing new can be looked for' : 'rewards are not looked for', fields);
    if (lapse === undefined) this.#note(isApart ? NODE_APART : undefined, 'rewards are looked for by the node', fields);
    const both = [said, read].filter(isWhole);
    return {
      known,
      isApart,
      worked: this.#worked,
      least: both.length === 0 ? undefined : Math.min(...both),
      said: said === undefined || known === undefined ? said : Math.min(said, known + MAX_AHEAD),
    };
  }

  /** Books that never advance would owe no list and no receipt. */
  #stillness(said: number | undefined): string | undefined {
    const now = this.#watching.nowMillis();
    const before = this.#moved;
    if (said === undefined) return UNSAID;
    if (before === undefined || Math.abs(said - before.said) >= STILL_CUTS) this.#moved = { said, atMillis: now };
    return now - (this.#moved?.atMillis ?? now) >= STILL_MILLIS ? STILL : undefined;
  }

  #note(lapse: string | undefined, message: string, heights: Readonly<Record<string, unknown>>): void {
    if (lapse !== undefined && lapse !== this.lapse) this.#watching.note(message, { why: lapse, ...heights });
    this.lapse = lapse;
  }
}

const NOMINAL_MILLIS = 86_400_000 / INTERVAL_CUTS;
/** Measured over so many of the newest cuts. */
const SPAN_CUTS = 240;
const KEPT_MILLIS = 3_600_000;

/** The time per cut, from the timestamps of the ledger's cuts; without a node, the target of the rules. */
export class ChainPace {
  readonly #watching: Pick<Watching, 'node' | 'nowMillis'>;
  #measured: { readonly cutMillis: number; readonly atMillis: number } | undefined;

  constructor(watching: Pick<Watching, 'node' | 'nowMillis'>) {
    this.#watching = watching;
  }

  async cutMillis(): Promise<number> {
    const { node, nowMillis } = this.#watching;
    const now = nowMillis();
    if (node !== null && (this.#measured === undefined || now - this.#measured.atMillis > KEPT_MILLIS)) {
      const cutMillis = await measurePace(node).catch(() => undefined);
      if (cutMillis !== undefined) this.#measured = { cutMillis, atMillis: now };
    }
    return this.#measured?.cutMillis ?? NOMINAL_MILLIS;
  }
}

async function measurePace(node: Node): Promise<number | undefined> {
  const newest = (await node.cuts({ limit: 1 })).cuts[0];
  if (newest === undefined || !isWhole(newest.height) || newest.height <= SPAN_CUTS) return undefined;
  const before = newest.height - SPAN_CUTS;
  const older = (await node.cuts({ before: before + 1, limit: 1 })).cuts[0];
  const [to, from] = [newest.finalized_at_millis, older?.finalized_at_millis];
  if (older?.height !== before || !isWhole(to) || !isWhole(from) || to <= from) return undefined;
  return (to - from) / SPAN_CUTS;
}

/**
 * The height of the ledger, claimed by the pool and read from the miner's node. Anything that prevents the check of
 * rewards is reported, because a pool could cause it with a false height.
 */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import { indexedHeight } from './due-rewards.ts';
import type { Terms } from './pool-reads.ts';

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

export type ChainHeightsDependencies = {
  readonly node: BooksSources['node'];
  readonly note: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly wallMillis: () => number;
  /** Never goes back. */
  readonly nowMillis: () => number;
};

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

export class ChainHeights {
  readonly #dependencies: ChainHeightsDependencies;
  #isHeightMissed = false;
  #lapse: string | undefined;
  /** The pool's last height, and when it last increased. */
  #moved: { readonly said: number; readonly atMillis: number } | undefined;

  /** Work on an old cut finds no block, so the heights in the pool's own jobs are a lower bound for its books. */
  #worked: number | undefined;

  constructor(dependencies: ChainHeightsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Why rewards are not checked, or not all of them. */
  get lapse(): string | undefined {
    return this.#lapse;
  }

  worked(height: number): void {
    if (isWhole(height)) this.#worked = Math.max(this.#worked ?? 0, height);
  }

  async of({ address, height }: Terms): Promise<Heights> {
    const { node, note } = this.#dependencies;
    const said = isWhole(height) ? height : undefined;
    if (said === undefined && !this.#isHeightMissed) note(UNSAID, {});
    this.#isHeightMissed ||= said === undefined;
    // A node that does not answer is not the pool's fault.
    const read = node === null ? undefined : await indexedHeight(address, node).catch(() => undefined);
    const lapse = node === null ? this.#stillness(said) : await this.#lapseOf(node, said, read);
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
    const now = this.#dependencies.nowMillis();
    const before = this.#moved;
    if (said === undefined) return UNSAID;
    if (before === undefined || Math.abs(said - before.said) >= STILL_CUTS) this.#moved = { said, atMillis: now };
    return now - (this.#moved?.atMillis ?? now) >= STILL_MILLIS ? STILL : undefined;
  }

  /** A node below the pool's height whose newest cut is old is behind itself; or this machine's clock is ahead. */
  async #lapseOf(
    node: NonNullable<BooksSources['node']>,
    said: number | undefined,
    known: number | undefined,
  ): Promise<string | undefined> {
    if (!isWhole(known)) return NODE_SILENT;
    if ((said ?? 0) <= known) return undefined;
    const newest = await node.cuts({ limit: 1 }).catch(() => undefined);
    if (newest === undefined) return NODE_SILENT;
    const at = newest.cuts[0]?.finalized_at_millis;
    return isWhole(at) && this.#dependencies.wallMillis() - at > OLD_MILLIS ? NODE_BEHIND : undefined;
  }

  #note(lapse: string | undefined, message: string, heights: Readonly<Record<string, unknown>>): void {
    if (lapse !== undefined && lapse !== this.#lapse) this.#dependencies.note(message, { why: lapse, ...heights });
    this.#lapse = lapse;
  }
}

/**
 * The height of the ledger, as the pool claims it and by the miner's node. Anything that prevents the check of rewards is reported, because a pool could cause it with a false
 * height.
 */
import type { BooksSources } from '../../protocol/books-evidence.ts';
import { isWhole } from '../../protocol/books-slice.ts';
import { indexedHeight } from './due-rewards.ts';
import type { Terms } from './pool-reads.ts';

export type Heights = {
  /** The height of the pool's books as it claims it, bounded by what is possible: with a false height it could delay any list. */
  readonly said: number | undefined;
  /** Of the miner's node; undefined where that does not follow the chain. */
  readonly known: number | undefined;
  /** The lower of what the pool says and what the node has read, though it may be behind. */
  readonly least: number | undefined;
  /** Of the newest job that the pool gave; undefined before the first. */
  readonly worked: number | undefined;
  /** The pool is so far before the node that one of them is wrong. Something that the node does not have yet is not false. */
  readonly isApart: boolean;
};

/** Cuts by which the pool may be before the miner's node. */
const MAX_AHEAD = 240;
/** Books that are further behind the ledger than this, an hour, show none of their newest lists: for long, that counts as hiding them. */
const MAX_BEHIND = 1_440;
/** A node that follows the chain has a newer cut than this, ten minutes. */
const OLD_MILLIS = 600_000;
/** Without a node: books that took in fewer cuts than this within an hour count as stopped. No network is so slow. */
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

/** Why nothing of the last hour can be in the books, by the miner's node or by the pool's own jobs; undefined where it can. */
export function booksBehind({ said, known, worked, isApart }: Heights): string | undefined {
  if (said === undefined) return undefined;
  if ((known ?? 0) - said > MAX_BEHIND)
    return `the books of the pool are ${(known ?? 0) - said} cuts behind the ledger`;
  // Where the pool is far before the node, `said` is the most that the node allows.
  if (!isApart && (worked ?? 0) - said > MAX_BEHIND)
    return `the books of the pool are ${(worked ?? 0) - said} cuts behind its own jobs`;
  return undefined;
}

export class ChainHeights {
  readonly #dependencies: ChainHeightsDependencies;
  #isHeightMissed = false;
  #lapse: string | undefined;
  /** What the pool said, when it last had gone on. */
  #moved: { readonly said: number; readonly atMillis: number } | undefined;

  /** Work on an old cut finds no block, so what the pool's own jobs name is a height that its books cannot creep behind. */
  #worked: number | undefined;

  constructor(dependencies: ChainHeightsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Why rewards are not looked for, or not all of them, while that is so. */
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
      ...{ known, isApart, worked: this.#worked, least: both.length === 0 ? undefined : Math.min(...both) },
      said: said === undefined || known === undefined ? said : Math.min(said, known + MAX_AHEAD),
    };
  }

  /** A pool whose books seem never to go on owes nobody a list or a receipt. */
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

/**
 * Checks a pool's terms (books rule 3): impossible terms, terms that change for a slice that had begun, a fee that rose or
 * a window that changed without notice, and slices too short to be checked.
 */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import { heldWindowFee, sliceCutsOf, termsFault } from '../../protocol/books/books-terms.ts';
import type { Heights } from './chain-heights.ts';
import { ChainPace } from './chain-pace.ts';
import type { Terms } from './pool-reads.ts';
import type { Suspicions } from './suspicions.ts';
import { TermNotices } from './term-notices.ts';
import { LASTING_MILLIS, TermsMemory } from './terms-memory.ts';

export type TermsWatchDependencies = {
  readonly pool: BooksSources['pool'];
  readonly node: BooksSources['node'];
  readonly alarm: (
    kind: 'terms_false' | 'terms_changed' | 'fee_unannounced' | 'window_unannounced' | 'slices_short',
    what: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void;
  /** Never goes back. */
  readonly nowMillis: () => number;
};

/** Lists that a miner judges in one round, which comes every minute. */
export const LISTS_A_ROUND = 4;
/** Slices that are shorter close faster than a miner can judge their lists. */
const SHORT_MILLIS = 60_000 / LISTS_A_ROUND;
/** How long the backlog must last before short slices are reported as the reason. */
const BEHIND_MILLIS = 600_000;
/** How long terms of slices that are not open may be published. */
const OPENING_MILLIS = 30 * 60_000;

export class TermsWatch {
  readonly #dependencies: TermsWatchDependencies;
  readonly #suspicions: Suspicions;
  readonly #pace: ChainPace;
  readonly #memory = new TermsMemory();
  readonly #notices = { fee: new TermNotices('fee'), window: new TermNotices('window') };
  /** The lowest `window_fee_from` that the pool ever named. */
  #windowFeeFrom: number | undefined;
  /** Since when it names a later one, or none. */
  #laterMillis: number | undefined;
  /** Since when there is a backlog. */
  #behindMillis: number | undefined;

  constructor(dependencies: TermsWatchDependencies, suspicions: Suspicions) {
    this.#dependencies = dependencies;
    this.#suspicions = suspicions;
    this.#pace = new ChainPace(dependencies.node, dependencies.nowMillis);
  }

  /** Impossible terms could defer every list, or make comparisons meaningless. */
  noteFault({ terms }: Terms, { said, known, isApart }: Heights): void {
    const isUnknown = isApart || (said === undefined && known === undefined);
    const newest = isUnknown ? undefined : Math.max(said ?? 0, known ?? 0);
    const fault = termsFault(terms, newest);
    // A new pool has none until its node has answered. If it lasts, the pool hides its lists.
    if (said === undefined && terms.pplns.length + terms.solo.length === 0)
      throw new Error('the pool has no terms yet');
    // A pool that was away opens all slices of that time before it says that it has read their cuts.
    const apartMillis = fault === 'not_open' ? OPENING_MILLIS : undefined;
    const isSure = this.#suspicions.isSure('terms', fault !== undefined, apartMillis);
    if (fault === undefined || (fault === 'not_open' && !isSure)) return;
    if (isSure) this.#dependencies.alarm('terms_false', fault, { reason: fault });
    if (fault !== 'not_open') throw new Error(`the pool’s terms cannot be: ${fault}`);
  }

  /** Short slices that rarely have lists are no problem, and a miner that was offline is behind for another reason. */
  async noteShort({ terms }: Terms, isBehind: boolean): Promise<void> {
    const now = this.#dependencies.nowMillis();
    this.#behindMillis = isBehind ? (this.#behindMillis ?? now) : undefined;
    if (this.#behindMillis === undefined || now - this.#behindMillis < BEHIND_MILLIS) return;
    const cuts = sliceCutsOf(terms);
    const millis = (cuts ?? Number.POSITIVE_INFINITY) * (await this.#pace.cutMillis());
    if (millis < SHORT_MILLIS)
      this.#dependencies.alarm('slices_short', '', { slice_cuts: cuts, seconds: Math.round(millis / 1_000) });
  }

  /** The terms by which lists are judged: the pool is held to the lowest fees that it ever named (books rule 7). */
  held(terms: Terms): Terms {
    this.#windowFeeFrom = heldWindowFee(this.#windowFeeFrom, terms.window_fee_from);
    return this.#windowFeeFrom === undefined ? terms : { ...terms, window_fee_from: this.#windowFeeFrom };
  }

  noteChange(terms: Terms, { said, known }: Heights): void {
    const now = this.#dependencies.nowMillis();
    const [before, named] = [this.#windowFeeFrom, terms.window_fee_from];
    this.#laterMillis = before === undefined || named === before ? undefined : (this.#laterMillis ?? now);
    // As for other terms: books replaced by an older copy may say so for a while.
    if (this.#laterMillis !== undefined && now - this.#laterMillis >= LASTING_MILLIS)
      this.#dependencies.alarm('terms_changed', 'window_fee_from', { before, now: named ?? 'none' });
    for (const { service, slice, before, now: after } of this.#memory.note({ ...terms, height: said ?? known }, now))
      this.#dependencies.alarm('terms_changed', `${service}/${slice}`, { service, slice, before, now: after });
  }

  /** The pool's document is read after the terms, so what it announces is not older than they are. */
  async noteNotices({ terms }: Terms, { said, known }: Heights): Promise<void> {
    const height = said ?? known;
    if (height === undefined) return;
    // Another pool may not have this route.
    const pool = await this.#dependencies.pool('pool').catch(() => undefined);
    for (const term of ['fee', 'window'] as const)
      for (const { service, slice, announced, now } of this.#notices[term].note(terms, pool, height))
        this.#dependencies.alarm(`${term}_unannounced`, `${service}/${now}`, { service, slice, announced, now });
  }

  save(): unknown {
    return {
      slices: this.#memory.save(),
      fees: this.#notices.fee.save(),
      windows: this.#notices.window.save(),
      window_fee_from: this.#windowFeeFrom,
    };
  }

  restore(saved: unknown): void {
    // A list is a state of an earlier release.
    const state = (Array.isArray(saved) ? { slices: saved } : (saved ?? {})) as Record<string, unknown>;
    const { slices, fees, windows, window_fee_from: from } = state;
    if (isWhole(from)) this.#windowFeeFrom = from;
    this.#memory.restore(slices);
    this.#notices.fee.restore(fees);
    this.#notices.window.restore(windows);
  }
}

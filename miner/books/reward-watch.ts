/**
 * Checks the rewards of each slice once they must be in credit lists: slice by slice, so that none is skipped. A
 * suspicious slice is checked until it is cleared or confirmed; one whose blocks are in a later list is checked again
 * when that list is due.
 */
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import type { Heights } from './chain-heights.ts';
import { type Again, dueSlices, type Looked, lookForRewards, NodeSilence, type RewardSources } from './due-rewards.ts';
import { judged, type Terms } from './pool-reads.ts';
import type { Suspicions } from './suspicions.ts';

/** Slices that are looked at in one round, of new ones and of those that wait for a later list. */
const MAX_SLICES = 8;
/** A miner that was offline for longer starts with this many slices. */
const MAX_MISSED = 1_024;
/** Limit of slices to be checked again; beyond it, newer slices wait until the oldest are done. */
const MAX_AGAIN = 1_024;
const MALFORMED: Looked = { missing: { why: 'not_named', reward: 'malformed' } };

export type RewardWatchDependencies = RewardSources & {
  readonly alarm: (
    kind: 'rewards_hidden' | 'rewards_withheld' | 'rewards_crowded',
    what: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void;
};

export class RewardWatch {
  readonly #dependencies: RewardWatchDependencies;
  readonly #suspicions: Suspicions;
  /** By service: the newest slice whose rewards were checked. */
  readonly #through = new Map<BooksService, number>();
  /** Services with due slices that were not checked yet. */
  readonly #behind = new Set<BooksService>();
  /** By `service/slice`: when a slice is checked again. */
  readonly #again = new Map<string, Again>();

  constructor(dependencies: RewardWatchDependencies, suspicions: Suspicions) {
    this.#dependencies = dependencies;
    this.#suspicions = suspicions;
  }

  /** More is due than was checked: the next round follows soon. */
  get isBehind(): boolean {
    return this.#behind.size > 0;
  }

  async round(service: BooksService, terms: Terms, { said, known, isApart }: Heights): Promise<void> {
    // The miner's own node does not answer: not the pool's fault.
    if (this.#dependencies.node !== null && known === undefined) return;
    // Books that are some minutes behind the ledger do not have the newest lists yet.
    const height = Math.min(said ?? Number.MAX_SAFE_INTEGER, known ?? Number.MAX_SAFE_INTEGER);
    const found = dueSlices(terms, service, { height, said: said ?? height });
    if (found === undefined) return;
    const slices = isApart ? { ...found, open: Number.MAX_SAFE_INTEGER } : found;
    try {
      await this.#new(service, terms, slices);
      await this.#later(service, terms, slices);
    } catch (error) {
      if (!(error instanceof NodeSilence)) throw error;
    }
  }

  async #new(service: BooksService, terms: Terms, slices: { due: number; open: number }): Promise<void> {
    const { due } = slices;
    // Capped at what is due now: a false height must not prevent the check of later slices.
    const through = Math.max(Math.min(this.#through.get(service) ?? due - 1, due), due - MAX_MISSED);
    this.#through.set(service, through);
    if (due > through + MAX_SLICES) this.#behind.add(service);
    else this.#behind.delete(service);
    for (let slice = through + 1; slice <= Math.min(due, through + MAX_SLICES); slice++) {
      if (!(await this.#isDone({ service, slice, from: slice }, terms, slices))) return;
      this.#through.set(service, slice);
    }
  }

  async #later(service: BooksService, terms: Terms, slices: { due: number; open: number }): Promise<void> {
    const ready = [...this.#again].filter(([name, { at }]) => name.startsWith(`${service}/`) && at <= slices.due);
    for (const [name, { from }] of ready.slice(0, MAX_SLICES))
      await this.#isDone({ service, slice: Number(name.split('/')[1]), from }, terms, slices);
  }

  /** False if it looks wrong and must be checked again. */
  async #isDone(
    asked: { readonly service: BooksService; readonly slice: number; readonly from: number },
    terms: Terms,
    slices: { readonly due: number; readonly open: number },
  ): Promise<boolean> {
    const { service, slice } = asked;
    const what = `${service}/${slice}`;
    const look = () => lookForRewards({ ...asked, ...slices }, terms, this.#dependencies);
    const { missing, again, withheld, isCrowded } = await judged(look, MALFORMED);
    if (!this.#suspicions.isSure(`rewards ${what}`, missing !== undefined || withheld !== undefined)) return false;
    if (missing !== undefined) this.#dependencies.alarm('rewards_hidden', what, { service, slice, ...missing });
    if (withheld !== undefined)
      this.#dependencies.alarm('rewards_withheld', what, { service, slice, rewards: withheld });
    if (isCrowded) this.#dependencies.alarm('rewards_crowded', what, { service, slice });
    if (again === undefined) this.#again.delete(what);
    else if (this.#again.has(what) || this.#again.size < MAX_AGAIN) this.#again.set(what, again);
    else return false;
    return true;
  }

  save(): { readonly due: unknown; readonly again: unknown } {
    return { due: [...this.#through], again: [...this.#again] };
  }

  /** A malformed state is ignored. */
  restore({ due, again }: { readonly due?: unknown; readonly again?: unknown }): void {
    for (const [service, slice] of Array.isArray(due) ? due : [])
      if (isWhole(slice)) this.#through.set(service as BooksService, slice);
    for (const [name, list] of Array.isArray(again) ? again.slice(-MAX_AGAIN) : [])
      if (typeof name === 'string' && isWhole(list?.at) && isWhole(list.from))
        this.#again.set(name, { at: list.at, from: list.from });
  }
}

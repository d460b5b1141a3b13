/** The time per cut, from the timestamps of the ledger's cuts; without a node, the target of the rules. */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';

const NOMINAL_MILLIS = 86_400_000 / INTERVAL_CUTS;
/** Measured over so many of the newest cuts. */
const SPAN_CUTS = 240;
const KEPT_MILLIS = 3_600_000;

export class ChainPace {
  readonly #node: BooksSources['node'];
  readonly #nowMillis: () => number;
  #measured: { readonly cutMillis: number; readonly atMillis: number } | undefined;

  constructor(node: BooksSources['node'], nowMillis: () => number) {
    this.#node = node;
    this.#nowMillis = nowMillis;
  }

  async cutMillis(): Promise<number> {
    const now = this.#nowMillis();
    if (this.#measured === undefined || now - this.#measured.atMillis > KEPT_MILLIS) {
      const cutMillis = await this.#measure().catch(() => undefined);
      if (cutMillis !== undefined) this.#measured = { cutMillis, atMillis: now };
    }
    return this.#measured?.cutMillis ?? NOMINAL_MILLIS;
  }

  /** Undefined if the node does not answer. */
  async #measure(): Promise<number | undefined> {
    const newest = (await this.#node?.cuts({ limit: 1 }))?.cuts[0];
    if (newest === undefined || !isWhole(newest.height) || newest.height <= SPAN_CUTS) return undefined;
    const before = newest.height - SPAN_CUTS;
    const older = (await this.#node?.cuts({ before: before + 1, limit: 1 }))?.cuts[0];
    const [to, from] = [newest.finalized_at_millis, older?.finalized_at_millis];
    if (older?.height !== before || !isWhole(to) || !isWhole(from) || to <= from) return undefined;
    return (to - from) / SPAN_CUTS;
  }
}

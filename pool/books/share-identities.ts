/**
 * A (header, nonce) counts once (docs/protocol/books.md, rule 14), whatever journal, instance or replay it comes by.
 * The raw shares record which ones counted. Identities of recent anchors are kept in memory, and read from the raw
 * shares when missing: after a start, or for a late journal. Why not an index:
 * docs/decisions/0003-a-share-counts-once.md.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Transaction } from '../database/connect.ts';
import type { ShareIdentity } from '../journal/journal-record.ts';
import { IdentitySet } from './identity-set.ts';

/** Anchors that are loaded and dropped together: forty seconds of a pool. */
const ANCHORS = 16;
/** Identities kept in memory, besides those of the anchors in use. */
const KEPT = 1_000_000;
const READ_ROWS = 10_000;

export class ShareIdentities {
  /** The most recently used last. */
  readonly #known = new Map<number, IdentitySet>();
  #size = 0;

  /** For each share whether it counts: it is the first of its identity, or has none. Remembers those that do. */
  async take(transaction: Transaction, identities: readonly (ShareIdentity | null)[]): Promise<boolean[]> {
    const places = new Set(identities.flatMap((identity) => (identity === null ? [] : [placeOf(identity)])));
    for (const place of places) await this.#know(transaction, place);
    this.#trim(places);
    return identities.map((identity) => {
      if (identity === null) return true;
      const isFirst = (this.#known.get(placeOf(identity)) as IdentitySet).add(identity.bytes);
      if (isFirst) this.#size++;
      return isFirst;
    });
  }

  /** To be called when a transaction failed: its shares were not counted. */
  forget(): void {
    this.#known.clear();
    this.#size = 0;
  }

  async #know(transaction: Transaction, place: number): Promise<void> {
    const known = this.#known.get(place);
    const set = known ?? new IdentitySet();
    this.#known.delete(place);
    this.#known.set(place, set);
    if (known !== undefined) return;
    const cursor = transaction<{ identity: Bytes }[]>`select identity from shares
      where anchor_height >= ${place * ANCHORS} and anchor_height < ${(place + 1) * ANCHORS}`.cursor(READ_ROWS);
    for await (const rows of cursor) for (const { identity } of rows) set.add(identity);
    this.#size += set.size;
  }

  #trim(needed: ReadonlySet<number>): void {
    for (const [place, { size }] of this.#known) {
      if (this.#size <= KEPT) return;
      if (needed.has(place)) continue;
      this.#known.delete(place);
      this.#size -= size;
    }
  }
}

const placeOf = ({ anchorHeight }: ShareIdentity): number => Math.floor(anchorHeight / ANCHORS);

/**
 * Transactions that wait for a block (ledger rules 50 to 53). The first seen of two that spend the same output stays; memory is bounded by bytes,
 * and the lowest fee rate leaves first; what a cut executed, made impossible or let expire leaves with it. Holds only what has passed
 * every check; the checks are admission.ts.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Outpoint } from '../../protocol/transaction.ts';
import type { MempoolView, Origin, PendingTransaction, RemovalReason, UnspentOutput } from '../full-node.ts';
import type { CutEffects, LostTransaction } from '../ledger/effects.ts';
import { outpointKey } from '../ledger/output-set.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';

export type Entry = PendingTransaction & {
  readonly read: ReadTransaction;
  readonly name: string;
  /** Whole atoms per unit of mass: transactions of one rate are drawn at random. */
  readonly rate: bigint;
  /** Waiting blocks that carry it. */
  readonly carriers: Set<string>;
};

/** Transactions of one fee rate; Sets keep the order in which they came. */
export type RateGroup = { readonly rate: bigint; readonly own: Set<Entry>; readonly relayed: Set<Entry> };

export type MempoolOptions = { readonly maxBytes: number };
export type MempoolDependencies = {
  readonly now: () => number;
  onAdded(entry: Entry): void;
  onRemoved(entry: Entry, reason: RemovalReason): void;
};

export class Mempool implements MempoolView {
  readonly maxBytes: number;
  bytes = 0;
  readonly #dependencies: MempoolDependencies;
  readonly #entries = new Map<string, Entry>();
  readonly #spenders = new Map<string, Entry>();
  readonly #groups = new Map<bigint, RateGroup>();
  /** Descending. */
  #rates: bigint[] = [];
  readonly #own = new Set<Entry>();
  readonly #byExpiry = new Map<number, Set<Entry>>();
  #lastSeen = 0;

  constructor(options: MempoolOptions, dependencies: MempoolDependencies) {
    this.maxBytes = options.maxBytes;
    this.#dependencies = dependencies;
  }

  get count(): number {
    return this.#entries.size;
  }

  get(id: Bytes): Entry | undefined {
    return this.#entries.get(nameOf(id));
  }

  list(): Iterable<Entry> {
    return this.#entries.values();
  }

  spender(outpoint: Outpoint): Entry | undefined {
    return this.#spenders.get(nameOf(outpointKey(outpoint)));
  }

  /** Highest fee rate first. */
  *groups(): Iterable<RateGroup> {
    for (const rate of this.#rates) yield this.#groups.get(rate) as RateGroup;
  }

  /** When the oldest transaction that was submitted here and still waits came. */
  oldestOwnMillis(): number | undefined {
    return this.#own.values().next().value?.seenMillis;
  }

  /** False when it pays less than everything that would have to leave for it. The caller has made sure that it conflicts with nothing. */
  add(read: ReadTransaction, spends: readonly UnspentOutput[], fee: bigint, origin: Origin): boolean {
    const rate = fee / BigInt(read.mass);
    if (!this.#makeRoom(read.wire.length, rate)) return false;
    // A clock that is set back must not make a newcomer older than those before it.
    this.#lastSeen = Math.max(this.#lastSeen, this.#dependencies.now());
    const entry: Entry = {
      id: read.id,
      wire: read.wire,
      body: read.body,
      origin,
      seenMillis: this.#lastSeen,
      fee,
      mass: read.mass,
      spends,
      read,
      name: nameOf(read.id),
      rate,
      carriers: new Set(),
    };
    this.#entries.set(entry.name, entry);
    for (const { outpoint } of spends) this.#spenders.set(nameOf(outpointKey(outpoint)), entry);
    this.#groupOf(rate)[origin].add(entry);
    if (origin === 'own') this.#own.add(entry);
    const { validUntilHeight } = read.body;
    const expiring = this.#byExpiry.get(validUntilHeight);
    if (expiring === undefined) this.#byExpiry.set(validUntilHeight, new Set([entry]));
    else expiring.add(entry);
    this.bytes += read.wire.length;
    this.#dependencies.onAdded(entry);
    return true;
  }

  #groupOf(rate: bigint): RateGroup {
    const known = this.#groups.get(rate);
    if (known !== undefined) return known;
    const group = { rate, own: new Set<Entry>(), relayed: new Set<Entry>() };
    this.#groups.set(rate, group);
    this.#rates.splice(this.#placeOf(rate), 0, rate);
    return group;
  }

  #placeOf(rate: bigint): number {
    let low = 0;
    let high = this.#rates.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#rates[middle] as bigint) > rate) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #makeRoom(bytes: number, rate: bigint): boolean {
    if (bytes > this.maxBytes) return false;
    while (this.bytes + bytes > this.maxBytes) {
      const lowest = this.#rates.at(-1);
      if (lowest === undefined || lowest >= rate) return false;
      const group = this.#groups.get(lowest) as RateGroup;
      // Relayed ones first, the newest first: whoever waits longest keeps the place.
      const leaving = [...group.relayed].at(-1) ?? [...group.own].at(-1);
      this.#remove(leaving as Entry, 'evicted');
    }
    return true;
  }

  #remove(entry: Entry, reason: RemovalReason): void {
    this.#entries.delete(entry.name);
    for (const { outpoint } of entry.spends) this.#spenders.delete(nameOf(outpointKey(outpoint)));
    const group = this.#groups.get(entry.rate) as RateGroup;
    group[entry.origin].delete(entry);
    if (group.own.size + group.relayed.size === 0) {
      this.#groups.delete(entry.rate);
      this.#rates.splice(this.#placeOf(entry.rate), 1);
    }
    this.#own.delete(entry);
    const expiring = this.#byExpiry.get(entry.body.validUntilHeight);
    expiring?.delete(entry);
    if (expiring?.size === 0) this.#byExpiry.delete(entry.body.validUntilHeight);
    this.bytes -= entry.wire.length;
    this.#dependencies.onRemoved(entry, reason);
  }

  /** Transactions that cannot be executed once the cut of this height has spent these outputs. */
  lost(spent: CutEffects['spent'], height: number): LostTransaction[] {
    const lost = new Map<string, LostTransaction>();
    const executed = new Set<string>();
    for (const { outpoint, spentBy } of spent) {
      const entry = this.spender(outpoint);
      if (entry === undefined) continue;
      if (entry.name === nameOf(spentBy)) executed.add(entry.name);
      else lost.set(entry.name, { id: entry.id, reason: 'conflict' });
    }
    for (const [until, entries] of this.#byExpiry)
      if (until <= height)
        for (const entry of entries)
          if (!executed.has(entry.name) && !lost.has(entry.name))
            lost.set(entry.name, { id: entry.id, reason: 'expired' });
    return [...lost.values()];
  }

  /** Takes out what the finalized cut decided. */
  settle(effects: CutEffects): void {
    for (const transaction of effects.transactions) {
      const entry = this.get(transaction.id);
      if (entry === undefined) continue;
      if (transaction.outcome === 'executed') this.#remove(entry, 'finalized');
      else if (transaction.outcome === 'failed' && transaction.reason === 'invalid') this.#remove(entry, 'rejected');
    }
    for (const { id, reason } of this.lost(effects.spent, effects.header.height)) {
      const entry = this.get(id);
      if (entry !== undefined) this.#remove(entry, reason);
    }
  }

  /** Marks which waiting transactions a waiting block carries. */
  carried(blockName: string, transactions: readonly ReadTransaction[]): void {
    for (const { id } of transactions) this.get(id)?.carriers.add(blockName);
  }

  released(blockName: string, transactions: readonly ReadTransaction[]): void {
    for (const { id } of transactions) this.get(id)?.carriers.delete(blockName);
  }
}

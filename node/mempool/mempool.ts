/**
 * Transactions that wait for a block (ledger rules 50 to 53). The first seen of two that spend the same output stays;
 * memory is bounded by bytes, and the lowest fee rate leaves first; what a cut executed, made impossible or let expire
 * leaves with it. Holds only transactions that passed every check; the checks are in admission.ts.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { MempoolView, Origin, PendingTransaction, RemovalReason, UnspentOutput } from '../full-node.ts';
import type { CutEffects, LostTransaction } from '../ledger/effects.ts';
import { outpointKey } from '../ledger/output-set.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';
import { DrawSet } from './draw-set.ts';
import { hasRoomKept, slotsOf } from './operation-slots.ts';

export type Entry = PendingTransaction & {
  readonly read: ReadTransaction;
  readonly name: string;
  /** Whole atoms per unit of mass: transactions of one rate are drawn at random. */
  readonly rate: bigint;
  /** Waiting blocks that carry it. */
  readonly carriers: Set<string>;
  /** Number of the cut from which on it is offered, whatever carries it. */
  heldUntil?: number;
  /** It uses the space reserved for heartbeats and evidence. */
  readonly kept: boolean;
  /** The validator that its operation is about. */
  readonly subject?: string;
};

/** Transactions of one fee rate that a template may take: in no waiting block. Own ones come first. */
export type RateGroup = { readonly first: DrawSet<Entry>; readonly second: DrawSet<Entry> };

/** Index of an entry in a list of arrivals. When it leaves, its place is cleared to free its bytes. */
type Arrival = { entry: Entry | undefined };

/** All of one fee rate. The lists are in the order of arrival; empty places are dropped from them later. */
type Rate = RateGroup & { count: number; bytes: number; readonly arrived: Record<Origin, Arrival[]> };

export type MempoolOptions = {
  readonly maxBytes: number;
  /** A relayed transaction that is this much older than the oldest own one counts as own. */
  readonly cutMillis: number;
};
export type MempoolDependencies = {
  readonly now: SteadyClock;
  onAdded(entry: Entry): void;
  onRemoved(entry: Entry, reason: RemovalReason): void;
};

/**
 * What a waiting block carries is left to it, but a block may wait until its window closes, or behind others at its maker's will. So a
 * transaction is left to blocks for so many cuts in all, and offered from then on.
 */
export const HELD_CUTS = 8;

/** This part of its size is reserved for heartbeats and evidence, in addition to the rest. */
const KEPT_PART = 8;

export class Mempool implements MempoolView {
  readonly maxBytes: number;
  bytes = 0;
  readonly #dependencies: MempoolDependencies;
  readonly #entries = new Map<string, Entry>();
  readonly #spenders = new Map<string, Entry>();
  readonly #groups = new Map<bigint, Rate>();
  readonly #arrivals = new Map<Entry, Arrival>();
  /** Descending. */
  #rates: bigint[] = [];
  readonly #own = new Set<Entry>();
  /** Relayed ones that do not count as own yet, the oldest first. */
  readonly #young = new Set<Entry>();
  readonly #cutMillis: number;
  readonly #byExpiry = new Map<number, Set<Entry>>();
  #lastSeen = 0;
  /** The transaction in each operation slot, and all operations by validator. */
  readonly #slots = new Map<string, Entry>();
  readonly #bySubject = new Map<string, Set<Entry>>();
  /** Heartbeats and evidence: taken first by templates, never evicted. */
  readonly #kept: RateGroup = { first: new DrawSet<Entry>(), second: new DrawSet<Entry>() };
  #keptBytes = 0;
  /** Those left to the blocks that carry them. */
  readonly #held = new Set<Entry>();
  /** Cuts since the start. */
  #cuts = 0;

  constructor(options: MempoolOptions, dependencies: MempoolDependencies) {
    this.maxBytes = options.maxBytes;
    this.#cutMillis = options.cutMillis;
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

  /** Whether this operation conflicts with a waiting one. */
  isSlotTaken(operation: StakingOperation | undefined): boolean {
    return slotsOf(operation).some((slot) => this.#slots.has(slot));
  }

  /** Operations that are about a validator. */
  about(validator: Bytes): Iterable<Entry> {
    return [...(this.#bySubject.get(nameOf(validator)) ?? [])];
  }

  /** Transactions with reserved space. */
  get reserved(): RateGroup {
    return this.#kept;
  }

  /** Takes out an operation that a cut made impossible. */
  drop(entry: Entry, reason: 'rejected' | 'evicted'): void {
    if (this.holds(entry)) this.#remove(entry, reason);
  }

  /** Whether it is still here. */
  holds(entry: Entry): boolean {
    return this.#entries.get(entry.name) === entry;
  }

  /** Whether it is left to waiting blocks. */
  isHeld(entry: Entry): boolean {
    return this.#held.has(entry);
  }

  /** Highest fee rate first. */
  *groups(): Iterable<RateGroup> {
    this.#age();
    for (const rate of this.#rates) yield this.#groups.get(rate) as Rate;
  }

  /** The oldest own transaction is only replaced by a later one, so a transaction never stops counting as own. */
  #age(): void {
    const oldestOwn = this.oldestOwnMillis();
    if (oldestOwn === undefined) return;
    for (const entry of this.#young) {
      if (entry.seenMillis + this.#cutMillis > oldestOwn) return;
      this.#young.delete(entry);
      if (entry.kept) continue;
      const { first, second } = this.#groups.get(entry.rate) as Rate;
      if (second.delete(entry)) first.add(entry);
    }
  }

  #offer(entry: Entry): void {
    if (entry.kept) {
      this.#kept.first.add(entry);
      return;
    }
    const { first, second } = this.#groups.get(entry.rate) as Rate;
    (this.#young.has(entry) ? second : first).add(entry);
  }

  #withdraw(entry: Entry): void {
    if (entry.kept) {
      this.#kept.first.delete(entry);
      return;
    }
    const { first, second } = this.#groups.get(entry.rate) as Rate;
    if (!first.delete(entry)) second.delete(entry);
  }

  /** Arrival time of the oldest waiting transaction that was submitted here. */
  oldestOwnMillis(): number | undefined {
    return this.#own.values().next().value?.seenMillis;
  }

  /**
   * False if it pays less than the transactions that would have to leave. The caller has checked that it is new and
   * conflicts with nothing.
   */
  add(
    read: ReadTransaction,
    spends: readonly UnspentOutput[],
    fee: bigint,
    origin: Origin,
    validator?: Bytes,
  ): boolean {
    if (this.#conflicts(read)) throw new Error('a transaction that conflicts with a waiting one was let in');
    if (!this.hasRoomFor(read, fee)) return false;
    const rate = rateOf(read, fee);
    const kept = this.#isKept(read);
    if (!kept) this.#makeRoom(read.wire.length);
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
      name: read.name,
      rate,
      carriers: new Set(),
      kept,
      ...(validator && { subject: nameOf(validator) }),
    };
    this.#entries.set(entry.name, entry);
    for (const { outpoint } of spends) this.#spenders.set(nameOf(outpointKey(outpoint)), entry);
    for (const slot of slotsOf(read.operation)) this.#slots.set(slot, entry);
    this.#noteSubject(entry);
    if (kept) this.#keptBytes += read.wire.length;
    else {
      const group = this.#groupOf(rate);
      group.count++;
      group.bytes += read.wire.length;
      const arrival: Arrival = { entry };
      group.arrived[origin].push(arrival);
      this.#arrivals.set(entry, arrival);
    }
    (origin === 'own' ? this.#own : this.#young).add(entry);
    this.#offer(entry);
    const { validUntilHeight } = read.body;
    const expiring = this.#byExpiry.get(validUntilHeight);
    if (expiring === undefined) this.#byExpiry.set(validUntilHeight, new Set([entry]));
    else expiring.add(entry);
    this.bytes += read.wire.length;
    this.#dependencies.onAdded(entry);
    return true;
  }

  #conflicts({ name, body, operation }: ReadTransaction): boolean {
    return (
      this.#entries.has(name) ||
      this.isSlotTaken(operation) ||
      body.inputs.some((outpoint) => this.spender(outpoint) !== undefined)
    );
  }

  #noteSubject(entry: Entry): void {
    if (entry.subject === undefined) return;
    const about = this.#bySubject.get(entry.subject);
    if (about === undefined) this.#bySubject.set(entry.subject, new Set([entry]));
    else about.add(entry);
  }

  #groupOf(rate: bigint): Rate {
    const known = this.#groups.get(rate);
    if (known !== undefined) return known;
    const group = {
      first: new DrawSet<Entry>(),
      second: new DrawSet<Entry>(),
      count: 0,
      bytes: 0,
      arrived: { own: [], relayed: [] },
    };
    this.#groups.set(rate, group);
    this.#rates.splice(this.#indexOf(rate), 0, rate);
    return group;
  }

  #indexOf(rate: bigint): number {
    let low = 0;
    let high = this.#rates.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#rates[middle] as bigint) > rate) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isKept({ wire, operation }: ReadTransaction): boolean {
    return hasRoomKept(operation) && this.#keptBytes + wire.length <= this.maxBytes / KEPT_PART;
  }

  /** Whether it pays more than the transactions that would have to leave. */
  hasRoomFor(read: ReadTransaction, fee: bigint): boolean {
    if (this.#isKept(read)) return true;
    const rate = rateOf(read, fee);
    let lacking = this.#beyond(read.wire.length);
    for (let i = this.#rates.length - 1; lacking > 0; i--) {
      const lowest = this.#rates[i];
      if (lowest === undefined || lowest >= rate) return false;
      lacking -= (this.#groups.get(lowest) as Rate).bytes;
    }
    return true;
  }

  /** The excess if this many bytes were added. */
  #beyond(bytes: number): number {
    return this.bytes - this.#keptBytes + bytes - this.maxBytes;
  }

  #makeRoom(bytes: number): void {
    while (this.#beyond(bytes) > 0) {
      const { arrived } = this.#groups.get(this.#rates.at(-1) as bigint) as Rate;
      // Relayed ones first, the newest first: the longest-waiting keep their place.
      const leaving = this.#newest(arrived.relayed) ?? this.#newest(arrived.own);
      this.#remove(leaving as Entry, 'evicted');
    }
  }

  #newest(arrived: Arrival[]): Entry | undefined {
    while (arrived.length > 0 && arrived.at(-1)?.entry === undefined) arrived.pop();
    return arrived.at(-1)?.entry;
  }

  #remove(entry: Entry, reason: RemovalReason): void {
    this.#entries.delete(entry.name);
    for (const { outpoint } of entry.spends) this.#spenders.delete(nameOf(outpointKey(outpoint)));
    this.#withdraw(entry);
    this.#held.delete(entry);
    this.#own.delete(entry);
    this.#young.delete(entry);
    for (const slot of slotsOf(entry.read.operation)) this.#slots.delete(slot);
    const about = this.#bySubject.get(entry.subject ?? '');
    about?.delete(entry);
    if (about?.size === 0) this.#bySubject.delete(entry.subject ?? '');
    if (entry.kept) this.#keptBytes -= entry.wire.length;
    else this.#leaveRate(entry);
    const expiring = this.#byExpiry.get(entry.body.validUntilHeight);
    expiring?.delete(entry);
    if (expiring?.size === 0) this.#byExpiry.delete(entry.body.validUntilHeight);
    this.bytes -= entry.wire.length;
    this.#dependencies.onRemoved(entry, reason);
  }

  #leaveRate(leaving: Entry): void {
    const { rate, origin, wire } = leaving;
    (this.#arrivals.get(leaving) as Arrival).entry = undefined;
    this.#arrivals.delete(leaving);
    const group = this.#groups.get(rate) as Rate;
    group.count--;
    group.bytes -= wire.length;
    if (group.count === 0) {
      this.#groups.delete(rate);
      this.#rates.splice(this.#indexOf(rate), 1);
      return;
    }
    const arrived = group.arrived[origin];
    // Done when half of the list is empty: so every transaction is moved about once in total.
    if (arrived.length > 2 * group.count + 16)
      group.arrived[origin] = arrived.filter(({ entry }) => entry !== undefined);
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

  /** Removes transactions that the finalized cut decided. */
  settle(effects: CutEffects): void {
    for (const transaction of effects.transactions) {
      const entry = this.get(transaction.id);
      if (entry === undefined) continue;
      if (transaction.outcome === 'executed') this.#remove(entry, 'finalized');
      else if (transaction.outcome === 'failed') {
        const { reason } = transaction;
        if (reason === 'conflict' || reason === 'expired') this.#remove(entry, reason);
        else if (reason === 'invalid' && isSame(entry, transaction)) this.#remove(entry, 'rejected');
      }
    }
    for (const { id, reason } of this.lost(effects.spent, effects.header.height)) {
      const entry = this.get(id);
      if (entry !== undefined) this.#remove(entry, reason);
    }
    this.#cuts++;
    for (const entry of this.#held) if (this.#cuts >= (entry.heldUntil as number)) this.#letGo(entry);
  }

  #letGo(entry: Entry): void {
    if (this.#held.delete(entry)) this.#offer(entry);
  }

  /**
   * Marks the waiting transactions that a waiting block carries. A copy with other witnesses, which may be invalid,
   * does not count.
   */
  carried(blockName: string, transactions: readonly ReadTransaction[]): void {
    for (const transaction of transactions) {
      const entry = this.#entries.get(transaction.name);
      if (entry === undefined || !isSame(entry, transaction)) continue;
      entry.carriers.add(blockName);
      entry.heldUntil ??= this.#cuts + HELD_CUTS;
      if (this.#cuts >= entry.heldUntil) continue;
      this.#held.add(entry);
      this.#withdraw(entry);
    }
  }

  released(blockName: string, transactions: readonly ReadTransaction[]): void {
    for (const { name } of transactions) {
      const entry = this.#entries.get(name);
      if (entry?.carriers.delete(blockName) && entry.carriers.size === 0) this.#letGo(entry);
    }
  }
}

const rateOf = ({ mass }: ReadTransaction, fee: bigint): bigint => fee / BigInt(mass);

/** An identifier covers only the body: two are the same transaction only if all bytes match, witnesses included. */
const isSame = ({ wire }: Entry, carried: { readonly wire: Bytes }): boolean =>
  // A block may carry 1 MiB: Node compares it 50 times as fast as a loop.
  wire === carried.wire || Buffer.compare(wire, carried.wire) === 0;

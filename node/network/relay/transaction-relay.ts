/**
 * Relays transactions: identifiers first, in batches by gossip; unknown ones are requested from their announcers, and
 * pass the mempool's admission. No batch is passed on: what entered the mempool, from whomever, is gathered into
 * batches of this node's own. So a node can deliver what it announces, and how many messages it sends does not depend
 * on how small the batches of others are.
 */
import { randomBytes } from 'node:crypto';
import type { Bytes } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import type { BucketRate } from '../../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { FullNode } from '../../full-node.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { NodeErrorCode } from '../../node-error.ts';
import { blame, type PeerAsking } from '../peers/peer-fault.ts';
import type { Finding, PeerName, Topic } from '../thread/host-types.ts';
import { decodeBatch, encodeBatch, MAX_TRANSACTIONS, SALT_BYTES } from './relay-messages.ts';
import { type Came, TransactionWants } from './transaction-wants.ts';

/** Identifiers of one peer that are looked up. */
const LOOKED_UP: BucketRate = { perSecond: 5_000, burst: 20_000 };
/** Those that are neither in the mempool nor asked for, of all peers together: each is a read of the store, perhaps of the disk. */
const READ_OF_ALL: BucketRate = { perSecond: 5_000, burst: 40_000 };
/**
 * KiB of delivered transactions that are checked, of all peers together: more than twice what cuts can carry. Nearly all bytes are
 * signatures, and valid ones cost no score, also of transactions that spend one output or expire at once.
 */
const CHECKED_OF_ALL: BucketRate = { perSecond: 4 * 1_024, burst: 16 * 1_024 };
const KIBIBYTE = 1_024;
const CHECK_AGAIN_MILLIS = 50;
/** Time between two batches: the first identifier after a pause is sent at once, later ones are batched. */
const GATHER_MILLIS = 50;
/** Half as many identifiers as a neighbour looks up, so that a link that stalls and recovers does not exceed its limit. */
const MILLIS_PER_ID = 2_000 / LOOKED_UP.perSecond;
/** What expires within so many cuts is not announced: it may be gone when a neighbour asks for it, which would blame this node. Anybody can make such transactions, and they cost nothing. */
const LASTING_CUTS = 8;
/** Identifiers that wait to be announced. What is pushed out is found by peers that ask what waits. */
const MAX_GATHERED = 16_384;
/**
 * Transactions that a peer announced but does not have, and that are in no cut. Some are legitimate: a conflicting one
 * was in a cut, or they were evicted from a full mempool.
 */
const MISSED: BucketRate = { perSecond: 8, burst: 512 };
/** A peer may be cuts ahead: only after this time is it clear whether a cut took what it lacks. */
const SETTLE_MILLIS = 5_000;
/** Transactions of one peer for which that is not clear yet; enough for many faults. */
const MAX_UNSETTLED = 2_048;
const KNOWN_PEERS = 1_024;

/** Faults that are invalid in every state: no honest peer relays them. */
export const TRANSACTION_FAULTS: ReadonlySet<NodeErrorCode> = new Set([
  'transaction_malformed',
  'signature_invalid',
  'witness_key_mismatch',
  'fee_below_minimum',
]);

export type TransactionRelayDependencies = {
  readonly node: Pick<FullNode, 'chain' | 'mempool' | 'submitTransaction' | 'on'>;
  readonly network: PeerAsking & { publish(topic: Topic, data: Bytes): void };
  /** A node that is far behind cannot judge transactions, and does not ask for them. */
  isSynced(): boolean;
  readonly steady: SteadyClock;
  /** The address that a peer shares with others: a new name must not have a part of its own. Without it each is counted alone. */
  holderOf?(peer: PeerName): string;
};

export class TransactionRelay {
  readonly #with: TransactionRelayDependencies;
  readonly #lookedUp = new Buckets(LOOKED_UP, KNOWN_PEERS);
  readonly #missed = new Buckets(MISSED, KNOWN_PEERS);
  readonly #read: FairShare;
  readonly #checked: FairShare;
  #closed = false;
  readonly #wants: TransactionWants;
  readonly #gathered = new BoundedMap<string, Bytes>(MAX_GATHERED);
  #timer: NodeJS.Timeout | undefined;
  /** How many transactions are not settled, by peer. */
  readonly #unsettled = new Map<PeerName, number>();
  readonly #settling = new Set<NodeJS.Timeout>();
  readonly #unsubscribe: () => void;

  constructor(dependencies: TransactionRelayDependencies) {
    this.#with = dependencies;
    this.#read = new FairShare(READ_OF_ALL, dependencies.steady());
    this.#checked = new FairShare(CHECKED_OF_ALL, dependencies.steady());
    const { network } = dependencies;
    this.#wants = new TransactionWants({
      steady: dependencies.steady,
      ask: (peer, question) => network.ask(peer, 'relay', question),
      allowed: (peer, bytes, isOver) => this.allowed(peer, bytes, isOver),
      take: (peer, wire) => this.#take(peer, wire),
      missed: (peer, ids) => this.#settleLater(peer, ids),
      failed: (peer, error) => blame(network, peer, error),
      isHere: (peer, id) => this.mayRead(peer, 1) && this.#isHere(id),
    });
    const { chain } = dependencies.node;
    this.#unsubscribe = dependencies.node.on('mempoolAdded', ({ id, body }) => {
      if (body.validUntilHeight < chain.head().height + LASTING_CUTS) return;
      this.#gathered.set(nameOf(id), id);
      if (this.#timer === undefined) this.#announce();
    });
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    for (const timer of this.#settling) clearTimeout(timer);
    this.#wants.close();
  }

  #announce(): void {
    this.#timer = undefined;
    const ids: Bytes[] = [];
    for (const [name, id] of this.#gathered) {
      if (ids.length >= MAX_TRANSACTIONS) break;
      this.#gathered.delete(name);
      if (this.#with.node.mempool.get(id) !== undefined) ids.push(id);
    }
    if (ids.length === 0) return;
    this.#with.network.publish('transactions', encodeBatch(randomBytes(SALT_BYTES), ids));
    this.#timer = setTimeout(() => this.#announce(), Math.max(GATHER_MILLIS, ids.length * MILLIS_PER_ID));
  }

  async judge(peer: PeerName, data: Bytes): Promise<Finding> {
    const { network } = this.#with;
    let ids: Bytes[];
    try {
      ids = decodeBatch(data);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      network.fault(peer, 'malformed', error.message);
      return 'reject';
    }
    if (!this.#with.isSynced()) return 'ignore';
    if (!this.#lookedUp.take(peer, this.#with.steady(), ids.length)) {
      network.fault(peer, 'flood', 'too many transactions');
      return 'undelivered';
    }
    const absent = ids.filter((id) => this.#with.node.mempool.get(id) === undefined);
    const unknown = absent.filter((id) => !this.#wants.has(id)).length;
    // Others use the store now: the next announcer may bring it.
    if (unknown > 0 && !this.mayRead(peer, unknown)) return 'undelivered';
    const lacking = absent.filter((id) => this.#wants.has(id) || !this.#isHere(id));
    if (lacking.length === 0) return 'ignore';
    const came = await this.#wants.want(peer, lacking);
    return came?.every((what) => what === 'here') ? 'ignore' : 'undelivered';
  }

  #settleLater(peer: PeerName, ids: readonly Bytes[]): void {
    const before = this.#unsettled.get(peer) ?? 0;
    if (before + ids.length > MAX_UNSETTLED) return;
    this.#unsettled.set(peer, before + ids.length);
    const timer = setTimeout(() => {
      this.#settling.delete(timer);
      const left = (this.#unsettled.get(peer) ?? 0) - ids.length;
      if (left > 0) this.#unsettled.set(peer, left);
      else this.#unsettled.delete(peer);
      const missed = ids.filter((id) => !this.#isHere(id)).length;
      if (missed > 0 && !this.#missed.take(peer, this.#with.steady(), missed))
        this.#with.network.fault(peer, 'undelivered', 'it announces transactions that it does not have');
    }, SETTLE_MILLIS);
    timer.unref();
    this.#settling.add(timer);
  }

  /** Whether so many identifiers of this peer are looked up now; if so, they are counted. */
  mayRead(peer: PeerName, ids: number): boolean {
    return this.#read.take(this.#holderOf(peer), this.#with.steady(), ids);
  }

  #holderOf(peer: PeerName): string {
    return this.#with.holderOf?.(peer) ?? peer;
  }

  #isHere(id: Bytes): boolean {
    const { mempool, chain } = this.#with.node;
    return mempool.get(id) !== undefined || chain.transactionStatus(id)?.final === true;
  }

  /** Until so many bytes of this peer's may be checked. It is not asked for more meanwhile. */
  async allowed(peer: PeerName, bytes: number, isOver: () => boolean): Promise<void> {
    while (
      !this.#closed &&
      !isOver() &&
      !this.#checked.take(this.#holderOf(peer), this.#with.steady(), bytes / KIBIBYTE)
    )
      await new Promise((resolve) => setTimeout(resolve, CHECK_AGAIN_MILLIS).unref());
  }

  async #take(peer: PeerName, wire: Bytes): Promise<Exclude<Came, 'nobody'>> {
    const outcome = await this.#with.node.submitTransaction(wire, 'relayed');
    if (outcome.status !== 'refused' || !TRANSACTION_FAULTS.has(outcome.error.code)) return 'here';
    this.#with.network.fault(peer, 'bad_transaction', outcome.error.code);
    return 'bad';
  }
}

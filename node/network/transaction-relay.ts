/**
 * Transactions between peers: identifiers first, in batches by gossip; what is unknown is asked of whoever brought the batch, and goes through the mempool's door. A batch is relayed when something of
 * it was taken in here. Transactions that came to this node itself are announced in batches of its own.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { transactionIdOfWire } from '../../protocol/transaction.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { type Bucket, fullBucket, take } from '../../runtime/token-bucket.ts';
import type { FullNode } from '../full-node.ts';
import { nameOf } from '../ledger/registration.ts';
import type { NodeErrorCode } from '../node-error.ts';
import type { PeerAsking } from './peer-fault.ts';
import { decodeIds, decodeWires, encodeIds, encodeRelayQuestion, MAX_TRANSACTIONS } from './relay-messages.ts';
import type { PeerName, Topic, Verdict } from './thread/host-types.ts';

/** How long identifiers are gathered for a batch. */
const GATHER_MILLIS = 50;
/** Identifiers of one peer that are looked up, each a read of the store. */
const LOOKED_UP = { perSecond: 5_000, burst: 20_000 };
const MAX_FETCHING = 20_000;
const MAX_QUESTIONS = 64;
/** A question that gets a part of its answer only is asked again so often. */
const TRIES = 4;

/** What no state of the chain makes valid: no honest peer passes it on. */
const FAULTS: ReadonlySet<NodeErrorCode> = new Set([
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
  steady(): number;
};

export class TransactionRelay {
  readonly #with: TransactionRelayDependencies;
  readonly #lookedUp = new BoundedMap<PeerName, Bucket>(1_024);
  /** On their way here, so that they are asked of one peer only. */
  readonly #fetching = new Set<string>();
  #gathered: Bytes[] = [];
  #timer: NodeJS.Timeout | undefined;
  #questions = 0;
  readonly #unsubscribe: () => void;

  constructor(dependencies: TransactionRelayDependencies) {
    this.#with = dependencies;
    this.#unsubscribe = dependencies.node.on('mempoolAdded', ({ id }) => {
      // One that came in a batch is relayed with it.
      if (!this.#fetching.has(nameOf(id))) this.#gather(id);
    });
  }

  close(): void {
    this.#unsubscribe();
    clearTimeout(this.#timer);
  }

  #gather(id: Bytes): void {
    this.#gathered.push(id);
    if (this.#gathered.length >= MAX_TRANSACTIONS) this.#announce();
    else this.#timer ??= setTimeout(() => this.#announce(), GATHER_MILLIS);
  }

  #announce(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#gathered.length > 0) this.#with.network.publish('transactions', encodeIds(this.#gathered));
    this.#gathered = [];
  }

  async judge(peer: PeerName, data: Bytes): Promise<Verdict> {
    const { network } = this.#with;
    let ids: Bytes[];
    try {
      ids = decodeIds(data);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      network.fault(peer, 'malformed', error.message);
      return 'reject';
    }
    if (!this.#with.isSynced() || this.#questions >= MAX_QUESTIONS || this.#fetching.size >= MAX_FETCHING)
      return 'ignore';
    if (!this.#mayLookUp(peer, ids.length)) {
      network.fault(peer, 'flood', 'too many transactions');
      return 'ignore';
    }
    const lacking = ids.filter((id) => this.#isLacking(id));
    if (lacking.length === 0) return 'ignore';
    this.#questions++;
    for (const id of lacking) this.#fetching.add(nameOf(id));
    try {
      return await this.#fetch(peer, lacking);
    } catch (error) {
      network.fault(peer, error instanceof ProtocolError ? 'malformed' : 'unanswered', (error as Error).message);
      return 'ignore';
    } finally {
      this.#questions--;
      for (const id of lacking) this.#fetching.delete(nameOf(id));
    }
  }

  #mayLookUp(peer: PeerName, count: number): boolean {
    const now = this.#with.steady();
    const bucket = take(this.#lookedUp.get(peer) ?? fullBucket(LOOKED_UP, now), LOOKED_UP, now, count);
    if (bucket !== undefined) this.#lookedUp.set(peer, bucket);
    return bucket !== undefined;
  }

  #isLacking(id: Bytes): boolean {
    const { mempool, chain } = this.#with.node;
    if (mempool.get(id) !== undefined || this.#fetching.has(nameOf(id))) return false;
    return chain.transactionStatus(id)?.final !== true;
  }

  async #fetch(peer: PeerName, ids: readonly Bytes[]): Promise<Verdict> {
    const { network } = this.#with;
    let verdict: Verdict = 'ignore';
    let left = ids;
    for (let tries = 0; left.length > 0 && tries < TRIES; tries++) {
      const answer = await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'transactions', ids: left }));
      const wires = decodeWires(answer, left.length);
      const missing: Bytes[] = [];
      const came: Bytes[] = [];
      for (const [i, wire] of wires.entries()) {
        const id = left[i] as Bytes;
        if (wire === undefined) missing.push(id);
        else if (!equalBytes(transactionIdOfWire(wire), id))
          throw new ProtocolError('not_canonical', 'another transaction');
        else came.push(wire);
      }
      const outcome = await this.#submit(peer, came);
      if (outcome === 'reject') return 'reject';
      if (outcome === 'accept') verdict = 'accept';
      // It has none of these, and need not: they may have left its mempool.
      if (came.length === 0) break;
      left = missing;
    }
    return verdict;
  }

  async #submit(peer: PeerName, wires: readonly Bytes[]): Promise<Verdict> {
    const outcomes = await Promise.all(wires.map((wire) => this.#with.node.submitTransaction(wire, 'relayed')));
    const fault = outcomes.find((outcome) => outcome.status === 'refused' && FAULTS.has(outcome.error.code));
    if (fault?.status === 'refused') {
      this.#with.network.fault(peer, 'bad_transaction', fault.error.code);
      return 'reject';
    }
    return outcomes.some(({ status }) => status === 'accepted') ? 'accept' : 'ignore';
  }
}

/**
 * Fetches waiting transactions and blocks from peers: those that a peer received while disconnected, which are not
 * announced again. Each new peer is asked, and after each cut one of the others, to recover lost messages. Accepted
 * items are announced as if submitted to this node.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { transactionIdOfWire } from '../../../protocol/transactions/transaction.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { ConsensusNode } from '../../node.ts';
import { blame, type PeerAsking, PeerFault } from '../peers/peer-fault.ts';
import type { PeerInfo, PeerName } from '../thread/host-types.ts';
import { fetchBlock } from './block-relay.ts';
import { decodeWaiting, decodeWires, encodeRelayQuestion, MAX_TRANSACTIONS } from './relay-messages.ts';
import { TRANSACTION_FAULTS, type TransactionRelay } from './transaction-relay.ts';

const LOOK_MILLIS = 1_000;
/** Peers asked concurrently: a slow one delays only itself. */
const AT_ONCE = 4;
/** Of those, peers that came: strangers may come again and again and be slow, and others that this node chose have what waits. */
const CAME_AT_ONCE = 2;
/** After this time the rest is left to other peers. */
const PULL_MILLIS = 30_000;
/** Blocks that a peer announced but did not have. A cut may have taken a few. */
const MAX_MISSED = 8;

export type WaitingPullDependencies = {
  readonly node: Pick<ConsensusNode, 'chain' | 'mempool' | 'submitTransaction' | 'submitBlock' | 'ledger'>;
  readonly network: PeerAsking;
  /** What is read and checked counts together with what peers announce. */
  readonly relay: Pick<TransactionRelay, 'mayRead' | 'allowed'>;
  /** Before that, waiting items cannot be checked. */
  isSynced(): boolean;
  readonly steady: SteadyClock;
};

type Known = { readonly isOutbound: boolean; askedAtHeight: number };

export class WaitingPull {
  readonly #with: WaitingPullDependencies;
  readonly #peers = new Map<PeerName, Known>();
  readonly #busy = new Map<PeerName, Known>();
  readonly #timer: NodeJS.Timeout;
  #height = -1;
  #turns = 0;

  constructor(dependencies: WaitingPullDependencies) {
    this.#with = dependencies;
    this.#timer = setInterval(() => this.#look(), LOOK_MILLIS);
    this.#timer.unref();
  }

  joined(peer: PeerName, { direction }: Pick<PeerInfo, 'direction'>): void {
    this.#peers.set(peer, { isOutbound: direction === 'outbound', askedAtHeight: -1 });
  }

  left(peer: PeerName): void {
    this.#peers.delete(peer);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (!this.#with.isSynced()) return;
    for (const [peer, { askedAtHeight }] of this.#peers) if (askedAtHeight < 0) this.#start(peer);
    const { height } = this.#with.node.chain.head();
    if (height === this.#height) return;
    this.#height = height;
    const peer = this.#longestAgo(this.#turns++ % 2 === 0) ?? this.#longestAgo(false);
    if (peer !== undefined) this.#start(peer);
  }

  /** Every other time one that this node chose itself, however many others there are. */
  #longestAgo(isOutbound: boolean): PeerName | undefined {
    let found: [PeerName, Known] | undefined;
    for (const entry of this.#peers)
      if (
        (!isOutbound || entry[1].isOutbound) &&
        (found === undefined || entry[1].askedAtHeight < found[1].askedAtHeight)
      )
        found = entry;
    return found?.[0];
  }

  #start(peer: PeerName): void {
    const known = this.#peers.get(peer);
    if (known === undefined || this.#busy.has(peer) || !this.#hasPlace(known)) return;
    known.askedAtHeight = this.#with.node.chain.head().height;
    this.#busy.set(peer, known);
    this.#pull(peer, this.#with.steady() + PULL_MILLIS)
      .catch((error) => blame(this.#with.network, peer, error))
      .finally(() => this.#busy.delete(peer));
  }

  #hasPlace({ isOutbound }: Known): boolean {
    const came = [...this.#busy.values()].filter((busy) => !busy.isOutbound).length;
    return this.#busy.size < AT_ONCE && (isOutbound || came < CAME_AT_ONCE);
  }

  async #pull(peer: PeerName, end: number): Promise<void> {
    const { node, network, relay, steady } = this.#with;
    const { transactions, blocks } = decodeWaiting(
      await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'waiting' })),
    );
    let missed = 0;
    for (const id of blocks)
      if (
        steady() < end &&
        node.chain.block(id) === undefined &&
        (await fetchBlock(peer, id, node, network)) === undefined &&
        ++missed > MAX_MISSED
      )
        throw new PeerFault(peer, 'undelivered', 'it names blocks that it does not have');
    // A part at a time is looked up: one that names what it does not have costs no more.
    for (let at = 0; at < transactions.length && steady() < end; at += MAX_TRANSACTIONS) {
      const absent = transactions.slice(at, at + MAX_TRANSACTIONS).filter((id) => node.mempool.get(id) === undefined);
      if (absent.length > 0 && !relay.mayRead(peer, absent.length)) return;
      const lacking = absent.filter((id) => node.chain.transactionStatus(id)?.final !== true);
      if (lacking.length > 0 && !(await this.#transactions(peer, lacking, end))) return;
    }
  }

  /** Whether any of them was taken: a peer that has nothing for this node is not asked for the rest. */
  async #transactions(peer: PeerName, ids: readonly Bytes[], end: number): Promise<boolean> {
    const { node, network, relay, steady } = this.#with;
    const isOver = () => steady() >= end;
    const answer = await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'transactions', ids }));
    const wires = decodeWires(answer, ids.length);
    let isAnyTaken = false;
    for (const [i, wire] of wires.entries()) {
      if (wire === undefined) continue;
      if (!equalBytes(transactionIdOfWire(wire), ids[i] as Bytes))
        throw new ProtocolError('not_canonical', 'another transaction');
      await relay.allowed(peer, wire.length, isOver);
      if (isOver()) return false;
      const outcome = await node.submitTransaction(wire, 'relayed');
      // Anybody can be asked: without blame, checks of false signatures would cost a peer nothing.
      if (outcome.status === 'refused' && TRANSACTION_FAULTS.has(outcome.error.code))
        throw new PeerFault(peer, 'bad_transaction', outcome.error.code);
      isAnyTaken ||= outcome.status !== 'refused';
    }
    return isAnyTaken;
  }
}

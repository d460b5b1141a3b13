/**
 * What waits at a peer that is new here: transactions and blocks that it got while the two were apart, and that nobody announces again. Both sides ask. Whatever is taken in is announced from here as if it had
 * come to this node.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { blockId } from '../../protocol/header.ts';
import { transactionIdOfWire } from '../../protocol/transaction.ts';
import type { FullNode } from '../full-node.ts';
import type { PeerAsking } from './peer-fault.ts';
import { decodeWaiting, decodeWires, encodeRelayQuestion, MAX_TRANSACTIONS } from './relay-messages.ts';
import { decodeBlocksAnswer } from './sync-messages.ts';
import type { PeerName } from './thread/host-types.ts';

const LOOK_MILLIS = 1_000;

export type WaitingPullDependencies = {
  readonly node: Pick<FullNode, 'chain' | 'mempool' | 'submitTransaction' | 'submitBlock'>;
  readonly network: PeerAsking;
  /** Before, nothing that waits can be judged. */
  isSynced(): boolean;
};

export class WaitingPull {
  readonly #with: WaitingPullDependencies;
  readonly #unasked = new Set<PeerName>();
  readonly #timer: NodeJS.Timeout;
  #isBusy = false;

  constructor(dependencies: WaitingPullDependencies) {
    this.#with = dependencies;
    this.#timer = setInterval(() => void this.#next(), LOOK_MILLIS);
    this.#timer.unref();
  }

  joined(peer: PeerName): void {
    this.#unasked.add(peer);
  }

  left(peer: PeerName): void {
    this.#unasked.delete(peer);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** One peer at a time: after the first there is little left to ask for. */
  async #next(): Promise<void> {
    const [peer] = this.#unasked;
    if (peer === undefined || this.#isBusy || !this.#with.isSynced()) return;
    this.#unasked.delete(peer);
    this.#isBusy = true;
    try {
      await this.#pull(peer);
    } catch (error) {
      const fault = error instanceof ProtocolError ? 'malformed' : 'unanswered';
      this.#with.network.fault(peer, fault, (error as Error).message);
    } finally {
      this.#isBusy = false;
    }
  }

  async #pull(peer: PeerName): Promise<void> {
    const { node, network } = this.#with;
    const { transactions, blocks } = decodeWaiting(
      await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'waiting' })),
    );
    const lacking = transactions.filter(
      (id) => node.mempool.get(id) === undefined && node.chain.transactionStatus(id)?.final !== true,
    );
    for (let at = 0; at < lacking.length; at += MAX_TRANSACTIONS)
      await this.#transactions(peer, lacking.slice(at, at + MAX_TRANSACTIONS));
    for (const id of blocks) if (node.chain.block(id) === undefined) await this.#block(peer, id);
  }

  async #transactions(peer: PeerName, ids: readonly Bytes[]): Promise<void> {
    const { node, network } = this.#with;
    const answer = await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'transactions', ids }));
    const wires = decodeWires(answer, ids.length);
    for (const [i, wire] of wires.entries()) {
      if (wire === undefined) continue;
      if (!equalBytes(transactionIdOfWire(wire), ids[i] as Bytes))
        throw new ProtocolError('not_canonical', 'another transaction');
      await node.submitTransaction(wire, 'relayed');
    }
  }

  async #block(peer: PeerName, id: Bytes): Promise<void> {
    const { node, network } = this.#with;
    const [block] = decodeBlocksAnswer(
      await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'block', block: id })),
    );
    if (block === undefined) return;
    if (!equalBytes(blockId(block.header), id)) throw new ProtocolError('not_canonical', 'another block');
    const outcome = await node.submitBlock(block.header, block.body, 'relayed');
    if (outcome.status === 'refused' && outcome.error.code === 'pow_above_target')
      network.fault(peer, 'bad_block', outcome.error.code);
  }
}

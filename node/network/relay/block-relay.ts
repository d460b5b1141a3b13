/**
 * Work blocks between peers: header and short identifiers by gossip. The header and its work are checked before
 * anything is requested; then the body is assembled from transactions in the mempool, and missing ones are requested
 * from the peer that sent it. If that peer does not deliver, the next that announces the block is asked. It is relayed
 * once it was accepted.
 */

import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { attempt, ProtocolError } from '../../../protocol/errors.ts';
import { type Body, decodeBody, encodeBody } from '../../../protocol/ledger/body.ts';
import { blockId, decodeHeader, HEADER_BYTES } from '../../../protocol/ledger/header.ts';
import { transactionIdOfWire } from '../../../protocol/transactions/transaction.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { Submission } from '../../full-node.ts';
import { isWindowOpen, nameOf } from '../../ledger/registration.ts';
import { isSendersFault, WRONG_BODY } from '../../mining/candidate.ts';
import type { ConsensusNode } from '../../node.ts';
import { blame, type PeerAsking, PeerFault } from '../peers/peer-fault.ts';
import { type AnsweredBlock, decodeBlocksAnswer } from '../sync/sync-messages.ts';
import type { Finding, PeerName, Topic } from '../thread/host-types.ts';
import {
  decodeShortBlock,
  decodeWires,
  encodeRelayQuestion,
  encodeShortBlock,
  type ShortBlock,
  shortName,
} from './relay-messages.ts';

/**
 * Blocks of one peer that are checked and fetched at once; others can be fetched from the next peer that announces
 * them.
 */
const PER_PEER = 16;
/**
 * A peer drops a block that no cut took in its window. It may be cuts ahead, and asked late because others announced
 * the block first: then it is not to blame.
 */
const CLOSING_CUTS = 8;
/** Second blocks that can be delivered, of a mebibyte each at most: every one has cost its work. */
const MAX_SECONDS = 32;

export type BlockRelayDependencies = {
  readonly node: Pick<ConsensusNode, 'chain' | 'mempool' | 'submitBlock' | 'ledger' | 'on'>;
  readonly network: PeerAsking & { publish(topic: Topic, data: Bytes): void };
  isSynced(): boolean;
};

export class BlockRelay {
  readonly #with: BlockRelayDependencies;
  /** Waiting transactions by the first bytes of their identifiers. */
  readonly #short = new Map<string, Bytes>();
  readonly #unsubscribe: (() => void)[];
  readonly #judged = new Map<PeerName, number>();
  /** Blocks with the body of another: handed on, and not in the store. */
  readonly #seconds = new BoundedMap<string, AnsweredBlock>(MAX_SECONDS);

  constructor(dependencies: BlockRelayDependencies) {
    this.#with = dependencies;
    const { node } = dependencies;
    for (const { id } of node.mempool.list()) this.#short.set(shortName(id), id);
    this.#unsubscribe = [
      node.on('mempoolAdded', ({ id }) => this.#short.set(shortName(id), id)),
      node.on('mempoolRemoved', ({ id }) => this.#short.delete(shortName(id))),
      node.on('block', ({ id, header }) => this.#announce(id, header)),
    ];
  }

  second(id: Bytes): AnsweredBlock | undefined {
    return this.#seconds.get(nameOf(id));
  }

  get judged(): number {
    return [...this.#judged.values()].reduce((all, one) => all + one, 0);
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  /** If it arrived by gossip, it is the same message, which the library does not send twice. */
  #announce(id: Bytes, header: Bytes): void {
    const body = this.#with.isSynced() ? this.#with.node.chain.blockBody(id) : undefined;
    if (body !== undefined) this.#with.network.publish('blocks', encodeShortBlock(header, decodeBody(body)));
  }

  async judge(peer: PeerName, data: Bytes): Promise<Finding> {
    const { network } = this.#with;
    if (!this.#with.isSynced()) return 'ignore';
    const judged = this.#judged.get(peer) ?? 0;
    if (judged >= PER_PEER) return 'undelivered';
    this.#judged.set(peer, judged + 1);
    try {
      return await this.#look(peer, data);
    } catch (error) {
      blame(network, peer, error);
      return 'undelivered';
    } finally {
      const left = (this.#judged.get(peer) ?? 1) - 1;
      if (left > 0) this.#judged.set(peer, left);
      else this.#judged.delete(peer);
    }
  }

  async #look(peer: PeerName, data: Bytes): Promise<Finding> {
    const { network, node } = this.#with;
    // The names behind the header cost most: they are read when its work is known.
    const header = data.subarray(0, HEADER_BYTES);
    if (header.length < HEADER_BYTES) return this.#malformed(peer, `a header has ${HEADER_BYTES} bytes`);
    const id = blockId(header);
    if (node.chain.block(id) !== undefined || this.second(id) !== undefined) return 'ignore';
    const wrong = await node.ledger.examineHeader(header);
    if (wrong !== undefined) {
      if (!isSendersFault(wrong.code)) return 'ignore';
      network.fault(peer, 'bad_block', wrong.code);
      return 'reject';
    }
    const block = attempt(() => decodeShortBlock(data));
    if (!block.ok) return this.#malformed(peer, block.error.message);
    await this.#fetchParents(peer, block.value.parents);
    return await this.#takeIn(peer, id, block.value, data);
  }

  #malformed(peer: PeerName, reason: string): Finding {
    this.#with.network.fault(peer, 'malformed', reason);
    return 'reject';
  }

  async #takeIn(peer: PeerName, id: Bytes, block: ShortBlock, data: Bytes): Promise<Finding> {
    const { node, network } = this.#with;
    const transactions = await this.#transactions(peer, id, block.shortIds);
    const assembled = transactions && attempt(() => encodeBody({ ...block, transactions }));
    let body: Bytes | undefined = assembled?.ok ? assembled.value : undefined;
    let outcome = body && (await node.submitBlock(block.header, body, 'relayed'));
    let isTrue = true;
    // Not the header's body: short identifiers collided, witnesses differ, or the miner announced its block wrongly.
    if (outcome === undefined || (outcome.status === 'refused' && WRONG_BODY.has(outcome.error.code))) {
      const fetched = await fetchBlock(peer, id, node, network);
      [outcome, body] = [fetched?.outcome, fetched?.body];
      isTrue = body !== undefined && equalBytes(encodeShortBlock(block.header, decodeBody(body)), data);
    }
    if (outcome === undefined) {
      if (node.chain.block(id) !== undefined) return 'ignore';
      const { anchorHeight } = decodeHeader(block.header);
      if (!isWindowOpen(anchorHeight, node.chain.head().height + CLOSING_CUTS)) return 'undelivered';
      throw new PeerFault(peer, 'undelivered', 'it does not have the block that it announced');
    }
    // Everybody has to know of two blocks with one body: honest ones build on neither. Each of them cost its work.
    const isSecond = outcome.status === 'refused' && outcome.error.code === 'body_used';
    if (isSecond && body !== undefined) {
      this.#seconds.set(nameOf(id), { header: block.header, body });
      if (!isTrue) network.publish('blocks', encodeShortBlock(block.header, decodeBody(body)));
    }
    if (outcome.status !== 'refused' || isSecond)
      // A wrong announcement is not handed on: the next node would blame this one. It hears of the block by this node's own.
      return isTrue ? 'accept' : 'ignore';
    // Another peer may have the body that belongs to the header.
    if (isSendersFault(outcome.error.code)) throw new PeerFault(peer, 'bad_block', outcome.error.code);
    return 'ignore';
  }

  /** Undefined if some did not arrive, or others than those that were announced. */
  async #transactions(
    peer: PeerName,
    id: Bytes,
    shortIds: readonly string[],
  ): Promise<Body['transactions'] | undefined> {
    const { node, network } = this.#with;
    const wires = shortIds.map((name) => {
      const found = this.#short.get(name);
      return found && node.mempool.get(found)?.wire;
    });
    const indexes = wires.flatMap((wire, index) => (wire === undefined ? [index] : []));
    if (indexes.length > 0) {
      const answer = await network.ask(peer, 'relay', encodeRelayQuestion({ type: 'carried', block: id, indexes }));
      for (const [i, wire] of decodeWires(answer, indexes.length).entries()) {
        const index = indexes[i] as number;
        if (wire !== undefined && shortName(transactionIdOfWire(wire)) === shortIds[index]) wires[index] = wire;
      }
    }
    return wires.every((wire) => wire !== undefined) ? wires : undefined;
  }

  /**
   * Requests a missing parent directly, which is faster than waiting for another peer; its own parents are not
   * requested.
   */
  async #fetchParents(peer: PeerName, parents: Body['parents']): Promise<void> {
    const { node, network } = this.#with;
    for (const parent of parents)
      if (node.chain.block(parent) === undefined) await fetchBlock(peer, parent, node, network);
  }
}

/** Asks a peer for a block and submits it. Undefined if the peer does not have it; its fault is thrown. */
export async function fetchBlock(
  peer: PeerName,
  id: Bytes,
  node: Pick<ConsensusNode, 'submitBlock'>,
  network: Pick<PeerAsking, 'ask'>,
): Promise<{ readonly outcome: Submission; readonly body: Bytes } | undefined> {
  const question = encodeRelayQuestion({ type: 'block', block: id });
  const [block] = decodeBlocksAnswer(await network.ask(peer, 'relay', question));
  if (block === undefined) return undefined;
  if (!equalBytes(blockId(block.header), id)) throw new ProtocolError('not_canonical', 'another block');
  const outcome = await node.submitBlock(block.header, block.body, 'relayed');
  if (outcome.status === 'refused' && isSendersFault(outcome.error.code))
    throw new PeerFault(peer, 'bad_block', outcome.error.code);
  return { outcome, body: block.body };
}

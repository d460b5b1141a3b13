/** A chain whose every cut has a block with a payment in it, for nodes that join late. */

import type { UnspentOutput } from '../../node/full-node.ts';
import { type DevelopmentGenesis, developmentKey } from '../../node/genesis/development.ts';
import type { NetworkDependencies } from '../../node/network/open-network.ts';
import type { ConsensusNode } from '../../node/node.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { decodeTransaction, type Output, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { payment } from '../node/bed.ts';
import { fundsOf, NetBed, type NetNode } from './peers.ts';

const BOB = developmentKey('bob').address;

/** Cuts with one block each, which carries one payment of what an earlier one gave back. */
export class PayingChain {
  readonly bed: NetBed;
  #purses: UnspentOutput[] = [];
  #next = 0;

  constructor(genesis: Partial<DevelopmentGenesis> = {}) {
    this.bed = new NetBed({ ...fundsOf(0), ...genesis });
  }

  async start(alter?: (node: ConsensusNode) => Partial<NetworkDependencies>): Promise<NetNode> {
    const source = await this.bed.start('source', {}, alter);
    const { chain } = source.node;
    const first = chain.genesis.outputs.length - 64;
    this.#purses = chain.genesis.outputs.slice(first).map((output, i) => ({
      outpoint: genesisOutpoint(chain.chainId, first + i),
      ...output,
      source: 'genesis',
    }));
    return source;
  }

  /** A payment that waits at the node. */
  async pay(source: Pick<NetNode, 'node'>): Promise<Bytes> {
    const at = this.#next++ % this.#purses.length;
    const wire = payment(source.node.chain, [this.#purses[at] as UnspentOutput], [{ address: BOB, amount: 5n }]);
    const { status } = await source.node.submitTransaction(wire);
    if (status !== 'accepted') throw new Error(`a payment is ${status}`);
    const change = decodeTransaction(wire).body.outputs[1] as Output;
    const outpoint = { transactionId: transactionIdOfWire(wire), outputIndex: 1 };
    this.#purses[at] = { outpoint, ...change, source: 'regular' };
    return outpoint.transactionId;
  }

  async seal(source: Pick<NetNode, 'node'>): Promise<void> {
    await this.pay(source);
    await this.bed.seal(source, 1, 1);
  }
}

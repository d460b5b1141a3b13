/** A chain whose every cut has a block with a payment in it, for nodes that join late. */
import { developmentKey } from '../../node/development.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import type { NetworkDependencies } from '../../node/network/open-network.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { genesisOutpoint } from '../../protocol/genesis.ts';
import { decodeTransaction, type Output, transactionIdOfWire } from '../../protocol/transaction.ts';
import { payment } from '../node/bed.ts';
import { fundsOf, NetBed, type NetNode } from './peers.ts';

const BOB = developmentKey('bob').address;

/** Cuts with one block each, which carries one payment of what an earlier one gave back. */
export class PayingChain {
  readonly bed = new NetBed(fundsOf(0));
  #purses: UnspentOutput[] = [];
  #next = 0;

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

  async seal(source: NetNode): Promise<void> {
    const at = this.#next++ % this.#purses.length;
    const wire = payment(source.node.chain, [this.#purses[at] as UnspentOutput], [{ address: BOB, amount: 5n }]);
    const { status } = await source.node.submitTransaction(wire);
    if (status !== 'accepted') throw new Error(`a payment is ${status}`);
    const change = decodeTransaction(wire).body.outputs[1] as Output;
    const outpoint = { transactionId: transactionIdOfWire(wire), outputIndex: 1 };
    this.#purses[at] = { outpoint, ...change, source: 'regular' };
    await this.bed.seal(source, 1, 1);
  }
}

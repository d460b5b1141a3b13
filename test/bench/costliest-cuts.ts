/** Cuts that carry as many signatures as ledger rule 43 admits, on the bare ledger and with nothing checked ahead. */

import type { UnspentOutput } from '../../node/full-node.ts';
import { type DevelopmentKey, developmentGenesis, developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { readTransaction, readWorkBlock } from '../../node/ledger/work-block.ts';
import { VerifiedTransactions } from '../../node/mempool/witness-check.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { encodeBody, MAX_BODY_BYTES, transactionsRoot } from '../../protocol/ledger/body.ts';
import { MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { falseEighths, PER_BLOCK } from '../attack/costly-blocks.ts';
import { payment } from '../node/bed.ts';
import { MemoryLedger } from '../node/memory-ledger.ts';

const START_MILLIS = 1_800_000_000_000;
const AMOUNT = 1_000_000_000n;
const ROOM = MAX_BODY_BYTES - 1_000;
const payer = (i: number): DevelopmentKey => developmentKey(`payer ${i}`);
const treasury = developmentKey(TREASURY);

export type Costs = {
  readonly first: number;
  readonly again: number;
  readonly signatures: number;
  readonly bytes: number;
};

/** A ledger on which so many payers have an output each, and the treasury's key is registered. */
class Costly {
  readonly ledger: MemoryLedger;
  readonly #outputs: readonly Output[];

  constructor(payers: number) {
    const fund = Array.from({ length: payers }, (_, i) => ({ address: payer(i).address, amount: AMOUNT }));
    const genesis = developmentGenesis({ timestampMillis: START_MILLIS, validators: 1, fund });
    this.#outputs = genesis.outputs;
    this.ledger = new MemoryLedger(genesis);
    this.ledger.next({ blocks: this.blocks([payment(this.chain, [this.output(payers + 63)], [])]) });
  }

  get chain() {
    const { chainId, height } = this.ledger.state;
    return { chainId, head: () => ({ height }) } as Parameters<typeof payment>[0];
  }

  output(index: number): UnspentOutput {
    const outpoint = genesisOutpoint(this.ledger.state.chainId, index);
    return { ...(this.#outputs[index] as Output), outpoint, source: 'genesis' };
  }

  /** As few as hold them. */
  blocks(wires: readonly Bytes[]) {
    const { chainId, height } = this.ledger.state;
    const bodies: Bytes[][] = [[]];
    let bytes = 0;
    for (const wire of wires) {
      if (bytes + wire.length + 4 > ROOM) {
        bodies.push([]);
        bytes = 0;
      }
      bodies.at(-1)?.push(wire);
      bytes += wire.length + 4;
    }
    return bodies.map((transactions, i) => {
      const [payout, extranonce, zero] = [treasury.address, Uint8Array.of(0, i), new Uint8Array(48)];
      const header = encodeHeader({
        networkId: 4,
        anchorHeight: height,
        timestampMillis: START_MILLIS + 1,
        anchorId: zero,
        parentsRoot: zero,
        transactionsRoot: transactionsRoot({ transactions }),
        rewardRoot: rewardRoot(payout, extranonce),
        stateRoot: zero,
        target: 2n ** 250n,
        nonce: new Uint8Array(8),
      });
      const body = encodeBody({ payout, extranonce, parents: [], transactions });
      const read = readWorkBlock(header, body, (wire) => readTransaction(wire, chainId));
      return { ...read, hash: new Uint8Array(32).fill(i) };
    });
  }

  /** Milliseconds of processor time of this thread: other programs on the machine do not count. */
  costs(wires: readonly Bytes[]): Costs {
    const blocks = this.blocks(wires);
    const { check } = new VerifiedTransactions();
    const execute = (): number => {
      const before = process.threadCpuUsage();
      this.ledger.apply({ blocks }, check);
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / 1_000;
    };
    const signatures = blocks.reduce((sum, block) => sum + block.signatures, 0);
    const bytes = blocks.reduce((sum, { bodyBytes }) => sum + bodyBytes.length, 0);
    return { first: execute(), again: execute(), signatures, bytes };
  }
}

/** Blocks that execute nothing: seven good signatures and a false eighth. */
export function falseCut(blocks = Math.floor(MAX_CUT_SIGNATURES / (8 * PER_BLOCK))): Costs {
  const costly = new Costly(0);
  const spends = Array.from({ length: 8 }, (_, i) => costly.output(i));
  return costly.costs(
    Array.from({ length: blocks }, (_, b) => falseEighths(costly.chain, spends, b * PER_BLOCK)).flat(),
  );
}

/** Payments of as many keys as there are signatures, each with as many new outputs as it may have. */
export function paidCut(payments = MAX_CUT_SIGNATURES): Costs {
  const costly = new Costly(payments);
  const outputs = Array.from({ length: 7 }, () => ({ address: treasury.address, amount: 1_000n }));
  const wires = Array.from({ length: payments }, (_, i) =>
    payment(costly.chain, [costly.output(i)], outputs, { key: payer(i) }),
  );
  return costly.costs(wires);
}

/**
 * Payments without end, as full of signatures as bodies can be, and a hash rate that rises. A cut takes as many signatures as four such bodies have
 * (ledger rule 43), and the target is made from what cuts register (rule 39): if all bodies were full, cuts would register four blocks whatever the
 * hash rate is, the target would stand still, and what is found beyond that would be lost for as long as the payments come.
 */
import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Head } from '../../node/full-node.ts';
import { chooseBlocks } from '../../node/ledger/registration.ts';
import { blockWork, initialRate, nextRate } from '../../node/ledger/retarget.ts';
import type { ReadTransaction } from '../../node/ledger/work-block.ts';
import { Mempool } from '../../node/mempool/mempool.ts';
import { TemplateMaker } from '../../node/mining/template.ts';
import { type WaitingBlock, WorkPool } from '../../node/mining/work-pool.ts';
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { type Bytes, bigintToBytesBE, utf8 } from '../../protocol/bytes.ts';
import { MAX_TARGET } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { wireBytesOf } from '../../protocol/transactions/fee.ts';
import { MAX_INPUTS } from '../../protocol/transactions/transaction.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { seed } from '../level.ts';
import { randomFrom } from '../random.ts';
import { poisson } from './retarget-simulation.ts';

useNativeSha384();

const CUT_MILLIS = 2_500;
const FIRST_WORK = 250_000n;
const idOf = (name: string): Bytes => new Uint8Array(hash('sha384', name, 'buffer'));
const head = (height: number): Head => ({
  height,
  cutId: idOf('cut'),
  stateRoot: idOf('state'),
  validatorSetId: idOf('validators'),
  timestampMillis: height * CUT_MILLIS,
  target: MAX_TARGET,
});

/** Payments of eight inputs with registered keys: nothing has more signatures in its bytes. */
function fullMempool(): Mempool {
  const mempool = new Mempool(
    { maxBytes: 2 ** 28, cutMillis: CUT_MILLIS },
    { now: () => 0, onAdded: () => undefined, onRemoved: () => undefined },
  );
  const witnesses = Array.from({ length: MAX_INPUTS }, () => 'referenced' as const);
  const wire = new Uint8Array(wireBytesOf({ witnesses, inputs: MAX_INPUTS, outputs: 1, payloadBytes: 0 }));
  for (let i = 0; i < 100; i++) {
    const leaf = idOf(`payment ${i}`);
    const body = { inputs: [], validUntilHeight: 1_000_000 };
    const read = { name: `${i}`, id: leaf, leaf, wire, mass: wire.length, signatures: MAX_INPUTS, body };
    mempool.add(read as unknown as ReadTransaction, [], BigInt(wire.length) * 10n, 'own');
  }
  return mempool;
}

/** Miners that take one template for each cut, with the node's own choice of transactions, blocks and targets. */
class Miners {
  readonly pool = new WorkPool({ maxBlocks: 4_096, maxBytes: 2 ** 40 });
  found = 0;
  expired = 0;
  signatures = 0;
  rate = initialRate(FIRST_WORK);
  #height = 0;
  readonly #random = randomFrom(seed);
  readonly #templates: TemplateMaker;
  /** Registered for the last anchor by the first cut after it. */
  #newest = 0;
  /** Of the blocks on each anchor. */
  readonly #works: bigint[] = [];

  constructor() {
    this.#templates = new TemplateMaker({
      network: NETWORKS.development,
      powEpochLength: 1_000_000,
      mempool: fullMempool(),
      pool: this.pool,
      now: () => this.#height * CUT_MILLIS,
      steady: () => this.#height * CUT_MILLIS,
      random: this.#random,
      isRegistered: () => true,
      openAnchors: () => [],
    });
  }

  #uniform(): number {
    return (this.#random(2 ** 30) + 0.5) / 2 ** 30;
  }

  #mine(work: bigint, hashes: number): void {
    const payout = new Uint8Array(ADDRESS_PAYLOAD_BYTES);
    const { transactionCount } = this.#templates.make(head(this.#height), { payout, maxTransactions: 10_000 });
    const found = poisson(hashes / Number(work), () => this.#uniform());
    for (let i = 0; i < found; i++) {
      const id = idOf(`block ${this.found++}`);
      this.pool.add({
        id,
        bodyId: id,
        header: { anchorHeight: this.#height },
        hash: bigintToBytesBE((MAX_TARGET / work / 2n ** 40n) * BigInt(this.#random(2 ** 40)), 32),
        body: { parents: [] },
        bodyBytes: utf8(''),
        transactions: [],
        signatures: transactionCount * MAX_INPUTS,
      } as unknown as WaitingBlock);
    }
  }

  cut(hashes: number): void {
    const work = blockWork(this.rate);
    this.#mine(work, hashes);
    const anchor = this.#height++;
    this.#works.push(work);
    const chosen = chooseBlocks(this.pool.list(), this.#height, () => true, new Set());
    const on = (height: number) => chosen.filter(({ header }) => header.anchorHeight === height);
    let registered = 0n;
    for (const block of chosen) {
      registered += this.#works[block.header.anchorHeight] as bigint;
      this.signatures += block.signatures;
      this.pool.forget(block.id);
    }
    const newest = on(anchor).length;
    const blocksBefore = this.#newest + on(anchor - 1).length;
    this.#newest = newest;
    this.rate = nextRate(this.rate, registered, { work: work * BigInt(newest), blocks: newest, blocksBefore }, 64n);
    for (const { id } of this.pool.closedAt(this.#height)) {
      this.expired++;
      this.pool.forget(id);
    }
  }
}

test('the target follows a rise of the hash rate while all bodies could be full of signatures, and no block is lost', () => {
  const miners = new Miners();
  const cuts = (count: number, hashes: number) => {
    for (let i = 0; i < count; i++) miners.cut(hashes);
  };
  const before = Number(FIRST_WORK) * 4;
  cuts(60, before);
  // Cuts stay nearly full: the room is used, and not given up.
  expect(miners.signatures / 60).toBeGreaterThan(850);
  for (const rise of [2, 6]) {
    cuts(150, before * rise);
    const followed = (Number(blockWork(miners.rate)) * 4) / (before * rise);
    expect(followed).toBeGreaterThan(0.75);
    expect(followed).toBeLessThan(1.4);
  }
  expect(miners.expired).toBe(0);
  expect(miners.pool.count).toBeLessThan(32);
});

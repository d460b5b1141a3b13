/**
 * What templates carry while others fill blocks with signatures: honest ones, and a stranger's.
 *
 * Payments without end, as full of signatures as bodies can be, and a hash rate that rises. A cut takes as many signatures as four such bodies have
 * (ledger rule 43), and the target is made from what cuts register (rule 39): if all bodies were full, cuts would register four blocks whatever the
 * hash rate is, the target would stand still, and what is found beyond that would be lost for as long as the payments come.
 */
import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Head } from '../../node/full-node.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import { chooseBlocks, nameOf } from '../../node/ledger/registration.ts';
import { blockWork, initialRate, nextRate } from '../../node/ledger/retarget.ts';
import type { ReadTransaction } from '../../node/ledger/work-block.ts';
import { type Entry, HELD_CUTS, Mempool } from '../../node/mempool/mempool.ts';
import { TemplateMaker } from '../../node/mining/template.ts';
import { type WaitingBlock, WorkPool } from '../../node/mining/work-pool.ts';
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { type Bytes, bigintFromBytesBE, bigintToBytesBE, utf8 } from '../../protocol/bytes.ts';
import { MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import { MAX_TARGET } from '../../protocol/ledger/target.ts';
import { NETWORKS, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { wireBytesOf } from '../../protocol/transactions/fee.ts';
import { MAX_INPUTS } from '../../protocol/transactions/transaction.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { repeats, seed } from '../level.ts';
import { randomFrom } from '../random.ts';
import { poisson } from './retarget-simulation.ts';

useNativeSha384();

const CUT_MILLIS = 2_500;
const FIRST_WORK = 250_000n;
/** The most signatures in the bytes of a body; those of templates here have fewer. */
const FULL = 316;
const idOf = (name: string): Bytes => new Uint8Array(hash('sha384', name, 'buffer'));
const head = (height: number, work: bigint): Head => ({
  height,
  cutId: idOf('cut'),
  stateRoot: idOf('state'),
  validatorSetId: idOf('validators'),
  timestampMillis: height * CUT_MILLIS,
  target: MAX_TARGET / work,
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

/** A hash of so much work, equally likely anywhere below its target. */
const hashOf = (work: bigint, random: (limit: number) => number): Bytes =>
  bigintToBytesBE((MAX_TARGET / work / 2n ** 40n) * BigInt(random(2 ** 40)), 32);

/** Miners that take one template for each cut, with the node's own choice of transactions, blocks and targets. */
class Miners {
  readonly pool = new WorkPool({ maxBlocks: 4_096, maxBytes: 2 ** 40 });
  readonly mempool = fullMempool();
  found = 0;
  expired = 0;
  /** Signatures that cuts took in blocks of templates. */
  ofTemplates = 0;
  /** In how many cuts the payments of one who pays more than others were executed. */
  readonly waits: number[] = [];
  #victim: { readonly entry: Entry; readonly since: number } | undefined;
  signatures = 0;
  rate = initialRate(FIRST_WORK);
  height = 0;
  readonly #random: (limit: number) => number;
  readonly #templates: TemplateMaker;
  /** Registered for the last anchor by the first cut after it. */
  #newest = 0;
  /** Of the blocks on each anchor. */
  readonly works: bigint[] = [];

  constructor(random = randomFrom(seed)) {
    this.#random = random;
    this.#templates = new TemplateMaker({
      network: NETWORKS.development,
      powEpochLength: 1_000_000,
      mempool: this.mempool,
      pool: this.pool,
      now: () => this.height * CUT_MILLIS,
      steady: () => this.height * CUT_MILLIS,
      random,
      isRegistered: () => true,
      openAnchors: () => [],
    });
  }

  #uniform(): number {
    return (this.#random(2 ** 30) + 0.5) / 2 ** 30;
  }

  #mine(work: bigint, hashes: number): void {
    const payout = new Uint8Array(ADDRESS_PAYLOAD_BYTES);
    const request = { payout, maxTransactions: 10_000 };
    const { transactionCount, transactions } = this.#templates.make(head(this.height, work), request);
    const victim = this.#victim?.entry.read;
    const carried = victim !== undefined && transactions.includes(victim.wire) ? [victim] : [];
    for (const hash of this.find(hashes, this.height))
      this.send(hash, this.height, transactionCount * MAX_INPUTS, carried);
  }

  /** The hashes of the blocks that are found on an anchor. */
  find(hashes: number, anchorHeight: number): Bytes[] {
    const work = this.works[anchorHeight] as bigint;
    const found = poisson(hashes / Number(work), () => this.#uniform());
    return Array.from({ length: found }, () => hashOf(work, this.#random));
  }

  send(hash: Bytes, anchorHeight: number, signatures: number, transactions: readonly ReadTransaction[]): void {
    const id = idOf(`block ${this.found++}`);
    const [header, body, bodyBytes] = [{ anchorHeight }, { parents: [] }, utf8('')];
    const block = { id, bodyId: id, header, hash, body, bodyBytes, transactions, signatures };
    this.pool.add(block as unknown as WaitingBlock);
    this.mempool.carried(nameOf(id), transactions);
  }

  /** A payment that pays more than the others waits at all times. */
  pay(): ReadTransaction {
    if (this.#victim === undefined) {
      const name = `victim ${this.height}`;
      const [body, wire] = [{ inputs: [], validUntilHeight: 1_000_000 }, utf8(name.padEnd(5_000))];
      const read = {
        name: nameOf(idOf(name)),
        id: idOf(name),
        leaf: idOf(name),
        wire,
        mass: 5_000,
        signatures: 1,
        body,
      };
      this.mempool.add(read as unknown as ReadTransaction, [], 100_000n, 'own');
      this.#victim = { entry: this.mempool.get(read.id) as Entry, since: this.height };
    }
    return this.#victim.entry.read;
  }

  #leaves(id: Bytes): void {
    const block = this.pool.forget(id) as WaitingBlock;
    this.mempool.released(nameOf(id), block.transactions);
  }

  cut(hashes: number, stranger?: () => void): void {
    const work = blockWork(this.rate);
    this.works.push(work);
    stranger?.();
    this.#mine(work, hashes);
    const anchor = this.height++;
    const chosen = chooseBlocks(this.pool.list(), this.height, () => true, new Set());
    const on = (height: number) => chosen.filter(({ header }) => header.anchorHeight === height);
    let registered = 0n;
    for (const block of chosen) {
      registered += this.works[block.header.anchorHeight] as bigint;
      this.signatures += block.signatures;
      if (block.signatures !== FULL) this.ofTemplates += block.signatures;
      this.#leaves(block.id);
    }
    const newest = on(anchor).length;
    const blocksBefore = this.#newest + on(anchor - 1).length;
    this.#newest = newest;
    this.rate = nextRate(this.rate, registered, { work: work * BigInt(newest), blocks: newest, blocksBefore }, 64n);
    for (const { id } of this.pool.closedAt(this.height)) {
      this.expired++;
      this.#leaves(id);
    }
    const victim = this.#victim;
    const isExecuted =
      victim !== undefined && chosen.some(({ transactions }) => transactions.includes(victim.entry.read));
    const transactions = isExecuted ? [{ id: victim.entry.id, outcome: 'executed' }] : [];
    this.mempool.settle({ transactions, spent: [], header: { height: this.height } } as unknown as CutEffects);
    if (victim === undefined || !isExecuted) return;
    this.waits.push(this.height - victim.since);
    this.#victim = undefined;
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

test('whoever has a tenth of the hash rate, and full blocks on the easy anchors of before a rise, leaves half of each cut to the templates of others', () => {
  const miners = new Miners();
  const before = Number(FIRST_WORK) * 4;
  for (let i = 0; i < REGISTRATION_WINDOW; i++) miners.cut(before);
  const stranger = () => {
    const oldest = Math.max(0, miners.height - REGISTRATION_WINDOW + 1);
    for (const hash of miners.find(before, oldest)) miners.send(hash, oldest, FULL, []);
  };
  const from = miners.ofTemplates;
  for (let i = 0; i < REGISTRATION_WINDOW; i++) miners.cut(before * 9, stranger);
  expect((miners.ofTemplates - from) / REGISTRATION_WINDOW).toBeGreaterThan(MAX_CUT_SIGNATURES / 2);
});

test('a payment of an ordinary fee is executed within sixteen cuts, whatever a stranger does with up to two fifths of the hash rate', () => {
  let worst = 0;
  for (let run = 0; run < repeats({ quick: 1, full: 3, deep: 40 }); run++) {
    // The first of them kept a payment for 138 cuts, as long as blocks that carried it held it without end.
    const random = randomFrom(seed + 17 + run);
    const miners = new Miners(random);
    const before = Number(FIRST_WORK) * 4;
    let hashes = before;
    for (let i = 0; i < 40; i++) miners.cut(hashes);
    const share = (1 + random(40)) / 100;
    const kept: { hash: Bytes; anchor: number }[] = [];
    const age = [0, 1, 40, REGISTRATION_WINDOW - 1][random(4)] as number;
    const [isPicky, isSaving] = [random(2) === 1, random(2) === 1];
    for (let i = 0; i < 200; i++) {
      if (random(60) === 0) hashes = before * (1 + random(20));
      miners.cut(hashes * (1 - share), () => {
        const payment = miners.pay();
        const anchor = Math.max(0, miners.height - age);
        for (const hash of miners.find(hashes * share, anchor)) kept.push({ hash, anchor });
        if (isSaving && random(30) > 0) return;
        for (const { hash, anchor } of kept.splice(0)) {
          if (miners.height + 1 > anchor + REGISTRATION_WINDOW) continue;
          // Only what cuts take last shall carry the payment.
          const isLast = bigintFromBytesBE(hash) > MAX_TARGET / (miners.works.at(-1) as bigint);
          miners.send(hash, anchor, FULL, !isPicky || isLast ? [payment] : []);
        }
      });
    }
    worst = Math.max(worst, ...miners.waits);
  }
  expect(worst).toBeGreaterThan(1);
  expect(worst).toBeLessThanOrEqual(2 * HELD_CUTS);
});

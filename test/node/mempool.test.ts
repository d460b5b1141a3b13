/** Waiting transactions (ledger rules 36 and 50 to 54): the door, conflicts, expiry, bounds, the life cycle, the choice for templates. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Submission } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import type { ReadTransaction } from '../../node/ledger/work-block.ts';
import { operationsToRecheck } from '../../node/mempool/impossible-operations.ts';
import { type Entry, Mempool } from '../../node/mempool/mempool.ts';
import { type SelectionRules, selectTransactions } from '../../node/mempool/selection.ts';
import { DRAW_MILLIS } from '../../node/mining/template.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { burnAddressPayload } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { encodeOperation } from '../../protocol/staking/operation.ts';
import {
  decodeTransaction,
  encodeTransaction,
  encodeTransactionBody,
  type SingleWitness,
} from '../../protocol/transactions/transaction.ts';
import { randomOf } from '../random.ts';
import { Bed } from './bed.ts';

const alice = developmentKey('alice').address;
const bob = developmentKey('bob');
const pays = (amount = 5n) => [{ address: alice, amount }];

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open();
});
afterEach(async () => {
  await bed.close();
});

const codeOf = (outcome: Submission): string => (outcome.status === 'refused' ? outcome.error.code : outcome.status);
const idOf = (outcome: Submission): Bytes => (outcome.status === 'refused' ? new Uint8Array(48) : outcome.id);

test('what is wrong with a transaction is said at the door', async () => {
  const spend = bed.treasury(0);
  const send = async (wire: Bytes) => codeOf(await bed.node.submitTransaction(wire));
  expect(await send(new Uint8Array(10))).toBe('transaction_malformed');
  expect(await send(bed.payment([{ ...spend, outpoint: { ...spend.outpoint, outputIndex: 1 } }], pays()))).toBe(
    'input_unknown',
  );
  expect(await send(bed.payment([spend], pays(), { fee: 10n }))).toBe('fee_below_minimum');
  expect(await send(bed.payment([spend], pays(spend.amount + 1n), { change: false }))).toBe('amounts_exceed_inputs');
  expect(await send(bed.payment([spend], pays(), { validFrom: 2 }))).toBe('transaction_not_valid_yet');
  expect(await send(bed.payment([spend], pays(), { validUntil: 0 }))).toBe('transaction_expired');
  expect(await send(bed.payment([spend], pays(), { key: bob }))).toBe('witness_key_mismatch');
  expect(await send(bed.payment([spend], pays(), { profile: 'referenced' }))).toBe('witness_key_unregistered');
  const signed = decodeTransaction(bed.payment([spend], pays()));
  const [witness] = signed.witnesses as [SingleWitness];
  const broken = Uint8Array.from(witness.signature);
  broken[100] = (broken[100] as number) ^ 1;
  expect(await send(encodeTransaction({ ...signed, witnesses: [{ ...witness, signature: broken }] }))).toBe(
    'signature_invalid',
  );
  const operation = { ...signed.body, operation: encodeOperation({ name: 'exit', validator: new Uint8Array(48) }) };
  expect(await send(encodeTransaction({ body: operation, witnesses: [witness, witness] }))).toBe('validator_unknown');
  const elsewhere = { ...signed.body, chainId: new Uint8Array(48) };
  expect(encodeTransactionBody(elsewhere).length).toBeGreaterThan(0);
  expect(await send(encodeTransaction({ ...signed, body: elsewhere }))).toBe('transaction_malformed');
  expect(bed.node.mempool.count).toBe(0);
});

test('from mempool to finalized, with a key that is then referenced', async () => {
  const wire = bed.payment([bed.treasury(0)], [...pays(), { address: burnAddressPayload(), amount: 7n }]);
  const sent = await Promise.all([bed.node.submitTransaction(wire), bed.node.submitTransaction(wire)]);
  expect(sent.map(({ status }) => status).sort()).toEqual(['accepted', 'known']);
  const id = idOf(sent[0] as Submission);
  expect(bed.node.chain.transactionStatus(id)).toMatchObject({ lifecycle: 'processing', final: false });
  const block = await bed.mine(alice);
  expect(bed.node.chain.transactionStatus(id)).toMatchObject({ lifecycle: 'receiving', observedBlock: block });
  const cut = await bed.seal();
  expect(bed.node.chain.transactionStatus(id)).toMatchObject({
    lifecycle: 'finalized',
    observedBlock: block,
    finalizedCut: { height: 1, cutId: cut.cutId },
    final: true,
  });
  expect(cut.figures.burned).toBe(7n);
  expect(cut.keys.length).toBe(1);
  expect(bed.node.mempool.count).toBe(0);
  expect(codeOf(await bed.node.submitTransaction(wire))).toBe('known');
  expect(codeOf(await bed.pay([bed.treasury(0)], pays(6n)))).toBe('input_spent');
  const referenced = await bed.pay([bed.treasury(1)], pays(), { profile: 'referenced' });
  expect(referenced.status).toBe('accepted');
  await bed.mine(alice);
  expect((await bed.seal()).transactions).toMatchObject([{ outcome: 'executed' }]);
  await bed.reopen();
  expect(bed.node.chain.transactionStatus(id)).toMatchObject({ lifecycle: 'finalized' });
});

test('of two that spend the same output the first stays; in blocks the first executed wins and the other is a conflict', async () => {
  const first = await bed.pay([bed.treasury(0)], pays());
  expect(codeOf(await bed.pay([bed.treasury(0)], pays(9n), { feePerMass: 500n }))).toBe('input_conflict');
  const mined = bed.make(alice);
  await bed.reopen();
  // After a restart the mempool is empty, and the rival gets in and into a block.
  const rival = await bed.pay([bed.treasury(0)], pays(9n));
  expect(rival.status).toBe('accepted');
  await bed.node.submitBlock(mined.header, mined.body);
  const [lost, won] = [idOf(rival), idOf(first)];
  const cut = await bed.seal();
  expect(cut.lost).toMatchObject([{ id: lost, reason: 'conflict' }]);
  expect(bed.node.chain.transactionStatus(lost)).toMatchObject({
    lifecycle: 'failed',
    failure: 'conflict',
    final: true,
  });
  expect(bed.node.chain.transactionStatus(won)).toMatchObject({ lifecycle: 'finalized' });
});

test('two blocks of one cut with rival spends: one executes, the other fails as a conflict, both are registered', async () => {
  await bed.pay([bed.treasury(0)], pays());
  const one = bed.make(alice, 10, 1);
  await bed.reopen();
  await bed.pay([bed.treasury(0)], pays(9n));
  const two = bed.make(alice, 10, 2);
  for (const { header, body } of [one, two])
    expect(await bed.node.submitBlock(header, body)).toMatchObject({ status: 'accepted' });
  const cut = await bed.seal();
  expect(cut.registered.length).toBe(2);
  expect(
    cut.transactions.map((transaction) =>
      transaction.outcome === 'failed' ? transaction.reason : transaction.outcome,
    ),
  ).toEqual(['executed', 'conflict']);
});

test('a template leaves out what a waiting block carries, also if the block came first, or waited through a restart', async () => {
  const wire = bed.payment([bed.treasury(0)], pays());
  const offered = () => {
    bed.now += DRAW_MILLIS;
    return bed.node.template({ payout: alice, maxTransactions: 10 }).transactionCount;
  };
  await bed.node.submitTransaction(wire);
  expect(offered()).toBe(1);
  const { header, body } = bed.make(alice);
  await bed.reopen();
  await bed.node.submitBlock(header, body);
  for (let restarts = 0; restarts < 2; restarts++) {
    expect(codeOf(await bed.node.submitTransaction(wire))).toBe('accepted');
    expect(offered()).toBe(0);
    await bed.reopen();
  }
  // Without the block it is offered: what it carries was left to it, and not lost.
  const { ledger } = bed.node as ConsensusNode;
  expect(codeOf(await bed.node.submitTransaction(wire))).toBe('accepted');
  await ledger.forget([blockId(header)]);
  expect(offered()).toBe(1);
});

test('what no block took in time expires, and says so for good', async () => {
  const sent = await bed.pay([bed.treasury(0)], pays(), { validUntil: 2 });
  await bed.seal();
  expect(bed.node.mempool.count).toBe(1);
  const removed: string[] = [];
  bed.node.on('mempoolRemoved', (_, reason) => removed.push(reason));
  await bed.seal();
  expect(removed).toEqual(['expired']);
  expect(bed.node.chain.transactionStatus(idOf(sent))).toMatchObject({
    lifecycle: 'failed',
    failure: 'expired',
    final: true,
  });
});

test('memory is bounded: lower fee rates leave first, a newcomer that pays less is refused', async () => {
  await bed.close();
  bed = await Bed.open({ options: { mempoolBytes: 20_000 } });
  const sent = [];
  for (let i = 0; i < 3; i++) sent.push(await bed.pay([bed.treasury(i)], pays(), { feePerMass: BigInt(20 + i) }));
  expect(bed.node.mempool.count).toBe(3);
  expect(codeOf(await bed.pay([bed.treasury(3)], pays(), { feePerMass: 20n }))).toBe('mempool_full');
  // What would find no room costs no check of its signatures.
  const cheap = decodeTransaction(bed.payment([bed.treasury(3)], pays(), { feePerMass: 20n }));
  const unsigned = cheap.witnesses.map((witness) => ({
    ...(witness as SingleWitness),
    signature: new Uint8Array(3_309),
  }));
  expect(codeOf(await bed.node.submitTransaction(encodeTransaction({ ...cheap, witnesses: unsigned })))).toBe(
    'mempool_full',
  );
  expect(codeOf(await bed.pay([bed.treasury(4)], pays(), { feePerMass: 30n }))).toBe('accepted');
  expect(bed.node.chain.transactionStatus(idOf(sent[0] as Submission))).toMatchObject({
    lifecycle: 'failed',
    failure: 'dropped',
    final: false,
  });
  expect(bed.node.mempool.bytes).toBeLessThanOrEqual(20_000);
});

/** A mempool by hand: what waits is named, paid at a rate and came at a time. */
function waitingRoom() {
  let now = 0;
  const random = randomOf(3);
  const left: string[] = [];
  const mempool = new Mempool(
    { maxBytes: 1_000_000, cutMillis: 2_500 },
    { now: () => now, onAdded: () => undefined, onRemoved: (entry) => left.push(entry.name) },
  );
  const add = (name: string, rate: bigint, origin: 'own' | 'relayed', at: number, bytes = 5_000): boolean => {
    now = at;
    const read = {
      name,
      id: utf8(name),
      wire: new Uint8Array(bytes),
      mass: 1,
      signatures: 2,
      body: { inputs: [], validUntilHeight: 9 },
    };
    return mempool.add(read as unknown as ReadTransaction, [], rate, origin);
  };
  const chosen = (rules: Partial<SelectionRules> = {}): string[] =>
    selectTransactions(mempool.groups(), {
      maxTransactions: 100,
      maxBytes: 1_000_000,
      maxSignatures: 1_000,
      ownWaits: mempool.oldestOwnMillis() !== undefined,
      random,
      ...rules,
    }).map(({ name }) => name);
  return { mempool, add, chosen, left };
}

const carrying = (name: string, bytes = 5_000) => [{ name, wire: new Uint8Array(bytes) } as unknown as ReadTransaction];

test('selection: fee rate, own before relayed, the ageing rule, a random draw inside a group', () => {
  const { mempool, add, chosen } = waitingRoom();
  add('aged', 20n, 'relayed', 7_500);
  add('fresh', 20n, 'relayed', 7_501);
  add('own', 20n, 'own', 10_000);
  add('cheap', 10n, 'own', 10_000);
  add('newer', 20n, 'relayed', 20_000);
  const orders = new Set<string>();
  for (let i = 0; i < 40; i++) {
    const names = chosen();
    expect(new Set(names.slice(0, 2))).toEqual(new Set(['own', 'aged']));
    expect(new Set(names.slice(2, 4))).toEqual(new Set(['fresh', 'newer']));
    expect(names[4]).toBe('cheap');
    orders.add(names.join());
  }
  expect(orders.size).toBe(4);
  expect(chosen({ maxTransactions: 3 }).length).toBe(3);
  // What a waiting block carries is left to it, and comes back to its own group with the last block that carried it.
  mempool.carried('other bytes under the same name', carrying('aged', 4_999));
  expect(chosen()).toContain('aged');
  for (const block of ['a', 'b']) mempool.carried(block, carrying('aged'));
  expect(chosen()).not.toContain('aged');
  mempool.released('a', carrying('aged'));
  expect(chosen()).not.toContain('aged');
  mempool.released('b', carrying('aged'));
  expect(chosen().slice(0, 2)).toContain('aged');
});

test('selection: with nothing of its own the node has nothing to age against', () => {
  const { mempool, add, chosen } = waitingRoom();
  for (const [i, name] of ['a', 'b', 'c'].entries()) add(name, 20n, 'relayed', i);
  const firsts = () => new Set(Array.from({ length: 60 }, () => chosen()[0]));
  expect(firsts()).toEqual(new Set(['a', 'b', 'c']));
  add('own', 20n, 'own', 2_501);
  for (let i = 0; i < 20; i++) expect(chosen()[3]).toBe('c');
  // The only own one is carried by a block and so still waits; then it has left, and all are equal again.
  mempool.carried('block', carrying('own'));
  for (let i = 0; i < 20; i++) expect(chosen()[2]).toBe('c');
  mempool.settle({
    transactions: [{ id: utf8('own'), outcome: 'executed' }],
    spent: [],
    header: { height: 1 },
  } as unknown as CutEffects);
  expect(firsts()).toEqual(new Set(['a', 'b', 'c']));
});

test('selection: no more signatures than there is room for, also of those that an earlier choice had', () => {
  const { mempool, add, chosen } = waitingRoom();
  for (let i = 0; i < 9; i++) add(`${i}`, BigInt(20 - i), 'own', 1);
  expect(chosen({ maxSignatures: 7 })).toEqual(['0', '1', '2']);
  expect(chosen({ maxSignatures: 1 })).toEqual([]);
  const kept = [...mempool.list()].slice(3);
  const rules = { maxTransactions: 100, maxBytes: 1_000_000, ownWaits: true, random: randomOf(1) };
  const again = (maxSignatures: number) =>
    selectTransactions(mempool.groups(), { ...rules, maxSignatures }, kept).map(({ name }) => name);
  expect(again(4)).toEqual(['3', '4']);
  expect(again(14)).toEqual(['3', '4', '5', '6', '7', '8', '0']);
});

test('selection: what does not fit is passed over, and a full body is not searched for ever', () => {
  const { add, chosen } = waitingRoom();
  add('large', 20n, 'own', 1, 60_000);
  add('small', 20n, 'own', 1);
  expect(chosen({ maxBytes: 20_000 })).toEqual(['small']);
  const full = waitingRoom();
  for (let i = 0; i < 280; i++) full.add(`${i}`, 20n, 'own', 1, 3_500);
  let drawn = 0;
  const random = (limit: number) => {
    drawn++;
    return limit - 1;
  };
  expect(full.chosen({ maxBytes: 7_000, random }).length).toBe(1);
  expect(drawn).toBe(258);
});

test('the newest relayed one of the lowest rate leaves first, then the newest own one', () => {
  const { add, left } = waitingRoom();
  for (let i = 0; i < 100; i++) add(`own${i}`, 10n, 'own', i, 5_000);
  for (let i = 0; i < 100; i++) add(`relayed${i}`, 10n, 'relayed', 100 + i, 5_000);
  for (let i = 0; i < 150; i++) expect(add(`better${i}`, 11n, 'relayed', 300, 5_000)).toBe(true);
  expect(left).toEqual([
    ...Array.from({ length: 100 }, (_, i) => `relayed${99 - i}`),
    ...Array.from({ length: 50 }, (_, i) => `own${99 - i}`),
  ]);
  expect(add('worse', 9n, 'own', 400)).toBe(false);
});

test('a newcomer that does not get in moves nobody out', () => {
  const { add, left } = waitingRoom();
  add('cheap', 10n, 'own', 1, 5_000);
  for (let i = 0; i < 199; i++) add(`dear${i}`, 30n, 'relayed', 2, 5_000);
  expect(add('large', 20n, 'relayed', 3, 60_000)).toBe(false);
  expect(left).toEqual([]);
  expect(add('small', 20n, 'relayed', 4, 5_000)).toBe(true);
  expect(left).toEqual(['cheap']);
});

test('a heartbeat that a waiting block carries is looked at again when its epoch ends', () => {
  const { mempool } = waitingRoom();
  const body = { inputs: [], validUntilHeight: 99 };
  const operation = { name: 'heartbeat', validator: new Uint8Array(48), epoch: 0 };
  const read = { name: 'beat', id: utf8('beat'), wire: new Uint8Array(5_000), mass: 1, body, operation };
  mempool.add(read as unknown as ReadTransaction, [], 10n, 'own', operation.validator);
  mempool.carried('block', carrying('beat'));
  const after = (height: number) =>
    operationsToRecheck(
      { staking: { validators: [], positions: [] }, header: { height } } as unknown as CutEffects,
      mempool,
      () => undefined,
      24,
    ).map(({ name }) => name);
  expect([after(22), after(23), after(24)]).toEqual([[], ['beat'], []]);
});

test('what has left is not kept in memory, however many fee rates there are', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { mempool, add } = waitingRoom();
  const gone: WeakRef<object>[] = [];
  for (let rate = 1n; rate <= 40n; rate++) {
    add(`stays ${rate}`, rate, 'relayed', 1, 1_000);
    for (let i = 0; i < 16; i++) {
      add(`${rate} ${i}`, rate, 'relayed', 2, 1_000);
      const entry = mempool.get(utf8(`${rate} ${i}`)) as Entry;
      gone.push(new WeakRef(entry.wire));
      mempool.drop(entry, 'evicted');
    }
  }
  expect(mempool.count).toBe(40);
  // What a weak reference names stays for the rest of the turn.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  // Sixteen of each rate, all 640, were kept; the last one may still be on the stack.
  expect(gone.filter((wire) => wire.deref() !== undefined).length).toBeLessThan(40);
});

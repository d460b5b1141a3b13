/** Waiting transactions (ledger rules 36 and 50 to 54): the door, conflicts, expiry, bounds, the life cycle, the choice for templates. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/development.ts';
import type { Submission } from '../../node/full-node.ts';
import type { Entry, RateGroup } from '../../node/mempool/mempool.ts';
import { selectTransactions } from '../../node/mempool/selection.ts';
import { burnAddressPayload } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, encodeTransactionBody } from '../../protocol/transaction.ts';
import { Bed, randomOf } from './bed.ts';

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
  const [witness] = signed.witnesses as [(typeof signed.witnesses)[number]];
  const broken = Uint8Array.from(witness.signature);
  broken[100] = (broken[100] as number) ^ 1;
  expect(await send(encodeTransaction({ ...signed, witnesses: [{ ...witness, signature: broken }] }))).toBe(
    'signature_invalid',
  );
  const operation = { ...signed.body, operation: { type: 1, data: new Uint8Array(1) } };
  expect(await send(encodeTransaction({ body: operation, witnesses: [witness, witness] }))).toBe(
    'operation_unsupported',
  );
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
  expect(bed.node.transactionStatus(id)).toMatchObject({ lifecycle: 'processing', final: false });
  const block = await bed.mine(alice);
  expect(bed.node.transactionStatus(id)).toMatchObject({ lifecycle: 'receiving', observedBlock: block });
  const cut = await bed.seal();
  expect(bed.node.transactionStatus(id)).toMatchObject({
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
  expect(bed.node.transactionStatus(id)).toMatchObject({ lifecycle: 'finalized' });
  expect(bed.node.transactionWire(id)).toEqual(wire);
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
  expect(bed.node.transactionStatus(lost)).toMatchObject({ lifecycle: 'failed', failure: 'conflict', final: true });
  expect(bed.node.transactionStatus(won)).toMatchObject({ lifecycle: 'finalized' });
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

test('what no block took in time expires, and says so for good', async () => {
  const sent = await bed.pay([bed.treasury(0)], pays(), { validUntil: 2 });
  await bed.seal();
  expect(bed.node.mempool.count).toBe(1);
  const removed: string[] = [];
  bed.node.on('mempoolRemoved', (_, reason) => removed.push(reason));
  await bed.seal();
  expect(removed).toEqual(['expired']);
  expect(bed.node.transactionStatus(idOf(sent))).toMatchObject({
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
  expect(codeOf(await bed.pay([bed.treasury(4)], pays(), { feePerMass: 30n }))).toBe('accepted');
  expect(bed.node.transactionStatus(idOf(sent[0] as Submission))).toMatchObject({
    lifecycle: 'failed',
    failure: 'dropped',
    final: false,
  });
  expect(bed.node.mempool.bytes).toBeLessThanOrEqual(20_000);
});

const entry = (name: string, seenMillis: number, bytes = 5_000): Entry =>
  ({ name, seenMillis, wire: new Uint8Array(bytes), carriers: new Set() }) as unknown as Entry;

const group = (rate: bigint, own: Entry[], relayed: Entry[]): RateGroup => ({
  rate,
  own: new Set(own),
  relayed: new Set(relayed),
});

test('selection: fee rate, own before relayed, the ageing rule, a random draw inside a group', () => {
  const rules = {
    maxTransactions: 100,
    maxBytes: 1_000_000,
    cutMillis: 2_500,
    oldestOwnMillis: 10_000,
    random: randomOf(3),
  };
  const names = (groups: RateGroup[], more = {}) =>
    selectTransactions(groups, { ...rules, ...more }).map(({ name }) => name);
  const low = group(10n, [entry('cheap', 10_000)], []);
  const high = group(
    20n,
    [entry('own', 10_000)],
    [entry('fresh', 7_501), entry('aged', 7_500), entry('newer', 20_000)],
  );
  for (let i = 0; i < 20; i++) {
    const chosen = names([high, low]);
    expect(new Set(chosen.slice(0, 2))).toEqual(new Set(['own', 'aged']));
    expect(new Set(chosen.slice(2, 4))).toEqual(new Set(['fresh', 'newer']));
    expect(chosen[4]).toBe('cheap');
  }
  // Nobody's own waits: there is nothing to age against.
  const relayed = group(20n, [], [entry('a', 1), entry('b', 2), entry('c', 3)]);
  const firsts = new Set(Array.from({ length: 60 }, () => names([relayed], { oldestOwnMillis: undefined })[0]));
  expect(firsts).toEqual(new Set(['a', 'b', 'c']));
  const carried = entry('carried', 1);
  carried.carriers.add('block');
  expect(names([group(20n, [carried], [])])).toEqual([]);
  expect(names([high, low], { maxTransactions: 3 }).length).toBe(3);
  expect(names([group(20n, [entry('large', 1, 60_000), entry('small', 1)], [])], { maxBytes: 20_000 })).toEqual([
    'small',
  ]);
});

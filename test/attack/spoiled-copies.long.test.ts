/**
 * A transaction's identifier says nothing about its witnesses. A block may carry anybody's payment with spoiled ones: the copy is worth nothing, and the
 * payment itself stays in the mempool, in templates and in its true state, and is executed by the next honest block.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { merkleRoot } from '../../protocol/crypto/merkle.ts';
import { type Body, decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import {
  decodeTransaction,
  encodeTransaction,
  type SingleWitness,
  transactionId,
} from '../../protocol/transactions/transaction.ts';
import { ApiBed } from '../api/api-bed.ts';
import { type Bed, searchNonce } from '../node/bed.ts';

const mallory = developmentKey('mallory').address;
const alice = developmentKey('alice').address;
const pays = (amount = 5n) => [{ address: alice, amount }];

let api: ApiBed;
let bed: Bed;
beforeEach(async () => {
  api = await ApiBed.open();
  bed = api.bed;
});
afterEach(() => api.close());

const idOf = (wire: Bytes): Bytes => transactionId(decodeTransaction(wire).body);

/** The ways to spoil witnesses without the key; each fails on its own check. */
const SPOILS: Readonly<Record<string, (wire: Bytes) => Uint8Array<ArrayBuffer>>> = {
  'a bit of the signature': (wire) => {
    const copy = Uint8Array.from(wire);
    copy[copy.length - 1] = (copy[copy.length - 1] as number) ^ 1;
    return copy;
  },
  'another key': (wire) => {
    const { body, witnesses } = decodeTransaction(wire);
    const { publicKey } = developmentKey('mallory');
    return encodeTransaction({
      body,
      witnesses: (witnesses as SingleWitness[]).map(({ signature }) => ({ profile: 'inline', publicKey, signature })),
    });
  },
  'a reference to a key that is not registered': (wire) => {
    const { body, witnesses } = decodeTransaction(wire);
    return encodeTransaction({
      body,
      witnesses: (witnesses as SingleWitness[]).map(({ signature }) => ({ profile: 'referenced', signature })),
    });
  },
};

/** A block of Mallory's with these transactions, in a body of its own. */
function blockWith(transactions: readonly Bytes[], seed = 0): { header: Uint8Array<ArrayBuffer>; body: Bytes } {
  const template = bed.node.template({ payout: mallory, maxTransactions: 0 });
  const body: Body = { ...decodeBody(template.body), extranonce: Uint8Array.of(0, seed, 1, 2, 3), transactions };
  const header = encodeHeader({
    ...decodeHeader(template.header),
    transactionsRoot: merkleRoot(transactions),
    rewardRoot: rewardRoot(mallory, body.extranonce),
  });
  return { header: searchNonce(header, template.target), body: encodeBody(body) };
}

async function attack(transactions: readonly Bytes[], seed = 0): Promise<Bytes> {
  const { header, body } = blockWith(transactions, seed);
  const outcome = await bed.node.submitBlock(header, body);
  if (outcome.status !== 'accepted') throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return outcome.id;
}

const carries = (id: Bytes): boolean =>
  bed.node
    .template({ payout: alice, maxTransactions: 100, draw: 99_000 + bed.random(1_000) })
    .transactions.some((wire) => equalBytes(idOf(wire), id));
const status = async (id: Bytes) => await api.client.transactionStatus({ id: toHex(id) }).catch(() => undefined);

for (const [how, spoil] of Object.entries(SPOILS))
  test(`a block with ${how} spoiled: the payment stays, is offered, and is executed by the next block`, async () => {
    await bed.seal();
    const wire = bed.payment([bed.treasury(0)], pays());
    const id = idOf(wire);
    const copy = spoil(wire);
    expect(toHex(idOf(copy))).toBe(toHex(id));
    expect(await bed.node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
    const removed: string[] = [];
    bed.node.on('mempoolRemoved', (_, reason) => removed.push(reason));

    await attack([copy]);
    // While the block waits: still in the mempool, still in templates, and its status does not say that it is in a block.
    expect(carries(id)).toBe(true);
    expect(bed.node.chain.transactionStatus(id)).toEqual({ id, lifecycle: 'processing', final: false });
    expect(await status(id)).toMatchObject({ lifecycle: 'processing', observed_work: null, failure: null });

    const cut = await bed.seal();
    expect(cut.transactions).toMatchObject([{ outcome: 'failed' }]);
    expect(removed).toEqual([]);
    expect(toHex(bed.node.mempool.get(id)?.wire as Bytes)).toBe(toHex(wire));
    expect(carries(id)).toBe(true);
    expect(bed.node.chain.transactionStatus(id)).toEqual({ id, lifecycle: 'processing', final: false });

    // What the cut carried can be read, copy and all.
    const { transactions } = await api.client.cutTransactions({ height: cut.header.height });
    expect(transactions.map(({ transaction_id }) => transaction_id)).toEqual([toHex(id)]);
    expect(transactions[0]?.outcome).not.toBe('finalized');

    const block = await bed.mine(alice);
    expect(bed.node.chain.transactionStatus(id)).toMatchObject({ lifecycle: 'receiving', observedBlock: block });
    expect((await bed.seal()).transactions).toMatchObject([{ outcome: 'executed' }]);
    expect(await status(id)).toMatchObject({ lifecycle: 'finalized' });
    expect(removed).toEqual(['finalized']);

    // Afterwards too: a copy of what was executed changes nothing.
    await attack([copy], 1);
    expect((await bed.seal()).transactions).toMatchObject([{ outcome: 'repeated' }]);
    expect(await status(id)).toMatchObject({ lifecycle: 'finalized' });
  });

test('a copy with longer witnesses, for which the fee is too low, takes nothing from the payment', async () => {
  await bed.pay([bed.treasury(0)], pays());
  await bed.mine(alice);
  await bed.seal();
  const wire = bed.payment([bed.treasury(1)], pays(), { profile: 'referenced' });
  expect(await bed.node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
  const { body, witnesses } = decodeTransaction(wire);
  const { publicKey } = developmentKey(TREASURY);
  const inline = (witnesses as SingleWitness[]).map(
    ({ signature }) => ({ profile: 'inline', publicKey, signature }) as const,
  );
  await attack([encodeTransaction({ body, witnesses: inline })]);
  expect(carries(idOf(wire))).toBe(true);
  expect((await bed.seal()).transactions).toMatchObject([{ outcome: 'failed', detail: 'fee_below_minimum' }]);
  expect(await status(idOf(wire))).toMatchObject({ lifecycle: 'processing' });
  await bed.mine(alice);
  expect((await bed.seal()).transactions).toMatchObject([{ outcome: 'executed' }]);
});

test('copies of everything that waits empty neither mempool nor templates', async () => {
  await bed.seal();
  const wires = Array.from({ length: 12 }, (_, i) => bed.payment([bed.treasury(i)], pays(BigInt(i + 1))));
  for (const wire of wires) expect(await bed.node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
  const spoil = SPOILS['a bit of the signature'] as (wire: Bytes) => Bytes;
  for (let round = 0; round < 3; round++) {
    await attack(wires.map(spoil), round);
    expect(wires.every((wire) => carries(idOf(wire)))).toBe(true);
    await bed.seal();
  }
  expect(bed.node.mempool.count).toBe(12);
  await bed.mine(alice);
  expect((await bed.seal()).transactions.filter(({ outcome }) => outcome === 'executed').length).toBe(12);
});

test('spoiled copy and payment in one cut: the payment is executed, whichever block comes first', async () => {
  await bed.seal();
  const spoil = SPOILS['a bit of the signature'] as (wire: Bytes) => Bytes;
  for (let i = 0; i < 6; i++) {
    const wire = bed.payment([bed.treasury(i)], pays(BigInt(i + 1)));
    await bed.node.submitTransaction(wire);
    const honest = bed.make(alice, 100, i);
    await attack([spoil(wire)], i);
    expect(await bed.node.submitBlock(honest.header, honest.body)).toMatchObject({ status: 'accepted' });
    const cut = await bed.seal();
    expect(cut.transactions.filter(({ outcome }) => outcome === 'executed').length).toBe(1);
    expect(await status(idOf(wire))).toMatchObject({ lifecycle: 'finalized' });
    expect(bed.node.mempool.count).toBe(0);
    const { transactions } = await api.client.cutTransactions({ height: cut.header.height });
    expect(transactions.some(({ outcome }) => outcome === 'finalized')).toBe(true);
  }
});

test('a node that has not seen the payment says nothing of it, and takes it later', async () => {
  await bed.seal();
  const wire = bed.payment([bed.treasury(0)], pays());
  const id = idOf(wire);
  await attack([(SPOILS['a bit of the signature'] as (wire: Bytes) => Bytes)(wire)]);
  expect(await status(id)).toBeUndefined();
  await bed.seal();
  expect(await status(id)).toBeUndefined();
  await bed.reopen();
  expect(bed.node.chain.transactionStatus(id)).toBeUndefined();
  expect(await bed.node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
  await bed.mine(alice);
  expect((await bed.seal()).transactions).toMatchObject([{ outcome: 'executed' }]);
});

test('a payment that a block brings with good witnesses is on its way, mempool or not', async () => {
  await bed.seal();
  const wire = bed.payment([bed.treasury(0)], pays());
  const block = await attack([wire]);
  await expect
    .poll(() => bed.node.chain.transactionStatus(idOf(wire)))
    .toMatchObject({ lifecycle: 'receiving', observedBlock: block });
});

test('what is final of a transaction stays as it was when a later block carries it again', async () => {
  await bed.seal();
  const lost = bed.payment([bed.treasury(0)], pays(1n));
  await bed.pay([bed.treasury(0)], pays(2n));
  await bed.mine(alice);
  await attack([lost]);
  const cut = await bed.seal();
  const before = bed.node.chain.transactionStatus(idOf(lost));
  expect(before).toMatchObject({ failure: 'conflict', final: true, finalizedCut: { height: cut.header.height } });
  await attack([(SPOILS['another key'] as (wire: Bytes) => Bytes)(lost)], 1);
  await bed.seal();
  expect(bed.node.chain.transactionStatus(idOf(lost))).toEqual(before);
});

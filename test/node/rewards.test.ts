/** Work and stake halves on a running chain: who is paid what, when, and that nothing is lost (ledger rules 36 to 40). */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { burnAddressPayload } from '../../protocol/address.ts';
import { firstInterval, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { Bed, createdFor } from './bed.ts';

const alice = developmentKey('alice').address;
const bob = developmentKey('bob').address;
const workHalf = splitHalves(subsidyOfCut(firstInterval().amount, 0)).work;

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open();
});
afterEach(async () => {
  await bed.close();
});

test('a block is paid when its window closes, 96 cuts after its anchor', async () => {
  const id = await bed.mine(alice);
  expect(bed.node.chain.block(id)?.reward.state).toBe('waiting');
  const registered = await bed.seal();
  expect(registered.registered.map((block) => block.id)).toEqual([id]);
  expect(bed.node.chain.block(id)?.reward.state).toBe('pending');
  await bed.seal(94);
  expect(bed.node.chain.head().height).toBe(95);
  const paying = await bed.seal();
  expect(paying.rewards).toMatchObject([{ blockId: id, subsidy: workHalf, fees: 0n, amount: workHalf }]);
  expect(createdFor(paying, alice)).toMatchObject([{ amount: workHalf, source: 'work_reward' }]);
  expect(bed.node.chain.block(id)?.reward).toMatchObject({ state: 'paid', height: 96 });
});

test('blocks of one anchor share equally, odd atoms go to the lowest identifiers, an anchor without work carries over', async () => {
  const burn = burnAddressPayload();
  const ids = [await bed.mine(alice), await bed.mine(bob), await bed.mine(burn)].map((id) => Buffer.from(id));
  await bed.seal();
  // Anchor 1 gets no block, anchor 2 one.
  await bed.seal();
  const later = await bed.mine(bob);
  const first = await bed.seal(94);
  const [a, b, c] = ids.sort(Buffer.compare);
  expect(workHalf % 3n).toBe(2n);
  expect(first.rewards.map(({ blockId, amount }) => [Buffer.from(blockId), amount])).toEqual([
    [a, workHalf / 3n + 1n],
    [b, workHalf / 3n + 1n],
    [c, workHalf / 3n],
  ]);
  // A reward is made for the burn address too: it is not burned, and nobody can spend it.
  expect(createdFor(first, burn)).toHaveLength(1);
  expect(first.figures.burned).toBe(0n);
  expect((await bed.seal()).rewards).toEqual([]);
  expect((await bed.seal()).rewards).toMatchObject([{ blockId: later, amount: 2n * workHalf }]);
});

test('half of the fees goes to the block that executes the transaction, once', async () => {
  const fee = 200_001n;
  const outcome = await bed.pay([bed.treasury(0)], [{ address: bob, amount: 5n }], { fee });
  expect(outcome.status).toBe('accepted');
  // Two blocks that both carry it: neither is the other's parent.
  const one = bed.make(alice, 10, 1);
  const two = bed.make(bob, 10, 2);
  for (const { header, body } of [one, two])
    expect(await bed.node.submitBlock(header, body)).toMatchObject({ status: 'accepted' });
  const cut = await bed.seal();
  expect(cut.transactions.map(({ outcome }) => outcome)).toEqual(['executed', 'repeated']);
  expect(cut.registered.map(({ feeShare }) => feeShare)).toEqual([fee / 2n, 0n]);
  const paid = await bed.seal(95);
  expect(paid.rewards.map(({ fees }) => fees).sort()).toEqual([0n, fee / 2n]);
  const supply = bed.node.chain.supply();
  expect(supply.minted - supply.burned).toBe(
    supply.outputs + supply.bonded + supply.unbonding + supply.workReserve + supply.stakeReserve,
  );
});

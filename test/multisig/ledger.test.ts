/** Multisig addresses on a real node and its store (ledger rules 19, 20 and 36): paid, spent inline and by reference, owners of stake. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { UnspentOutput } from '../../node/full-node.ts';
import { type DevelopmentKey, developmentKey, validatorName } from '../../node/genesis/development.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { delegationId, validatorId } from '../../protocol/staking/names.ts';
import { completePackage, type MultisigPackage } from '../../protocol/transactions/multisig-package.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { Bed, createdFor } from '../node/bed.ts';
import { funded, type Group, groupOf, mined, type Proposal, proposal, send, signedBy } from './members.ts';

const COIN = 100_000_000n;
const alice = developmentKey('alice');
const two = groupOf(2);
const three = groupOf(3);

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open({ genesis: { intervalCuts: 24 } });
});
afterEach(() => bed.close());

const propose = (group: Group, spends: readonly UnspentOutput[], how: Proposal = {}): MultisigPackage =>
  proposal(bed.node.chain, group, spends, [{ address: alice.address, amount: COIN }], how);
const wireOf = (of: MultisigPackage, ...keys: readonly DevelopmentKey[]) => completePackage(signedBy(of, ...keys));
const REFERENCED: Proposal = { profile: 'multisig_referenced' };

test.each([
  ['2-of-3', two],
  ['3-of-5', three],
])('%s: the first and the last members spend inline, then others by reference', async (_, group) => {
  const { threshold, keys } = group.descriptor;
  const spends = await funded(bed, group.address, 2);
  const sets = [group.members.slice(0, threshold), group.members.slice(-threshold)];
  const wires = sets.map((set, i) => wireOf(propose(group, [spends[i] as UnspentOutput]), ...set));
  for (const wire of wires) expect(await send(bed, wire)).toBe('accepted');
  const effects = await mined(bed);
  expect(effects.transactions.map(({ outcome }) => outcome)).toEqual(['executed', 'executed']);
  expect(createdFor(effects, alice.address)).toHaveLength(2);
  // The keys of all members, each once, under the hashes of their own addresses.
  const registered = effects.keys.map(({ address }) => toHex(address)).sort();
  expect(registered).toEqual(keys.map((key) => toHex(keyAddressPayload(key))).sort());
  const [change] = createdFor(effects, group.address) as [UnspentOutput];
  const short = wireOf(propose(group, [change], REFERENCED), ...group.members.slice(1, 1 + threshold));
  expect(short.length).toBeLessThan((wires[0] as Bytes).length * 0.6);
  expect(await send(bed, short)).toBe('accepted');
  const later = await mined(bed);
  expect(later.transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  expect(later.keys).toEqual([]);
});

test('a reference waits until a finalized cut has all keys, and survives a restart; a member’s own address may be referenced too', async () => {
  const [first, second, third] = (await funded(bed, two.address, 3)) as [UnspentOutput, UnspentOutput, UnspentOutput];
  const member = two.members[2] as DevelopmentKey;
  const [own] = (await funded(bed, member.address, 1, 1)) as [UnspentOutput];
  const short = wireOf(propose(two, [first], REFERENCED), ...two.members.slice(0, 2));
  expect(await send(bed, short)).toBe('witness_key_unregistered');
  // In the same cut the keys are not yet an earlier cut's.
  expect(await send(bed, wireOf(propose(two, [second]), ...two.members.slice(0, 2)))).toBe('accepted');
  await mined(bed);
  await bed.reopen();
  expect(await send(bed, short)).toBe('accepted');
  expect(await send(bed, wireOf(propose(two, [third], REFERENCED), ...two.members.slice(1)))).toBe('accepted');
  const byReference = bed.payment([own], [], { key: member, profile: 'referenced' });
  expect(await send(bed, byReference)).toBe('accepted');
  expect((await mined(bed)).transactions.map(({ outcome }) => outcome)).toEqual(['executed', 'executed', 'executed']);
});

test('the largest transaction of each form is accepted and executed', async () => {
  const five = await funded(bed, two.address, 5);
  const trio = await funded(bed, three.address, 3, 1);
  expect(await send(bed, wireOf(propose(two, five), ...two.members.slice(0, 2)))).toBe('accepted');
  expect(await send(bed, wireOf(propose(three, trio), ...three.members.slice(2)))).toBe('accepted');
  expect((await mined(bed)).transactions.map(({ outcome }) => outcome)).toEqual(['executed', 'executed']);
});

test('one atom less than the minimum fee of the exact mass is refused', async () => {
  const [spend] = (await funded(bed, two.address)) as [UnspentOutput];
  const exact = propose(two, [spend]);
  const paid = exact.body.outputs.reduce((sum, { amount }) => sum - amount, spend.amount);
  const short = propose(two, [spend], { fee: paid - 1n });
  expect(await send(bed, wireOf(short, ...two.members.slice(0, 2)))).toBe('fee_below_minimum');
  expect(await send(bed, wireOf(exact, ...two.members.slice(0, 2)))).toBe('accepted');
});

test('a multisig address owns stake: it bonds and unbonds, and nobody else can', async () => {
  const validator = validatorId(developmentKey(validatorName(0)).publicKey);
  await bed.pay([bed.treasury(0)], [{ address: two.address, amount: 500n * COIN }]);
  const [spend] = createdFor(await mined(bed), two.address) as [UnspentOutput];
  const bond = {
    name: 'bond',
    validator,
    owner: two.address,
    rewardAddress: alice.address,
    amount: 200n * COIN,
  } as const;
  const pair = two.members.slice(0, 2);
  const wire = wireOf(proposal(bed.node.chain, two, [spend], [], { operation: bond }), ...pair);
  expect(await send(bed, wire)).toBe('accepted');
  let effects = await mined(bed);
  expect(effects.transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  const position = delegationId(transactionIdOfWire(wire));
  const [rest] = createdFor(effects, two.address) as [UnspentOutput];
  const others = groupOf(2, 'others');
  const [strange] = (await funded(bed, others.address, 1, 1)) as [UnspentOutput];
  const unbond = { name: 'unbond', position, amount: 0n } as const;
  const theft = proposal(bed.node.chain, others, [strange], [], { operation: unbond });
  expect(await send(bed, wireOf(theft, ...others.members.slice(0, 2)))).toBe('witness_key_mismatch');
  const move = proposal(bed.node.chain, two, [rest], [], { ...REFERENCED, operation: unbond });
  expect(await send(bed, wireOf(move, ...two.members.slice(1)))).toBe('accepted');
  effects = await mined(bed);
  expect(effects.transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
});

/** Methods of the group Multisig with bad input, and that a watched address is never the wallet's own money. The whole way is in multisig.long.test.ts. */
import { expect, test } from 'vitest';
import { verifyMessage } from '../../../node/ml-dsa.ts';
import { formatAddress, parseAddress } from '../../../protocol/address.ts';
import { fromHex, toHex } from '../../../protocol/bytes.ts';
import { multisigDescriptor } from '../../../protocol/transactions/multisig.ts';
import {
  decodePackage,
  encodePackage,
  type MultisigProfile,
  newPackage,
} from '../../../protocol/transactions/multisig-package.ts';
import { groupOf, proposal } from '../../multisig/members.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, openTestWallet } from '../open-wallet.ts';

const strangers = groupOf(2, 'strangers');
const keyOf = (i: number): string => toHex(strangers.descriptor.keys[i] as Uint8Array);

async function setUp() {
  const node = new FakeNode();
  const bed = await openTestWallet(node);
  await bed.turn();
  const { public_key: own } = (await bed.call('multisig_key')) as { public_key: string };
  const group = await bed.call('multisig_watch', {
    threshold: 2,
    members: [keyOf(0), own, keyOf(1)],
    label: 'savings',
  });
  const chain = { chainId: fromHex(node.chainId), head: () => ({ height: 1 }) } as Parameters<typeof proposal>[0];
  const descriptor = multisigDescriptor(
    2,
    [keyOf(0), own, keyOf(1)].map((key) => fromHex(key)),
  );
  const { payload: address } = parseAddress(group.address as string);
  const spend = { outpoint: { transactionId: new Uint8Array(48).fill(1), outputIndex: 0 }, amount: 500_000_000n };
  node.outputs.set(`${'01'.repeat(48)}:0`, {
    address: group.address as string,
    amount: spend.amount,
    source: 'regular',
    height: 1,
  });
  const made = (
    members = { descriptor, address, members: [] },
    how: { profile?: MultisigProfile; fee?: bigint } = {},
  ) => proposal(chain, members, [spend], [{ address, amount: 1_000_000n }], how);
  return { node, ...bed, own, group, made, address: group.address as string };
}

test('a key is a fresh address of the wallet, and the group is shown with the members that are its own', async () => {
  const { call, own, group } = await setUp();
  expect(group).toMatchObject({ threshold: 2, members: 3, label: 'savings' });
  const { members } = group.descriptor as { members: string[] };
  expect(group.own_members).toEqual([members.indexOf(own)]);
  const again = (await call('multisig_key')) as { public_key: string };
  expect(again.public_key).not.toBe(own);
  expect(await call('multisig_addresses')).toEqual({ addresses: [group] });
  const { addresses } = (await call('addresses')) as { addresses: { label: string }[] };
  expect(addresses.filter(({ label }) => label === 'multisig member')).toHaveLength(2);
});

test('who begins to listen between two looks hears of what came since the last one', async () => {
  const { node, wallet, turn, address } = await setUp();
  const payer = await fundedWallet(node, [1_000_000_000n], { name: 'payer' });
  await turn();
  const heard: unknown[] = [];
  wallet.events.listen(({ name, params }) => name === 'multisig' && heard.push(params));
  await payer.call('send', { to: address, amount: '1', request_id: 'a' });
  node.seal();
  await turn();
  expect(heard).toMatchObject([{ address, kind: 'received', amount: '1.00000000', label: 'savings' }]);
});

test('what the group holds is neither balance nor spendable, and the watch survives a restart', async () => {
  const { call, refusal, address, directory, node, wallet } = await setUp();
  expect(await call('balance')).toMatchObject({ balance: '0.00000000', outputs: 0 });
  expect(await call('balance', { address })).toMatchObject({ balance: '0.00000000', outputs: 0 });
  expect(await call('history', { address })).toMatchObject({ entries: [] });
  expect(await call('receive', { address })).toMatchObject({ address, label: 'savings' });
  expect(await refusal('send', { to: address, amount: '1', request_id: 'a' })).toMatchObject({
    word: 'insufficient_funds',
  });
  expect(await refusal('multisig_propose', { address, to: address, amount: '1' })).toMatchObject({
    word: 'insufficient_funds',
  });
  const proof = await refusal('proof_request', { address });
  expect(proof).toMatchObject({ word: 'address_invalid', data: { reason: 'address_kind' } });
  await wallet.close();
  const later = await openTestWallet(node, { directory });
  expect(await later.call('multisig_addresses')).toMatchObject({ addresses: [{ address, label: 'savings' }] });
});

test('members that make no address, and addresses that are not watched', async () => {
  const { call, refusal, own } = await setUp();
  const watch = (threshold: number, members: string[]) => refusal('multisig_watch', { threshold, members });
  expect(await watch(2, [keyOf(0), own, own])).toMatchObject({
    word: 'multisig_descriptor_invalid',
    data: { reason: 'duplicate_entry' },
  });
  expect(await watch(3, [keyOf(0), keyOf(1), own])).toMatchObject({
    word: 'multisig_descriptor_invalid',
    data: { reason: 'out_of_range' },
  });
  expect(await watch(2, [keyOf(0), keyOf(1), own.slice(2)])).toMatchObject({
    word: 'multisig_descriptor_invalid',
    data: { reason: 'bad_hex' },
  });
  expect(await watch(1, [keyOf(0), keyOf(1), own])).toMatchObject({ word: 'params_invalid' });
  expect(await watch(2, [keyOf(0), own])).toMatchObject({ word: 'params_invalid' });
  const { address } = (await call('new_address')) as { address: string };
  expect(await refusal('multisig_propose', { address, to: address, amount: '1' })).toMatchObject({
    word: 'multisig_unknown',
  });
  expect(await refusal('history', { address })).toMatchObject({ word: 'multisig_unknown' });
});

test('packages: signed for the reviewed digest, by a member, of this chain', async () => {
  const { call, refusal, made, node, own } = await setUp();
  const hex = toHex(encodePackage(made()));
  const review = await call('multisig_review', { package: hex });
  expect(review).toMatchObject({
    missing_signatures: 2,
    signed_by: [],
    watched: true,
    witness_profile: 'multisig_inline',
  });
  const digest = review.template_digest as string;
  const sign = (params: object) => refusal('multisig_sign', { package: hex, template_digest: digest, ...params });
  expect(await sign({ template_digest: 'ab'.repeat(48) })).toMatchObject({
    word: 'multisig_package_invalid',
    data: { reason: 'package_digest' },
  });
  expect(await sign({ template_digest: 'ab' })).toMatchObject({
    word: 'multisig_package_invalid',
    data: { reason: 'bad_hex' },
  });
  for (const [junk, reason] of [
    ['zz', 'bad_hex'],
    ['00', 'truncated'],
    [hex.slice(0, -2), 'truncated'],
    [`${hex}00`, 'trailing_bytes'],
    ['00'.repeat(5000), 'unsupported_version'],
  ] as const) {
    expect(await sign({ package: junk })).toMatchObject({ word: 'multisig_package_invalid', data: { reason } });
    expect(await refusal('multisig_send', { package: junk })).toMatchObject({
      word: 'multisig_package_invalid',
      data: { reason },
    });
  }
  const signed = await call('multisig_sign', { package: hex, template_digest: digest });
  expect(signed).toMatchObject({ missing_signatures: 1, template_digest: digest });
  const read = decodePackage(fromHex(signed.package as string), { verify: verifyMessage });
  expect(read.signed.map(({ member }) => toHex(read.descriptor.keys[member] as Uint8Array))).toEqual([own]);
  expect(await refusal('multisig_send', { package: signed.package })).toMatchObject({
    word: 'multisig_package_invalid',
    data: { reason: 'package_incomplete' },
  });
  const foreign = made(strangers as never);
  const digestOf = toHex(foreign.digest);
  const [spent] = node.outputs.values();
  Object.assign(spent as object, { address: formatAddress(strangers.address, 'development') });
  expect(await sign({ package: toHex(encodePackage(foreign)), template_digest: digestOf })).toMatchObject({
    word: 'multisig_not_member',
  });
  const elsewhere = newPackage({ ...made(), body: { ...made().body, chainId: new Uint8Array(48) } });
  expect(await refusal('multisig_review', { package: toHex(encodePackage(elsewhere)) })).toMatchObject({
    data: { reason: 'wrong_chain' },
  });
  expect(node.height).toBeGreaterThanOrEqual(0);
});

test('a fee above the limit of the wallet is signed and sent only after a word for it; a review names the cuts that are left', async () => {
  const { call, refusal, made } = await setUp();
  const hex = toHex(encodePackage(made(undefined, { fee: 400_000_000n })));
  const { template_digest, fee, valid_until_height: last, cuts_left } = await call('multisig_review', { package: hex });
  expect(fee).toBe('4.00000000');
  expect(cuts_left).toBe(Number(last) - ((await call('status')).node_finalized_height as number));
  const params = { package: hex, template_digest };
  expect(await refusal('multisig_sign', params)).toMatchObject({ word: 'fee_too_high' });
  const signed = await call('multisig_sign', { ...params, any_fee: true });
  const { package: one } = signed;
  expect(await refusal('multisig_send', { package: one })).toMatchObject({ word: 'fee_too_high' });
  expect(await refusal('multisig_send', { package: one, any_fee: true })).toMatchObject({
    data: { reason: 'package_incomplete' },
  });
});

test('a group has no verification words: its members compare the whole address', async () => {
  const { group } = await setUp();
  expect(group).not.toHaveProperty('verification_words');
});

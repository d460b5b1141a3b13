/**
 * Two packages for one purpose, both signed by enough members and both sent: without `replaces` both are paid, with it at most one. A real node, its API, and a wallet that proposes.
 */
import { expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { verifyMessage } from '../../node/ml-dsa.ts';
import { formatAddress } from '../../protocol/address.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { completePackage, decodePackage } from '../../protocol/transactions/multisig-package.ts';
import { ApiBed } from '../api/api-bed.ts';
import { funded, groupOf, mined, send, signedBy } from '../multisig/members.ts';
import { openTestWallet } from '../wallet/open-wallet.ts';

const group = groupOf(2, 'purpose');
const [first, second] = group.members as [(typeof group.members)[number], (typeof group.members)[number]];
const shop = formatAddress(developmentKey('shop').address, 'development');

type Shown = { package: string; transaction: string; inputs: { transaction: string; output: number }[] };

/** The group has some outputs of ten coins. */
async function setUp(outputs = 4) {
  const { bed, client } = await ApiBed.forTest();
  const { address } = group;
  await funded(bed, address, outputs);
  const wallet = await openTestWallet({ client } as Parameters<typeof openTestWallet>[0]);
  const members = group.descriptor.keys.map((key) => toHex(key));
  await wallet.call('multisig_watch', { threshold: 2, members });
  await wallet.turn();
  const from = formatAddress(address, 'development');
  const params = (amount: string, more: object = {}) => ({ address: from, to: shop, amount, ...more });
  const propose = async (amount: string, more: object = {}) => {
    const { packages } = (await wallet.call('multisig_propose', params(amount, more))) as { packages: [Shown] };
    return packages[0];
  };
  const wireOf = ({ package: hex }: Shown) =>
    completePackage(signedBy(decodePackage(fromHex(hex), { verify: verifyMessage }), first, second));
  const paid = async () => Number((await client.addressBalance({ address: shop })).balance) / 1e8;
  const cut = async () => {
    await mined(bed);
    await wallet.turn();
  };
  return { bed, ...wallet, from, params, propose, wireOf, paid, cut };
}

test('without it two packages of one purpose can both be paid', async () => {
  const { bed, propose, wireOf, paid, cut } = await setUp();
  const one = await propose('5');
  expect(await send(bed, wireOf(one))).toBe('accepted');
  // The first one waits, so the second one spends another output.
  const two = await propose('5');
  expect(await send(bed, wireOf(two))).toBe('accepted');
  await cut();
  expect(await paid()).toBe(10);
});

test('an old package and those in its place, one after the other, all signed and sent: one is paid', async () => {
  const { bed, refusal, params, propose, wireOf, paid, cut } = await setUp();
  const one = await propose('5');
  const two = await propose('15', { replaces: one.package });
  const three = await propose('6', { replaces: two.package });
  expect(two.inputs.length).toBeGreaterThan(1);
  // The same input all along: of the first and the third one, too, at most one can be paid.
  for (const later of [two, three]) expect(later.inputs[0]).toEqual(one.inputs[0]);
  const answers: string[] = [];
  for (const shown of [three, one, two]) answers.push(await send(bed, wireOf(shown)));
  expect(answers[0]).toBe('accepted');
  expect(answers.slice(1)).not.toContain('accepted');
  const waiting = await refusal('multisig_propose', params('5', { replaces: one.package }));
  expect(waiting).toMatchObject({
    word: 'multisig_not_replaceable',
    data: { reason: 'waiting', transaction: three.transaction },
  });
  await cut();
  for (const shown of [one, two]) expect(await send(bed, wireOf(shown))).not.toBe('accepted');
  await cut();
  expect(await paid()).toBe(6);
  // All but one of the inputs of the second are unspent. It can never be sent, and what spent the other one is named.
  const spent = await refusal('multisig_propose', params('15', { replaces: two.package }));
  expect(spent).toMatchObject({
    word: 'multisig_not_replaceable',
    data: { reason: 'spent', transaction: three.transaction },
  });
  expect(spent.message).toContain(three.transaction);
});

test('an old package is shown with the new one; parts, other addresses and damaged files are refused', async () => {
  const { call, refusal, params, propose } = await setUp(7);
  const one = await propose('5');
  const both = await call('multisig_propose', params('7', { replaces: one.package }));
  expect(both).toMatchObject({ replaces: { transaction: one.transaction, recipients: [{ to: shop }, {}] } });
  const replacing = (replaces: string, amount = '5') => refusal('multisig_propose', params(amount, { replaces }));
  expect(await replacing(one.package.slice(0, -2))).toMatchObject({
    word: 'multisig_package_invalid',
    data: { field: 'replaces', reason: 'truncated' },
  });
  // Seven outputs of ten coins, of which a package spends five.
  const divided = { word: 'multisig_not_replaceable', data: { reason: 'parts' } };
  expect(await replacing(one.package, '60')).toMatchObject(divided);
  const part = await propose('60');
  expect(await replacing(part.package)).toMatchObject(divided);
  const keys = [...group.descriptor.keys.slice(0, 2), developmentKey('another member').publicKey];
  const other = await call('multisig_watch', { threshold: 2, members: keys.map((key) => toHex(key)) });
  expect(
    await refusal('multisig_propose', params('5', { replaces: one.package, address: other.address })),
  ).toMatchObject({ word: 'multisig_not_replaceable', data: { reason: 'other_address' } });
});

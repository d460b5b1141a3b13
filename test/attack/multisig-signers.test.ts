/**
 * A member of a multisig address that wants the others to sign something else than they see: a false fee by two packages of one transaction that each lie about another input, an operation of
 * which only the name is shown, text that plays tricks on a terminal. The wallet of the others, and not the ledger, must notice.
 */
import { expect, test } from 'vitest';
import { signMessage } from '../../node/ml-dsa.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { encodeOperation } from '../../protocol/staking/operation.ts';
import { type MultisigDescriptor, multisigDescriptor } from '../../protocol/transactions/multisig.ts';
import {
  completePackage,
  decodePackage,
  encodePackage,
  type MultisigPackage,
  memberOf,
  newPackage,
  packageFee,
  packageMessages,
  withSignatures,
} from '../../protocol/transactions/multisig-package.ts';
import type { TransactionBody } from '../../protocol/transactions/transaction.ts';
import { visible } from '../../wallet/command/foreign-text.ts';
import { verifySignature } from '../../wallet/keys/signing.ts';
import { groupOf } from '../multisig/members.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import { openTestWallet } from '../wallet/open-wallet.ts';

const COIN = 100_000_000n;
const [mallory, other] = groupOf(2, 'hostile').members as [
  ReturnType<typeof groupOf>['members'][number],
  ReturnType<typeof groupOf>['members'][number],
];

/** A watching member with a node; the address holds two outputs of 50 coins. */
async function setUp() {
  const node = new FakeNode();
  const bed = await openTestWallet(node);
  await bed.turn();
  const { public_key: own } = (await bed.call('multisig_key')) as { public_key: string };
  const keys = [mallory.publicKey, other.publicKey, fromHex(own)];
  const descriptor: MultisigDescriptor = multisigDescriptor(2, keys);
  const group = await bed.call('multisig_watch', { threshold: 2, members: keys.map((key) => toHex(key)) });
  const address = group.address as string;
  node.reward(address, 50n * COIN);
  node.reward(address, 50n * COIN);
  node.seal();
  await bed.turn();
  const inputs = [...node.outputs].flatMap(([key, output]) => {
    const [transaction = '', index] = key.split(':');
    return output.address === address ? [{ transactionId: fromHex(transaction), outputIndex: Number(index) }] : [];
  });
  const body: TransactionBody = {
    chainId: fromHex(node.chainId),
    validFromHeight: 0,
    validUntilHeight: 1000,
    inputs,
    outputs: [{ address: parseAddress(address).payload, amount: 50n * COIN }],
    payload: new Uint8Array(0),
  };
  const made = (amounts: readonly bigint[], more: Partial<TransactionBody> = {}): MultisigPackage =>
    newPackage({
      profile: 'multisig_inline',
      network: 'development',
      descriptor,
      amounts,
      body: { ...body, ...more },
    });
  const signs = async (of: MultisigPackage) => {
    const hex = toHex(encodePackage(of));
    return bed.call('multisig_sign', { package: hex, template_digest: toHex(of.digest), any_fee: true });
  };
  return { node, ...bed, made, signs, address, own, descriptor };
}

test('two packages of one transaction that each lie about another input would pay a fee that nobody saw: neither is signed', async () => {
  const { made, signs, refusal, call, descriptor, own } = await setUp();
  // Each shows a fee of 0.1 coins. The true one is 50 coins.
  const small = COIN / 10n;
  const lies = [made([50n * COIN, small]), made([small, 50n * COIN])];
  const truth = made([50n * COIN, 50n * COIN]);
  expect(lies.map(packageFee)).toEqual([small, small]);
  expect(packageFee(truth)).toBe(50n * COIN);
  const got: Bytes[] = [];
  for (const [i, lie] of lies.entries()) {
    const signed = await signs(lie).catch((error: unknown) => error);
    if (!(signed instanceof Error) && typeof (signed as { package?: unknown }).package === 'string') {
      const read = decodePackage(fromHex((signed as { package: string }).package), { verify: verifySignature });
      got.push(read.signed[0]?.signatures[i] as Bytes);
    }
  }
  if (got.length === 2) {
    // What the thief makes of it: a transaction that every node takes.
    const stolen = withSignatures(truth, fromHex(own), got, verifySignature);
    const mine = packageMessages(stolen).map((message) => signMessage(mallory.privateKey, message));
    completePackage(withSignatures(stolen, mallory.publicKey, mine, verifySignature));
  }
  expect(got, 'signatures that together pay a fee of 50 coins').toEqual([]);
  for (const lie of lies) {
    const hex = toHex(encodePackage(lie));
    expect(await call('multisig_review', { package: hex })).toMatchObject({ amounts: 'false' });
    const params = { package: hex, template_digest: toHex(lie.digest) };
    expect(await refusal('multisig_sign', params)).toMatchObject({ word: 'multisig_amount_false' });
    expect(await refusal('multisig_sign', { ...params, trust_amounts: true })).toMatchObject({
      word: 'multisig_amount_false',
    });
  }
  const honest = { package: toHex(encodePackage(truth)) };
  expect(await call('multisig_review', honest)).toMatchObject({ amounts: 'checked', fee: '50.00000000' });
  expect(memberOf(descriptor, fromHex(own))).toBeGreaterThanOrEqual(0);
  expect(await signs(truth)).toMatchObject({ missing_signatures: 1 });
});

test('without a node nobody knows the amounts: signing needs a word that they are trusted', async () => {
  const { node, made, signs, refusal, call } = await setUp();
  const truth = made([50n * COIN, 50n * COIN]);
  const params = { package: toHex(encodePackage(truth)), template_digest: toHex(truth.digest) };
  node.down = true;
  expect(await call('multisig_review', { package: params.package })).toMatchObject({ amounts: 'not_checked' });
  expect(await refusal('multisig_sign', params)).toMatchObject({ word: 'node_unreachable' });
  expect(await call('multisig_sign', { ...params, trust_amounts: true, any_fee: true })).toMatchObject({
    missing_signatures: 1,
  });
  node.down = false;
  // An output that is not there any more, or never was.
  node.outputs.delete([...node.outputs.keys()].at(-1) as string);
  expect(await call('multisig_review', { package: params.package })).toMatchObject({ amounts: 'spent' });
  await expect(signs(truth)).rejects.toThrow(/multisig_output_missing/);
});

test('an operation is shown with everything that it does, not by its name', async () => {
  const { made, call } = await setUp();
  const thief = mallory.address;
  const operation = encodeOperation({ name: 'reward_address', position: new Uint8Array(48).fill(7), address: thief });
  const of = made([50n * COIN, 50n * COIN], { operation });
  const review = await call('multisig_review', { package: toHex(encodePackage(of)) });
  expect(review).toMatchObject({
    operation: 'reward_address',
    operation_data: { position_id: '07'.repeat(48), reward_address: formatAddress(thief, 'development') },
  });
});

test('a payload or a chat that turns the direction of writing, or ends the line, is shown with a mark in its place', () => {
  expect(visible('pays 1\u202e001\u2066 to you\u2028fee 0\r\n\u200fx\ufeff\x1b[2J')).toBe(
    'pays 1?001? to you?fee 0???x??[2J',
  );
  expect(visible('grüße 👩‍👩‍👧 ½ שלום')).toBe('grüße 👩‍👩‍👧 ½ שלום');
});

/** Multisig through the module (specification: Rule 6): three members who share nothing but packages, the same bytes as the wallet's and node's code, and what is refused on the way. */
import { beforeAll, expect, test } from 'vitest';
import { verifyMessage } from '../../node/ml-dsa.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import {
  completePackage,
  decodePackage,
  encodePackage,
  newPackage,
} from '../../protocol/transactions/multisig-package.ts';
import { repeats, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { codeOf, loadModule, type Module } from './load.ts';
import { hex, MANIFEST, manifestOf, requestOf } from './payment.ts';

type Member = { readonly publicKey: string; sign(messages: readonly string[]): string };

let module: Module;
let members: Member[];
let descriptor: string;
let address: string;
let body: string;
let proposal: string;
const CHAIN = 'ab'.repeat(48);
const AMOUNT = '500000000';
const edge = { network: 'development', chainId: fromHex(CHAIN), verify: verifyMessage } as const;
const read = <T = Record<string, unknown>>(json: string): T => JSON.parse(json) as T;

beforeAll(async () => {
  module = await loadModule();
  const roots = Array.from({ length: 5 }, () => module.WalletRoot.fromEntropy(hex(32), '', 'development'));
  members = roots.map((root) => ({
    publicKey: root.derivePublicKey(0, 'receive', 0),
    sign: (messages) => JSON.stringify(messages.map((message) => root.sign(0, 'receive', 0, message, true))),
  }));
  descriptor = module.createMultisigDescriptor(2, keys(3));
  address = module.multisigAddress(descriptor, 'development');
  body = bodyOf('125000000');
  proposal = module.createMultisigPackage(descriptor, body, JSON.stringify([AMOUNT]), MANIFEST);
  return () => {
    for (const root of roots) root.free();
  };
});
const keys = (count: number): string => JSON.stringify(members.slice(0, count).map(({ publicKey }) => publicKey));
const bodyOf = (amount: string, more: Record<string, unknown> = {}): string =>
  module.encodeTransactionBody(
    requestOf(module, {
      outputs: [
        { address: module.burnAddress('development'), amount },
        { address, amount: '300000000' },
      ],
      ...more,
    }),
    MANIFEST,
  );
const digestOf = (of: string): string =>
  read<{ template_digest: string }>(module.reviewMultisigPackage(of, MANIFEST)).template_digest;
function signed(of: string, ...who: readonly number[]): string {
  return who.reduce((all, i) => {
    const messages = read<string[]>(module.multisigPackageSigningMessages(all, digestOf(all), MANIFEST));
    const { publicKey, sign } = members[i] as Member;
    return module.addMultisigPackageSignatures(all, publicKey, sign(messages), MANIFEST);
  }, of);
}
const combined = (...packages: readonly string[]): string =>
  module.combineMultisigPackages(JSON.stringify(packages), MANIFEST);

test('three members, one transaction: proposed, reviewed, signed apart, combined in any order, verified', () => {
  const review = read(module.reviewMultisigPackage(proposal, MANIFEST));
  expect(review).toMatchObject({
    address,
    network: 'development',
    chain_id: CHAIN,
    valid_from_height: '100',
    valid_until_height: '1100',
    inputs: [{ transaction_id: 'cd'.repeat(48), output_index: '3', amount: AMOUNT }],
    recipients: [
      { address: module.burnAddress('development'), amount: '125000000', change: false },
      { address, amount: '300000000', change: true },
    ],
    fee: '75000000',
    descriptor: read(descriptor),
    witness_profile: 'multisig_inline',
    signed_by: [],
    missing_signatures: '2',
  });
  const parts = [0, 1, 2].map((i) => signed(proposal, i));
  const [a, b, c] = parts as [string, string, string];
  const all = combined(a, c);
  expect(combined(c, a)).toBe(all);
  expect(combined(a, proposal, c, a)).toBe(all);
  const wire = module.completeMultisigPackage(all, MANIFEST);
  const spent = JSON.stringify([{ address, amount: AMOUNT }]);
  expect(read(module.verifyTransaction(wire, spent, null, MANIFEST))).toMatchObject({ fee: '75000000' });
  const quote = read(module.quoteTransactionWithInputProfiles(body, '["multisig_inline_2_of_3"]', MANIFEST));
  expect(quote).toEqual({ wire_bytes: review.wire_bytes, mass: review.mass, minimum_fee: review.minimum_fee });
  expect(quote.wire_bytes).toBe(String(wire.length / 2));
  const inspected = read<{
    witnesses: { profile: string; descriptor: unknown; signatures: { member: string; signature: string }[] }[];
  }>(module.inspectTransaction(wire, MANIFEST));
  const [witness] = inspected.witnesses;
  expect(witness).toMatchObject({ profile: 'multisig_inline', descriptor: read(descriptor) });
  // By hand, without a package.
  const own = module.encodeMultisigInlineWitness(descriptor, JSON.stringify(witness?.signatures));
  expect(module.assembleTransaction(body, JSON.stringify([own]), MANIFEST)).toBe(wire);
  expect(module.quoteTransactionWithWitnesses(body, JSON.stringify([own]), MANIFEST)).toBe(JSON.stringify(quote));
  // With all three the first two are taken; others see the same.
  expect(module.completeMultisigPackage(combined(a, b, c), MANIFEST)).toHaveLength(wire.length);
  expect(read<{ signed_by: string[] }>(module.reviewMultisigPackage(combined(a, b, c), MANIFEST)).signed_by).toEqual([
    '0',
    '1',
    '2',
  ]);
});

test('3-of-5, with three of them, and the members in any order make one descriptor', () => {
  const large = module.createMultisigDescriptor('3', keys(5));
  expect(module.createMultisigDescriptor(3, JSON.stringify(read<string[]>(keys(5)).reverse()))).toBe(large);
  expect(module.validateMultisigDescriptor(large)).toBe(large);
  const made = module.createMultisigPackage(large, body, JSON.stringify([AMOUNT]), MANIFEST);
  const all = combined(...[4, 0, 2].map((i) => signed(made, i)));
  const wire = module.completeMultisigPackage(all, MANIFEST);
  const spent = JSON.stringify([{ address: module.multisigAddress(large, 'development'), amount: AMOUNT }]);
  expect(codeOf(() => module.verifyTransaction(wire, spent, null, MANIFEST))).toBe('nothing refused');
  expect(
    codeOf(() => module.verifyTransaction(wire, JSON.stringify([{ address, amount: AMOUNT }]), null, MANIFEST)),
  ).toBe('witness_key_mismatch');
});

test('a referenced package (TRMSIGP2) of the wallet is decoded, reviewed, signed, combined and completed here', () => {
  const inline = decodePackage(fromHex(proposal), edge);
  const made = toHex(encodePackage(newPackage({ ...inline, profile: 'multisig_referenced' })));
  expect(Buffer.from(made, 'hex').subarray(0, 8).toString()).toBe('TRMSIGP2');
  expect(Buffer.from(proposal, 'hex').subarray(0, 8).toString()).toBe('TRMSIGP1');
  expect(read(module.decodeMultisigPackage(made, MANIFEST))).toMatchObject({
    witness_profile: 'multisig_referenced',
    body_hex: body,
  });
  expect(digestOf(made)).not.toBe(digestOf(proposal));
  expect(codeOf(() => combined(signed(made, 0), signed(proposal, 1)))).toBe('package_other');
  const wire = module.completeMultisigPackage(combined(signed(made, 0), signed(made, 1)), MANIFEST);
  const spent = JSON.stringify([{ address, amount: AMOUNT }]);
  expect(codeOf(() => module.verifyTransaction(wire, spent, null, MANIFEST))).toBe('witness_key_unregistered');
  expect(codeOf(() => module.verifyTransactionWithReferencedKeys(wire, spent, null, keys(2), MANIFEST))).toBe(
    'witness_key_unregistered',
  );
  expect(codeOf(() => module.verifyTransactionWithReferencedKeys(wire, spent, null, keys(3), MANIFEST))).toBe(
    'nothing refused',
  );
  const { wire_bytes } = read(
    module.quoteTransactionWithInputProfiles(body, '["multisig_referenced_2_of_3"]', MANIFEST),
  );
  expect(wire_bytes).toBe(String(wire.length / 2));
});

test('messages are given for the digest that was reviewed and for no other', () => {
  const other = module.createMultisigPackage(descriptor, bodyOf('125000001'), JSON.stringify([AMOUNT]), MANIFEST);
  const digest = digestOf(proposal);
  expect(codeOf(() => module.multisigPackageSigningMessages(other, digest, MANIFEST))).toBe('package_digest');
  expect(codeOf(() => module.multisigPackageSigningMessages(proposal, digest.slice(2), MANIFEST))).toBe('bad_hex');
  // Signatures change no digest: a member that reviewed the proposal has reviewed the signed one.
  expect(digestOf(signed(proposal, 1))).toBe(digest);
  // Two members who were shown different transactions.
  expect(codeOf(() => combined(signed(proposal, 0), signed(other, 1)))).toBe('package_other');
  // A bit of the recipient changed on the way, with the digest left as it was or made anew.
  const at = proposal.indexOf(body) + body.length - 40;
  const changed = `${proposal.slice(0, at)}${proposal[at] === '0' ? '1' : '0'}${proposal.slice(at + 1)}`;
  expect(codeOf(() => module.reviewMultisigPackage(changed, MANIFEST))).toBe('package_digest');
});

test('only partial packages are combined', () => {
  const whole = signed(proposal, 0, 1);
  expect(codeOf(() => combined(whole, signed(proposal, 2)))).toBe('package_complete');
  expect(codeOf(() => combined(proposal, whole))).toBe('package_complete');
  expect(
    module.completeMultisigPackage(combined(proposal, signed(proposal, 0), signed(proposal, 2)), MANIFEST),
  ).toMatch(/^[0-9a-f]+$/);
});

test('a stranger’s key, a member’s signature under another’s key, too few or too many signatures', () => {
  const messages = read<string[]>(module.multisigPackageSigningMessages(proposal, digestOf(proposal), MANIFEST));
  const [first, second, , stranger] = members as [Member, Member, Member, Member];
  const add = (publicKey: string, signatures: string) =>
    codeOf(() => module.addMultisigPackageSignatures(proposal, publicKey, signatures, MANIFEST));
  expect(add(stranger.publicKey, stranger.sign(messages))).toBe('package_member');
  expect(add(first.publicKey, second.sign(messages))).toBe('package_signature');
  expect(add(first.publicKey, '[]')).toBe('out_of_range');
  expect(add(first.publicKey, first.sign([...messages, ...messages]))).toBe('out_of_range');
  expect(codeOf(() => module.completeMultisigPackage(signed(proposal, 0), MANIFEST))).toBe('package_incomplete');
  expect(codeOf(() => module.completeMultisigPackage(signed(proposal, 0, 0, 0), MANIFEST))).toBe('package_incomplete');
});

test('another chain, network, rule set, or a fee that is too low is refused', () => {
  for (const [more, code] of [
    [{ chain_id: 'ac'.repeat(48) }, 'wrong_chain'],
    [{ network: 'testnet' }, 'wrong_network'],
    [{ rule_set: 2 }, 'unsupported_version'],
  ] as const)
    for (const work of [module.reviewMultisigPackage, module.decodeMultisigPackage, module.completeMultisigPackage])
      expect(codeOf(() => work(proposal, manifestOf(more)))).toBe(code);
  const dear = manifestOf({ min_fee_per_mass: '1000000' });
  expect(codeOf(() => module.createMultisigPackage(descriptor, body, JSON.stringify([AMOUNT]), dear))).toBe(
    'fee_below_minimum',
  );
  expect(codeOf(() => module.completeMultisigPackage(signed(proposal, 0, 1), dear))).toBe('fee_below_minimum');
  expect(codeOf(() => module.createMultisigPackage(descriptor, body, '["1"]', MANIFEST))).toBe('amount_range');
  expect(codeOf(() => module.createMultisigPackage(descriptor, body, '[]', MANIFEST))).toBe('out_of_range');
});

test('descriptors with a threshold of 1, a key twice, another order', () => {
  expect(codeOf(() => module.createMultisigDescriptor(1, keys(3)))).toBe('out_of_range');
  expect(codeOf(() => module.createMultisigDescriptor(2, keys(5)))).toBe('out_of_range');
  const [a, b, c] = read<{ members: string[] }>(descriptor).members as [string, string, string];
  expect(codeOf(() => module.createMultisigDescriptor(2, JSON.stringify([a, b, a])))).toBe('duplicate_entry');
  const refused = (members: string[]) =>
    codeOf(() => module.validateMultisigDescriptor(JSON.stringify({ threshold: '2', members })));
  expect(refused([b, a, c])).toBe('not_canonical');
  expect(refused([a, a, b])).toBe('not_canonical');
  expect(refused([a, b])).toBe('out_of_range');
});

test('packages that are cut short, made longer or have a flipped bit: an error with a code', () => {
  const whole = fromHex(signed(proposal, 0, 2));
  const random = randomOf(seed);
  for (let i = 0; i < repeats({ quick: 10, full: 60, deep: 100_000 }); i++) {
    const at = random(whole.length);
    const flipped = Uint8Array.from(whole);
    flipped[at] = (flipped[at] as number) ^ (1 << (i & 7));
    for (const bytes of [flipped, whole.subarray(0, at)]) {
      const code = codeOf(() => module.reviewMultisigPackage(toHex(bytes), MANIFEST));
      expect(code).toMatch(/^[a-z_]+$/);
      expect(code, `byte ${at}`).not.toBe('nothing refused');
    }
  }
  expect(codeOf(() => module.reviewMultisigPackage('00'.repeat(200_000), MANIFEST))).toBe('too_long');
  expect(completePackage(decodePackage(whole, edge)).length * 2).toBe(
    module.completeMultisigPackage(toHex(whole), MANIFEST).length,
  );
});

/** Descriptors, witnesses and packages (ledger rules 19 and 20, docs/protocol/multisig.md): the vectors as a reader with other code sees them, and every rule that refuses. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { verifyMessage } from '../../node/ml-dsa.ts';
import { formatAddress } from '../../protocol/address.ts';
import { MAX_SUPPLY } from '../../protocol/amount.ts';
import { type Bytes, concat, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { attempt } from '../../protocol/errors.ts';
import { multisigAddressPayload, multisigDescriptor } from '../../protocol/transactions/multisig.ts';
import {
  combinePackages,
  completePackage,
  decodePackage,
  encodePackage,
  type MultisigPackage,
  packageFee,
  packageMass,
  packageMessages,
  packageWireBytes,
  type SignedBy,
  withSignatures,
} from '../../protocol/transactions/multisig-package.ts';
import { decodeTransaction, MAX_TRANSACTION_BYTES } from '../../protocol/transactions/transaction.ts';
import { decodeWitness, encodeWitness, type MultisigWitness } from '../../protocol/transactions/witness.ts';
import vectors from '../../vectors/multisig.json' with { type: 'json' };
import { repeats, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { groupOf, proposal, signaturesBy, signedBy } from './members.ts';

const chainId = id(LABELS.chain, utf8('multisig'));
const chain = { chainId, head: () => ({ height: 5 }) } as Parameters<typeof proposal>[0];
const edge = { network: 'development', chainId, verify: verifyMessage } as const;
const spend = (first: number, amount = 500_000_000n) => ({
  outpoint: { transactionId: new Uint8Array(48).fill(first), outputIndex: first },
  amount,
});
const alice = developmentKey('alice');
const pays = (amount = 1_000_000n) => [{ address: alice.address, amount }];
const two = groupOf(2);
const three = groupOf(3);

function codeOf(work: () => unknown): string {
  const outcome = attempt(work);
  return outcome.ok ? 'nothing refused' : outcome.error.code;
}
const read = (of: MultisigPackage): MultisigPackage => decodePackage(encodePackage(of), edge);

test('the vectors, with node:crypto and by hand', () => {
  for (const { threshold, members, bytes, payload, address } of vectors.descriptors) {
    const head = Buffer.from([threshold, members.length]).toString('hex');
    expect(bytes).toBe(head + members.join(''));
    expect([...members].sort()).toEqual(members);
    const label = Buffer.from('SVC_MULTISIG_V1\0');
    const hash = createHash('sha384').update(label).update(Buffer.from(bytes, 'hex')).digest('hex');
    expect(payload).toBe(`01${hash}`);
    expect(formatAddress(fromHex(payload), 'development')).toBe(address);
    expect(
      toHex(multisigAddressPayload(multisigDescriptor(threshold, members.map((key) => fromHex(key)).reverse()))),
    ).toBe(payload);
  }
  const own = { network: 'development', chainId: id(LABELS.chain, utf8('vectors')), verify: verifyMessage } as const;
  for (const vector of vectors.packages) {
    const unsigned = decodePackage(fromHex(vector.unsigned), own);
    expect(toHex(unsigned.digest)).toBe(vector.template_digest);
    expect(unsigned.profile).toBe(vector.witness_profile);
    expect(packageMessages(unsigned).map((message) => toHex(message))).toEqual(vector.messages);
    expect([String(packageFee(unsigned)), packageMass(unsigned)]).toEqual([vector.fee, vector.mass]);
    const parts = vector.signed.map((part) => decodePackage(fromHex(part.package), own));
    for (const order of [parts, [...parts].reverse(), [...parts, unsigned, ...parts]])
      expect(toHex(encodePackage(combinePackages(order)))).toBe(vector.combined);
    const wire = completePackage(decodePackage(fromHex(vector.combined), own));
    expect(toHex(wire)).toBe(vector.wire);
    expect(wire.length).toBe(vector.wire_bytes);
  }
});

test('a set with another threshold, number of members, order, or a key twice is no descriptor', () => {
  const keys = three.descriptor.keys;
  for (const [threshold, members] of [
    [1, 3],
    [1, 1],
    [0, 3],
    [3, 3],
    [2, 2],
    [2, 5],
    [4, 5],
    [5, 5],
    [2, 4],
  ] as const)
    expect(codeOf(() => multisigDescriptor(threshold, keys.slice(0, members)))).toBe('out_of_range');
  const [a, b, c] = two.descriptor.keys as [Bytes, Bytes, Bytes];
  expect(codeOf(() => multisigDescriptor(2, [a, b, a]))).toBe('duplicate_entry');
  expect(codeOf(() => multisigDescriptor(2, [a, b, c.subarray(1)]))).toBe('out_of_range');
  for (const wrong of [
    [b, a, c],
    [a, c, b],
    [a, a, b],
    [a, b, b],
  ])
    expect(codeOf(() => multisigAddressPayload({ threshold: 2, keys: wrong }))).toBe('not_canonical');
});

const signature = (first: number): Bytes => new Uint8Array(3309).fill(first);
const inline = (members: readonly number[], group = two): MultisigWitness => ({
  profile: 'multisig_inline',
  descriptor: group.descriptor,
  signatures: members.map((member) => ({ member, signature: signature(member) })),
});

test('a witness has exactly as many signatures as the threshold, of different members in ascending order', () => {
  for (const members of [
    [0, 1],
    [0, 2],
    [1, 2],
  ]) {
    const bytes = encodeWitness(inline(members));
    expect(encodeWitness(decodeWitness(bytes))).toEqual(bytes);
  }
  for (const members of [[], [0], [0, 1, 2]]) expect(codeOf(() => encodeWitness(inline(members)))).toBe('out_of_range');
  expect(codeOf(() => encodeWitness(inline([0, 3])))).toBe('out_of_range');
  for (const members of [
    [0, 0],
    [1, 0],
    [2, 1],
  ])
    expect(codeOf(() => encodeWitness(inline(members)))).toBe('not_canonical');
  // The same on the way in: a hand that writes its own bytes.
  const bytes = encodeWitness(inline([0, 1]));
  const first = 3 + 3 * 1952;
  const second = first + 3310;
  const changed = (at: number, value: number): Bytes => bytes.map((byte, i) => (i === at ? value : byte));
  expect(codeOf(() => decodeWitness(changed(second, 0)))).toBe('not_canonical');
  expect(codeOf(() => decodeWitness(changed(first, 1)))).toBe('not_canonical');
  expect(codeOf(() => decodeWitness(changed(second, 3)))).toBe('out_of_range');
  expect(codeOf(() => decodeWitness(changed(1, 1)))).toBe('out_of_range');
  expect(codeOf(() => decodeWitness(changed(1, 3)))).toBe('out_of_range');
  expect(codeOf(() => decodeWitness(changed(2, 5)))).toBe('out_of_range');
  expect(codeOf(() => decodeWitness(changed(0, 4)))).toBe('unsupported_profile');
  expect(codeOf(() => decodeWitness(concat(bytes, Uint8Array.of(0))))).toBe('trailing_bytes');
  expect(codeOf(() => decodeWitness(bytes.subarray(0, -1)))).toBe('truncated');
});

test.each([
  ['multisig_inline', two, 5],
  ['multisig_inline', three, 3],
  ['multisig_referenced', two, 8],
  ['multisig_referenced', three, 6],
] as const)(
  '%s, %#: size, mass and fee are those of the complete transaction, and one input too many is refused',
  (profile, group, most) => {
    const spends = Array.from({ length: most + 1 }, (_, i) => spend(i + 1));
    const made = proposal(chain, group, spends.slice(0, most), pays(), { profile });
    const wire = completePackage(signedBy(made, ...group.members.slice(-group.descriptor.threshold)));
    expect(wire.length).toBe(packageWireBytes(made));
    expect(wire.length).toBeLessThanOrEqual(MAX_TRANSACTION_BYTES);
    expect(decodeTransaction(wire, chainId).witnesses).toHaveLength(most);
    expect(codeOf(() => proposal(chain, group, spends, pays(), { profile }))).toBe(
      most === 8 ? 'out_of_range' : 'too_long',
    );
  },
);

test('combining is commutative, associative and idempotent, also when a member signs twice', () => {
  const made = proposal(chain, three, [spend(1), spend(2)], pays());
  const parts = [...three.members, ...three.members].map((key) => read(signedBy(made, key)));
  const hex = (packages: readonly MultisigPackage[]) => toHex(encodePackage(combinePackages(packages)));
  const all = hex(parts);
  const random = randomOf(seed);
  for (let i = 0; i < 8; i++) {
    const order = [...parts].sort(() => random(2) - 0.5);
    expect(hex(order)).toBe(all);
    const at = 1 + random(order.length - 1);
    expect(hex([combinePackages(order.slice(at)), combinePackages(order.slice(0, at))])).toBe(all);
  }
  expect(hex([combinePackages(parts), combinePackages(parts)])).toBe(all);
  const complete = read(combinePackages(parts));
  expect(complete.signed.map(({ member }) => member)).toEqual([0, 1, 2, 3, 4]);
  const { witnesses } = decodeTransaction(completePackage(complete));
  expect((witnesses[0] as MultisigWitness).signatures.map(({ member }) => member)).toEqual([0, 1, 2]);
});

test('packages of different transactions, profiles or groups are not combined, and too few signatures complete nothing', () => {
  const made = proposal(chain, two, [spend(1)], pays());
  const part = signedBy(made, two.members[0]!);
  const others = [
    proposal(chain, two, [spend(1)], pays(2n)),
    proposal(chain, two, [spend(2)], pays()),
    proposal(chain, two, [spend(1)], pays(), { fee: 999_999n }),
    proposal(chain, two, [spend(1)], pays(), { profile: 'multisig_referenced' }),
    proposal(chain, groupOf(2, 'others'), [spend(1)], pays()),
    proposal(chain, three, [spend(1)], pays()),
    // The same body with another amount: only the digest tells.
    { ...proposal(chain, two, [spend(1, 500_000_001n)], pays(), { fee: packageFee(made) + 1n }) },
  ];
  for (const other of others) {
    expect(codeOf(() => combinePackages([part, other]))).toBe('package_other');
    expect(codeOf(() => combinePackages([other, part]))).toBe('package_other');
  }
  expect(codeOf(() => combinePackages([]))).toBe('out_of_range');
  expect(codeOf(() => completePackage(part))).toBe('package_incomplete');
  expect(codeOf(() => completePackage(combinePackages([part, signedBy(made, two.members[0]!)])))).toBe(
    'package_incomplete',
  );
});

test('a signature of a stranger, for another package, or on another input is refused with the member’s number', () => {
  const made = proposal(chain, two, [spend(1), spend(2)], pays());
  const other = proposal(chain, two, [spend(1), spend(2)], pays(3n));
  const [first, second] = two.members;
  const add = (key: typeof alice, signatures: readonly Bytes[]) =>
    withSignatures(made, key.publicKey, signatures, verifyMessage);
  expect(codeOf(() => add(alice, signaturesBy(made, alice)))).toBe('package_member');
  expect(codeOf(() => add(first!, signaturesBy(made, second!)))).toBe('package_signature');
  expect(codeOf(() => add(first!, signaturesBy(other, first!)))).toBe('package_signature');
  expect(codeOf(() => add(first!, signaturesBy(made, first!).reverse()))).toBe('package_signature');
  expect(codeOf(() => add(first!, signaturesBy(made, first!).slice(1)))).toBe('out_of_range');
  expect(() => add(second!, signaturesBy(made, first!))).toThrow('signature 0 of member 1 does not verify');
  // On another chain the same keys sign other messages.
  const elsewhere = proposal(
    { ...chain, chainId: id(LABELS.chain, utf8('another')) },
    two,
    [spend(1), spend(2)],
    pays(),
  );
  expect(codeOf(() => add(first!, signaturesBy(elsewhere, first!)))).toBe('package_signature');
  expect(codeOf(() => read(signedBy(elsewhere, first!)))).toBe('wrong_chain');
  const testnet = encodePackage(made);
  testnet[8] = 2;
  expect(codeOf(() => decodePackage(testnet, edge))).toBe('wrong_network');
});

test('what the members cannot sign for is not packed: amounts that do not add up, another owner, a heartbeat', () => {
  const owner = alice.address;
  const validator = new Uint8Array(48).fill(7);
  const bond = { name: 'bond', validator, owner, rewardAddress: owner, amount: 10_000_000_000n } as const;
  const rich = [spend(1, 100_000_000_000n)];
  expect(codeOf(() => proposal(chain, two, rich, [], { operation: bond }))).toBe('package_other');
  expect(codeOf(() => proposal(chain, two, rich, [], { operation: { ...bond, owner: two.address } }))).toBe(
    'nothing refused',
  );
  expect(codeOf(() => proposal(chain, two, rich, [], { operation: { name: 'heartbeat', validator, epoch: 1 } }))).toBe(
    'unsupported_kind',
  );
  expect(codeOf(() => proposal(chain, two, [spend(1)], pays(), { fee: -1n }))).toBe('amount_range');
  expect(codeOf(() => proposal(chain, two, [spend(1), spend(2, 0n)], pays()))).toBe('amount_range');
  const all = [spend(1, MAX_SUPPLY), spend(2, MAX_SUPPLY)];
  expect(codeOf(() => proposal(chain, two, all, pays(), { fee: MAX_SUPPLY }))).toBe('amount_range');
});

test('a package names each member that has signed once, in one order: nobody signs twice towards the threshold', () => {
  const whole = signedBy(proposal(chain, two, [spend(1)], pays()), two.members[0]!, two.members[2]!);
  const [one, other] = whole.signed as [SignedBy, SignedBy];
  const codeWith = (...signed: readonly SignedBy[]) =>
    codeOf(() => decodePackage(encodePackage({ ...whole, signed }), edge));
  expect(codeWith(one, other)).toBe('nothing refused');
  expect(codeWith()).toBe('nothing refused');
  for (const signed of [
    [other, one],
    [one, one],
    [one, other, other],
  ])
    expect(codeWith(...signed)).toBe('not_canonical');
  expect(codeWith({ ...one, member: whole.descriptor.keys.length })).toBe('out_of_range');
});

test('packages that are cut short, made longer or have a flipped bit are refused', () => {
  const whole = encodePackage(signedBy(proposal(chain, two, [spend(1)], pays()), two.members[0]!, two.members[2]!));
  const random = randomOf(seed);
  const rounds = repeats({ quick: 30, full: 200, deep: 100_000 });
  for (let i = 0; i < rounds; i++) {
    const flipped = Uint8Array.from(whole);
    const at = random(whole.length);
    flipped[at] = (flipped[at] as number) ^ (1 << random(8));
    expect(
      codeOf(() => decodePackage(flipped, edge)),
      `a bit of byte ${at}`,
    ).not.toBe('nothing refused');
    expect(codeOf(() => decodePackage(whole.subarray(0, at), edge))).not.toBe('nothing refused');
  }
  expect(codeOf(() => decodePackage(concat(whole, Uint8Array.of(0)), edge))).toBe('trailing_bytes');
  expect(codeOf(() => decodePackage(new Uint8Array(192 * 1024 + 1), edge))).toBe('too_long');
  expect(codeOf(() => decodePackage(whole, edge))).toBe('nothing refused');
});

/**
 * What a thief with one key of a 2-of-3 address, a stranger with none, and a relay that changes what it passes on try against a real node. Nothing of it moves a coin, and none of it
 * takes the honest transaction of the members out of the mempool.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { UnspentOutput } from '../../node/full-node.ts';
import { type DevelopmentKey, developmentKey } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { ADDRESS_KINDS } from '../../protocol/address.ts';
import { type Bytes, compareBytes, concat, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { attempt } from '../../protocol/errors.ts';
import {
  completePackage,
  type MultisigPackage,
  packageMessages,
} from '../../protocol/transactions/multisig-package.ts';
import { encodeTransaction, type Transaction, type Witness } from '../../protocol/transactions/transaction.ts';
import type { MultisigWitness } from '../../protocol/transactions/witness.ts';
import { count, seed } from '../level.ts';
import { funded, groupOf, mined, proposal, send, signedBy } from '../multisig/members.ts';
import { Bed } from '../node/bed.ts';
import { randomOf } from '../random.ts';

const alice = developmentKey('alice');
const mallory = developmentKey('mallory');
const group = groupOf(2);
const [thief, other] = group.members as [DevelopmentKey, DevelopmentKey];
type Inline = Extract<MultisigWitness, { profile: 'multisig_inline' }>;

let bed: Bed;
let spend: UnspentOutput;
let made: MultisigPackage;
let honest: Uint8Array<ArrayBuffer>;
beforeEach(async () => {
  bed = await Bed.open();
  [spend] = (await funded(bed, group.address)) as [UnspentOutput];
  made = proposal(bed.node.chain, group, [spend], [{ address: alice.address, amount: 1_000_000n }], {
    // Enough for a longer witness, too.
    fee: 1_000_000n,
  });
  honest = completePackage(signedBy(made, thief, other));
});
afterEach(() => bed.close());

const message = (): Bytes => packageMessages(made)[0] as Bytes;
const by = (key: DevelopmentKey, over: Bytes = message()): Bytes => signMessage(key.privateKey, over);
const witness = (signatures: readonly [number, Bytes][], descriptor = group.descriptor): Inline => ({
  profile: 'multisig_inline',
  descriptor,
  signatures: signatures.map(([member, signature]) => ({ member, signature })),
});
const encoded = (one: Witness): Transaction => ({ body: made.body, witnesses: [one] });
const tries = async (one: Witness): Promise<string> => {
  const wire = attempt(() => encodeTransaction(encoded(one)));
  return wire.ok ? await send(bed, wire.value) : wire.error.code;
};
/** Bytes written by hand, past what the codec would write. */
const raw = (of: Bytes, change: (bytes: Uint8Array, witnessAt: number) => Uint8Array | undefined): Uint8Array => {
  const bytes = Uint8Array.from(of);
  const at = 2 + ((bytes[0] as number) | ((bytes[1] as number) << 8));
  return change(bytes, at) ?? bytes;
};
const FIRST = 3 + 3 * 1952;
const SECOND = FIRST + 3310;

test('one member signs for two', async () => {
  const mine = by(thief);
  expect(
    await tries(
      witness([
        [0, mine],
        [1, mine],
      ]),
    ),
  ).toBe('signature_invalid');
  expect(
    await tries(
      witness([
        [0, mine],
        [1, by(thief)],
      ]),
    ),
  ).toBe('signature_invalid');
  expect(
    await tries(
      witness([
        [0, mine],
        [2, by(mallory)],
      ]),
    ),
  ).toBe('signature_invalid');
  expect(
    await tries(
      witness([
        [0, mine],
        [0, mine],
      ]),
    ),
  ).toBe('not_canonical');
  expect(await tries(witness([[0, mine]]))).toBe('out_of_range');
  // The number of the second member changed to the first's, by hand.
  expect(
    await send(
      bed,
      raw(honest, (bytes, at) => bytes.fill(0, at + SECOND, at + SECOND + 1)),
    ),
  ).toBe('transaction_malformed');
});

test('the right signatures in the wrong order or under each other’s numbers', async () => {
  const [first, second] = [by(thief), by(other)];
  expect(
    await tries(
      witness([
        [1, second],
        [0, first],
      ]),
    ),
  ).toBe('not_canonical');
  expect(
    await tries(
      witness([
        [0, second],
        [1, first],
      ]),
    ),
  ).toBe('signature_invalid');
  expect(
    await tries(
      witness([
        [1, first],
        [2, second],
      ]),
    ),
  ).toBe('signature_invalid');
  expect(
    await tries(
      witness([
        [0, first],
        [3, second],
      ]),
    ),
  ).toBe('out_of_range');
  const swapped = raw(honest, (bytes, at) => {
    bytes[at + FIRST] = 1;
    bytes[at + SECOND] = 0;
    return undefined;
  });
  expect(await send(bed, swapped)).toBe('transaction_malformed');
});

test('signatures for another transaction, input, amount, address or chain', async () => {
  const elsewhere = proposal(
    { chainId: id(LABELS.chain, utf8('another')), head: () => bed.node.chain.head() },
    group,
    [spend],
    [{ address: alice.address, amount: 1_000_000n }],
  );
  const more = proposal(bed.node.chain, group, [spend], [{ address: mallory.address, amount: 1_000_000n }]);
  const richer = proposal(bed.node.chain, group, [{ ...spend, amount: spend.amount + 1n }], [], {});
  for (const wrong of [elsewhere, more, richer].map((one) => packageMessages(one)[0] as Bytes))
    expect(
      await tries(
        witness([
          [0, by(thief, wrong)],
          [1, by(other, wrong)],
        ]),
      ),
    ).toBe('signature_invalid');
  // What members signed as owners of an operation spends nothing.
  const operation = id(LABELS.operation, made.bodyBytes);
  expect(
    await tries(
      witness([
        [0, by(thief, operation)],
        [1, by(other, operation)],
      ]),
    ),
  ).toBe('signature_invalid');
  expect(await send(bed, completePackage(signedBy(elsewhere, thief, other)))).toBe('transaction_malformed');
});

test('a set of the thief’s own keys, a lower threshold, a key twice', async () => {
  const own = groupOf(2, 'of the thief');
  const pair = own.members.slice(0, 2).map((key, i): [number, Bytes] => [i, by(key)]);
  expect(await tries(witness(pair, own.descriptor))).toBe('witness_key_mismatch');
  // One key of the set exchanged for the thief's second one.
  const keys = [thief.publicKey, mallory.publicKey, group.descriptor.keys[2] as Bytes].sort(compareBytes);
  const at = (key: DevelopmentKey): number => keys.indexOf(key.publicKey);
  const signatures = [thief, mallory].map((key): [number, Bytes] => [at(key), by(key)]).sort(([a], [b]) => a - b);
  expect(await tries(witness(signatures, { threshold: 2, keys }))).toBe('witness_key_mismatch');
  const [a, b] = group.descriptor.keys as [Bytes, Bytes];
  expect(
    await tries(
      witness(
        [
          [0, by(thief)],
          [1, by(thief)],
        ],
        { threshold: 2, keys: [a, a, b].sort(compareBytes) },
      ),
    ),
  ).toBe('not_canonical');
  expect(await tries(witness([[0, by(thief)]], { threshold: 1 as 2, keys: group.descriptor.keys }))).toBe(
    'out_of_range',
  );
  expect(
    await send(
      bed,
      raw(honest, (bytes, start) => bytes.fill(1, start + 1, start + 1 + 1)),
    ),
  ).toBe('transaction_malformed');
  // A 3-of-5 set that contains the members is another address.
  const five = groupOf(3);
  const trio = five.members.slice(0, 3).map((key, i): [number, Bytes] => [i, by(key)]);
  expect(await tries(witness(trio, five.descriptor))).toBe('witness_key_mismatch');
});

test('a single key’s witness for a multisig address, and a multisig witness for a key’s address', async () => {
  expect(await tries({ profile: 'inline', publicKey: thief.publicKey, signature: by(thief) })).toBe(
    'witness_key_mismatch',
  );
  expect(await tries({ profile: 'referenced', signature: by(thief) })).toBe('witness_key_mismatch');
  const [own] = (await funded(bed, alice.address, 1, 1)) as [UnspentOutput];
  const change = proposal(bed.node.chain, group, [own], []);
  expect(await send(bed, completePackage(signedBy(change, thief, other)))).toBe('witness_key_mismatch');
});

test('an address over keys in another order is nobody’s, inline or by reference', async () => {
  const keys = [...group.descriptor.keys].reverse();
  const bytes = concat(Uint8Array.of(2, 3), ...keys);
  const address = concat(Uint8Array.of(ADDRESS_KINDS.multisig), id(LABELS.multisig, bytes));
  const [lost] = (await funded(bed, address, 1, 1)) as [UnspentOutput];
  // The members' keys become known by an honest spend.
  expect(await send(bed, honest)).toBe('accepted');
  await mined(bed);
  const wrong = proposal(bed.node.chain, group, [lost], [], { profile: 'multisig_referenced' });
  const [over] = packageMessages({ ...wrong, address }) as [Bytes];
  const hashes = keys.map((key) => id(LABELS.address, key));
  const reversed: MultisigWitness = {
    profile: 'multisig_referenced',
    threshold: 2,
    keyHashes: hashes,
    signatures: [
      { member: 1, signature: by(other, over) },
      { member: 2, signature: by(thief, over) },
    ],
  };
  expect(await send(bed, encodeTransaction({ body: wrong.body, witnesses: [reversed] }))).toBe('witness_key_mismatch');
});

test('a reference to keys of which one is not registered, or to one key three times', async () => {
  expect(await send(bed, honest)).toBe('accepted');
  const effects = await mined(bed);
  const change = effects.created.find(({ address }) => compareBytes(address, group.address) === 0) as UnspentOutput;
  const next = proposal(bed.node.chain, group, [change], [], { profile: 'multisig_referenced' });
  const [over] = packageMessages(next) as [Bytes];
  const hashes = group.descriptor.keys.map((key) => id(LABELS.address, key));
  const referenced = (keyHashes: readonly Bytes[]): MultisigWitness => ({
    profile: 'multisig_referenced',
    threshold: 2,
    keyHashes,
    signatures: [thief, other].map((key, member) => ({ member, signature: by(key, over) })),
  });
  const go = (keyHashes: readonly Bytes[]) =>
    send(bed, encodeTransaction({ body: next.body, witnesses: [referenced(keyHashes)] }));
  expect(await go([hashes[0] as Bytes, hashes[1] as Bytes, id(LABELS.address, mallory.publicKey)])).toBe(
    'witness_key_unregistered',
  );
  expect(await go([hashes[0] as Bytes, hashes[0] as Bytes, hashes[0] as Bytes])).toBe('witness_key_mismatch');
  expect(await go([hashes[1] as Bytes, hashes[0] as Bytes, hashes[2] as Bytes])).toBe('witness_key_mismatch');
  expect(await go(hashes)).toBe('accepted');
});

test('witnesses that are too long, too short or too many', async () => {
  expect(await send(bed, concat(honest, new Uint8Array(1)))).toBe('transaction_malformed');
  expect(await send(bed, concat(honest, new Uint8Array(60_000)))).toBe('transaction_malformed');
  expect(await send(bed, honest.subarray(0, -1))).toBe('transaction_malformed');
  // A third signature behind the two that are wanted.
  const third = concat(Uint8Array.of(2), by(group.members[2] as DevelopmentKey));
  expect(await send(bed, concat(honest, third))).toBe('transaction_malformed');
  expect(
    await send(
      bed,
      raw(honest, (bytes, at) => bytes.fill(5, at + 2, at + 2 + 1)),
    ),
  ).toBe('transaction_malformed');
});

test('a copy with a flipped bit, refused at the door or in a block, leaves the honest one where it is', async () => {
  const random = randomOf(seed);
  const witnessAt = honest.length - 12_479;
  for (let i = 0; i < count({ quick: 10, full: 60, deep: 2_000 }); i++) {
    const place = witnessAt + random(honest.length - witnessAt);
    const flipped = raw(honest, (bytes) => bytes.fill((bytes[place] as number) ^ (1 << random(8)), place, place + 1));
    expect(['transaction_malformed', 'witness_key_mismatch', 'signature_invalid', 'fee_below_minimum']).toContain(
      await send(bed, flipped),
    );
  }
  expect(await send(bed, honest)).toBe('accepted');
  expect((await mined(bed)).transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
});

/** Random packages and multisig transactions, whole and damaged, through the module and the node's and wallet's own code: the same bytes, the same verdicts. */
import { beforeAll, expect, test } from 'vitest';
import { type ReadTransaction, readTransaction } from '../../node/ledger/work-block.ts';
import { VerifiedTransactions } from '../../node/mempool/witness-check.ts';
import { verifyMessage } from '../../node/ml-dsa.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { minimumFee } from '../../protocol/transactions/fee.ts';
import {
  completePackage,
  decodePackage,
  encodePackage,
  type MultisigPackage,
  newPackage,
  packageFee,
  packageMass,
  packageMessages,
} from '../../protocol/transactions/multisig-package.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { repeats, seed } from '../level.ts';
import { type Group, groupOf, signaturesBy } from '../multisig/members.ts';
import { randomOf } from '../random.ts';
import { codeOf, loadModule, type Module } from './load.ts';
import { MANIFEST } from './payment.ts';

const CHAIN = fromHex('ab'.repeat(48));
const edge = { network: 'development', chainId: CHAIN, verify: verifyMessage } as const;
const below = randomOf(seed);
const GROUPS: readonly Group[] = [groupOf(2), groupOf(3), groupOf(2, 'others')];
let module: Module;
beforeAll(async () => {
  module = await loadModule();
});

function randomPackage(group: Group): MultisigPackage {
  const profile = below(2) === 0 ? 'multisig_inline' : 'multisig_referenced';
  const inputs = Array.from({ length: 1 + below(3) }, (_, i) => ({
    transactionId: new Uint8Array(48).fill(below(256)),
    outputIndex: i,
  }));
  const payload = new Uint8Array(below(2) === 0 ? 0 : 1 + below(50));
  const [validFromHeight, validUntilHeight] = [below(100), 100 + below(100)];
  const made = (amount: bigint) =>
    newPackage({
      profile,
      network: 'development',
      body: {
        chainId: CHAIN,
        validFromHeight,
        validUntilHeight,
        inputs,
        outputs: [{ address: group.address, amount }],
        payload,
      },
      amounts: inputs.map(() => 10_000_000n),
      descriptor: group.descriptor,
    });
  const fee = minimumFee(packageMass(made(1n))) + BigInt(below(1000));
  return made(10_000_000n * BigInt(inputs.length) - fee);
}

/** What the node says of a submission whose inputs it knows. */
function nodeVerdict(wire: Bytes, spends: readonly Output[], keys: readonly Bytes[]): string {
  let read: ReadTransaction;
  try {
    read = readTransaction(wire, CHAIN);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return error.code;
  }
  if (read.body.inputs.length !== spends.length) return 'out_of_range';
  const sum = (list: readonly Output[]) => list.reduce((all, { amount }) => all + amount, 0n);
  const fee = sum(spends) - sum(read.body.outputs);
  if (fee < 0n) return 'amounts_exceed_inputs';
  if (fee < minimumFee(read.mass)) return 'fee_below_minimum';
  const unspent = spends.map((output) => ({ ...output, source: 'regular', height: 0 }) as never);
  const registered = (address: Bytes) => keys.find((key) => toHex(keyAddressPayload(key)) === toHex(address));
  const verdict = new VerifiedTransactions().check(read, unspent, registered);
  return verdict === 'valid' ? 'nothing refused' : verdict;
}

/** Often where the witnesses say how many, who and whose: there a change matters most. */
function damage(wire: Bytes, witnessAt: number): Bytes {
  const bytes = Uint8Array.from(wire);
  const at = below(3) === 0 ? witnessAt + below(4) : below(wire.length);
  bytes[at] = below(2) === 0 ? below(6) : (bytes[at] as number) ^ (1 << below(8));
  return bytes;
}

test('packages and transactions have the same bytes and verdicts here and at the node', () => {
  const verdicts = new Map<string, number>();
  for (let i = 0; i < repeats({ quick: 2, full: 8, deep: 2000 }); i++) {
    const group = GROUPS[below(2)] as Group;
    const own = randomPackage(group);
    const descriptor = JSON.stringify({
      threshold: String(group.descriptor.threshold),
      members: group.descriptor.keys.map((key) => toHex(key)),
    });
    let hex = toHex(encodePackage(own));
    if (own.profile === 'multisig_inline') {
      const amounts = JSON.stringify(own.amounts.map(String));
      expect(module.createMultisigPackage(descriptor, toHex(own.bodyBytes), amounts, MANIFEST)).toBe(hex);
    }
    const review = JSON.parse(module.reviewMultisigPackage(hex, MANIFEST)) as Record<string, string>;
    expect(review).toMatchObject({
      template_digest: toHex(own.digest),
      fee: String(packageFee(own)),
      mass: String(packageMass(own)),
    });
    const messages = JSON.parse(module.multisigPackageSigningMessages(hex, toHex(own.digest), MANIFEST)) as string[];
    expect(messages).toEqual(packageMessages(own).map((message) => toHex(message)));
    const start = below(group.members.length);
    for (let k = 0; k < group.descriptor.threshold; k++) {
      const key = group.members[(start + k) % group.members.length] as (typeof group.members)[number];
      const signatures = JSON.stringify(signaturesBy(own, key).map((signature) => toHex(signature)));
      hex = module.addMultisigPackageSignatures(hex, toHex(key.publicKey), signatures, MANIFEST);
    }
    const read = decodePackage(fromHex(hex), edge);
    expect(toHex(encodePackage(read))).toBe(hex);
    const wire = fromHex(module.completeMultisigPackage(hex, MANIFEST));
    expect(toHex(completePackage(read))).toBe(toHex(wire));
    const other = below(4) === 0 ? (GROUPS[2] as Group).address : group.address;
    const spends = own.amounts.map((amount, k): Output => ({ address: k === 0 ? other : group.address, amount }));
    const known = below(4) === 0 ? group.descriptor.keys.slice(1) : group.descriptor.keys;
    const witnessAt = 2 + own.bodyBytes.length;
    for (const bytes of [wire, ...Array.from({ length: 6 }, () => damage(wire, witnessAt))]) {
      const here = codeOf(() =>
        module.verifyTransactionWithReferencedKeys(
          toHex(bytes),
          JSON.stringify(
            spends.map(({ address, amount }) => ({
              address: formatAddress(address, 'development'),
              amount: String(amount),
            })),
          ),
          null,
          JSON.stringify(known.map((key) => toHex(key))),
          MANIFEST,
        ),
      );
      const node = nodeVerdict(bytes, spends, known);
      expect(here).toBe(node);
      verdicts.set(node, (verdicts.get(node) ?? 0) + 1);
    }
  }
  expect([...verdicts.keys()].length).toBeGreaterThan(2);
});

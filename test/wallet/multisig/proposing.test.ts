/** How a payment from a multisig address is divided (docs/wallet.md, Multisig): every part fits a transaction, the parts add up to the amount, and no atom is lost. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { developmentKey } from '../../../node/genesis/development.ts';
import { massOf, minimumFee, wireBytesOf } from '../../../protocol/transactions/fee.ts';
import { multisigDescriptor } from '../../../protocol/transactions/multisig.ts';
import { MAX_TRANSACTION_BYTES } from '../../../protocol/transactions/transaction.ts';
import { multisigShape } from '../../../protocol/transactions/witness.ts';
import { type GroupOutput, proposalParts } from '../../../wallet/multisig/proposing.ts';
import { count, seed } from '../../level.ts';

const keys = (members: number) => Array.from({ length: members }, (_, i) => developmentKey(`proposing ${i}`).publicKey);
const two = multisigDescriptor(2, keys(3));
const three = multisigDescriptor(3, keys(5));
const outputsOf = (amounts: readonly bigint[]): GroupOutput[] =>
  amounts.map((amount, outputIndex) => ({ outpoint: { transactionId: new Uint8Array(48), outputIndex }, amount }));
const terms = { profile: 'multisig_inline', descriptor: two, feePerMass: 10n, payloadBytes: 0 } as const;

test('one output is enough: one part, with change', () => {
  const parts = proposalParts(outputsOf([500n, 10_000_000n, 20_000_000n]), 1_000_000n, terms);
  expect(parts).toMatchObject([{ inputs: [{ amount: 20_000_000n }], amount: 1_000_000n }]);
});

test('more outputs than fit one transaction: several, and what is not worth its fee stays', () => {
  const parts = proposalParts(outputsOf(Array<bigint>(12).fill(10_000_000n)), 100_000_000n, terms);
  expect('needed' in parts ? [] : parts.map(({ inputs }) => inputs.length)).toEqual([5, 5, 1]);
  expect(proposalParts(outputsOf(Array<bigint>(50).fill(1_000n)), 10_000n, terms)).toHaveProperty('needed');
  expect(proposalParts([], 1n, terms)).toHaveProperty('needed');
});

test('an output that must be spent comes first, however small it is', () => {
  const outputs = outputsOf([20_000_000n, 500n, 10_000_000n]);
  const parts = proposalParts(outputs, 1_000_000n, { ...terms, first: outputs[1] });
  expect(parts).toMatchObject([{ inputs: [{ amount: 500n }, { amount: 20_000_000n }], amount: 1_000_000n }]);
});

test('whatever the outputs: parts fit, pay the amount exactly, cost at least the minimum, and use no output twice', () => {
  fc.assert(
    fc.property(
      fc.array(fc.bigInt({ min: 1n, max: 40_000_000n }), { maxLength: 40 }),
      fc.bigInt({ min: 1n, max: 400_000_000n }),
      fc.constantFrom('multisig_inline', 'multisig_referenced'),
      fc.constantFrom(two, three),
      fc.nat({ max: 2048 }),
      fc.nat({ max: 80 }),
      (amounts, amount, profile, descriptor, payloadBytes, place) => {
        const outputs = outputsOf(amounts);
        const first = outputs[place];
        const parts = proposalParts(outputs, amount, { profile, descriptor, feePerMass: 10n, payloadBytes, first });
        const held = amounts.reduce((sum, one) => sum + one, 0n);
        if ('needed' in parts) {
          expect(parts.needed).toBeGreaterThan(0n);
          // One transaction's fee for each output on its own would be the worst way to spend.
          const worst = minimumFee(
            massOf({ witnesses: [multisigShape(profile, descriptor.threshold)], inputs: 1, outputs: 2, payloadBytes }),
          );
          expect(held - worst * BigInt(amounts.length)).toBeLessThan(amount);
          return;
        }
        expect(parts.reduce((sum, part) => sum + part.amount, 0n)).toBe(amount);
        const used = parts.flatMap(({ inputs }) => inputs);
        expect(new Set(used).size).toBe(used.length);
        if (first !== undefined) expect(used[0]).toBe(first);
        for (const { inputs, amount: paid, change } of parts) {
          const shape = {
            witnesses: inputs.map(() => multisigShape(profile, descriptor.threshold)),
            inputs: inputs.length,
            outputs: change > 0n ? 2 : 1,
            payloadBytes,
          };
          expect(wireBytesOf(shape)).toBeLessThanOrEqual(MAX_TRANSACTION_BYTES);
          expect(paid).toBeGreaterThan(0n);
          const fee = inputs.reduce((sum, input) => sum + input.amount, 0n) - paid - change;
          expect(fee).toBeGreaterThanOrEqual(minimumFee(massOf(shape)));
          expect(fee).toBeLessThan(minimumFee(massOf({ ...shape, outputs: 3 })));
        }
      },
    ),
    { seed, numRuns: count({ quick: 100, full: 500, deep: 20_000 }) },
  );
});

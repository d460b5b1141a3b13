/** Coin selection and compounding, as properties over random wallets. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { massOf, minimumFee } from '../../../protocol/transactions/fee.ts';
import { MAX_INPUTS } from '../../../protocol/transactions/transaction.ts';
import { gather, MAX_MERGED, merges, mergesNeeded, nextRound } from '../../../wallet/payments/compounding.ts';
import { type Ask, type Plan, planWith, select } from '../../../wallet/payments/selection.ts';
import type { OwnedOutput } from '../../../wallet/state/records.ts';
import { SortedOutputs } from '../../../wallet/state/sorted-outputs.ts';
import { count, seed } from '../../level.ts';

const runs = { numRuns: count({ quick: 200, full: 500, deep: 20_000 }), seed };

const outputs = (amounts: readonly bigint[]): OwnedOutput[] =>
  amounts.map((amount, i) => ({
    key: `${i.toString(16).padStart(96, '0')}:0`,
    amount,
    address: `address ${i % 3}`,
    height: i,
    source: 'work_reward',
  }));

const amount = fc.bigInt({ min: 1n, max: 10_000_000_000n });
const askOf = fc.record({
  amounts: fc.array(amount, { minLength: 1, maxLength: 7 }),
  payloadBytes: fc.nat(200),
  feePerMass: fc.bigInt({ min: 1n, max: 50n }),
  subtractFee: fc.boolean(),
  registered: fc.nat(7),
});
const fullAsk = ({ registered, ...ask }: Omit<Ask, 'profileOf'> & { registered: number }): Ask => ({
  ...ask,
  profileOf: ({ address }) => ((registered >> Number(address.slice(-1))) & 1 ? 'referenced' : 'inline'),
});

const total = (amounts: readonly bigint[]) => amounts.reduce((sum, one) => sum + one, 0n);

function checkPlan(plan: Plan, ask: Ask): void {
  const held = total(plan.inputs.map((one) => one.amount));
  expect(plan.inputs.length).toBeLessThanOrEqual(MAX_INPUTS);
  expect(new Set(plan.inputs.map(({ key }) => key)).size).toBe(plan.inputs.length);
  expect(held).toBe(total(plan.amounts) + plan.change + plan.fee);
  expect(plan.amounts.every((one) => one > 0n)).toBe(true);
  const made = plan.amounts.length + (plan.change > 0n ? 1 : 0);
  const shape = { witnesses: plan.profiles, inputs: plan.inputs.length, outputs: made, payloadBytes: ask.payloadBytes };
  expect(plan.mass).toBe(massOf(shape));
  expect(plan.fee).toBeGreaterThanOrEqual(minimumFee(plan.mass, ask.feePerMass));
  if (ask.subtractFee) expect(total(plan.amounts)).toBeLessThanOrEqual(total(ask.amounts));
  else expect(plan.amounts).toEqual(ask.amounts);
}

test('a plan balances, pays its fee and spends at most eight outputs; a refusal is true', () => {
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 60 }), askOf, (amounts, terms) => {
      const ask = fullAsk(terms);
      const available = new SortedOutputs(outputs(amounts));
      const found = select(available, ask);
      if (!('refusal' in found)) return checkPlan(found, ask);
      const largest = Array.from(
        { length: Math.min(MAX_INPUTS, available.size) },
        (_, i) => available.at(-1 - i) as OwnedOutput,
      );
      if (found.refusal !== 'amount_below_fee') expect(planWith(largest, ask)).toBeUndefined();
      if (found.refusal === 'insufficient_funds') expect(available.total).toBeLessThan(found.needed);
    }),
    runs,
  );
});

test('one output that covers everything is taken alone, and the smallest such', () => {
  const ask = fullAsk({ amounts: [1_000_000n], payloadBytes: 0, feePerMass: 10n, subtractFee: false, registered: 0 });
  const plan = select(new SortedOutputs(outputs([5n, 9_000_000n, 3_000_000n, 1_000_001n])), ask);
  expect('refusal' in plan ? plan : plan.inputs.map((one) => one.amount)).toEqual([3_000_000n]);
});

test('the order is kept under any sequence of additions and removals', () => {
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 40 }), fc.array(fc.nat(39), { maxLength: 80 }), (amounts, toggles) => {
      const all = outputs(amounts);
      const sorted = new SortedOutputs();
      const held = new Set<OwnedOutput>();
      for (const toggle of toggles) {
        const output = all[toggle];
        if (output === undefined) continue;
        if (held.delete(output)) expect(sorted.remove(output)).toBe(true);
        else {
          held.add(output);
          sorted.add(output);
        }
        expect(sorted.has(output)).toBe(held.has(output));
      }
      expect([...sorted].map((one) => one.amount)).toEqual(
        [...held].map((one) => one.amount).sort((a, b) => (a < b ? -1 : 1)),
      );
      expect(sorted.total).toBe(total([...held].map((one) => one.amount)));
    }),
    runs,
  );
});

test('gathered outputs come down to a payment in as few merges as possible', () => {
  fc.assert(
    fc.property(fc.integer({ min: 9, max: MAX_MERGED }), askOf, (size, terms) => {
      const ask = fullAsk({ ...terms, amounts: [terms.amounts[0] as bigint], subtractFee: false });
      const each = 2_000_000n * ask.feePerMass;
      const available = new SortedOutputs(outputs(Array.from({ length: size }, () => each)));
      const wanted = { ...ask, amounts: [each * BigInt(size - Math.ceil(size / 4))] };
      const gathered = gather(available, wanted);
      if ('needed' in gathered) return expect(available.total).toBeLessThan(gathered.needed);
      let held = [...gathered];
      let made = 0;
      for (let round = 0; held.length > MAX_INPUTS; round++) {
        expect(round).toBeLessThan(3);
        const merged = nextRound(held, ask);
        expect(merged.length).toBeGreaterThan(0);
        const gone = new Set(merged.flatMap((one) => one.inputs));
        expect(gone.size).toBe(merged.reduce((sum, one) => sum + one.inputs.length, 0));
        held = held.filter((one) => !gone.has(one));
        for (const one of merged)
          held.push({
            key: `merge ${made++}:0`,
            amount: one.amount,
            address: 'address 0',
            height: 0,
            source: 'regular',
          });
      }
      expect(made).toBe(mergesNeeded(gathered.length));
      const plan = planWith(held, wanted);
      expect(plan).toBeDefined();
      checkPlan(plan as Plan, wanted);
    }),
    runs,
  );
});

test('dust that is not worth its fee stays where it is', () => {
  const ask = fullAsk({ amounts: [1n], payloadBytes: 0, feePerMass: 10n, subtractFee: false, registered: 0 });
  expect(merges(outputs(Array.from({ length: 20 }, () => 100n)), ask, 64, 2)).toEqual([]);
  expect(
    merges(outputs(Array.from({ length: 17 }, () => 1_000_000n)), ask, 64, 2).map((one) => one.inputs.length),
  ).toEqual([8, 8]);
  expect(
    merges(outputs(Array.from({ length: 17 }, () => 1_000_000n)), ask, 64, 1).map((one) => one.inputs.length),
  ).toEqual([8, 8, 1]);
});

/** Admission beside a cut that is being made. */
import { expect, test } from 'vitest';
import { Admission, type AdmissionDependencies } from '../../node/mempool/admission.ts';
import { sampleTransactions } from '../../vectors/generate/transaction.ts';

test('an input that the cut under way brings is not called unknown', async () => {
  const { body, wire } = sampleTransactions()[0]!;
  let settled = false;
  const cut = Promise.withResolvers<void>();
  const ledger = {
    state: { height: body.validFromHeight },
    isExecuted: () => false,
    spender: () => undefined,
    output: () => (settled ? { address: body.outputs[0]!.address, amount: 1n } : undefined),
  };
  const dependencies = {
    mempool: { get: () => undefined, spender: () => undefined, isSlotTaken: () => false },
    ledger: () => ledger,
    sealing: () => (settled ? undefined : cut.promise),
  } as unknown as AdmissionDependencies;
  const admission = new Admission({ chainId: body.chainId, maxPending: 1 }, dependencies);
  const submission = admission.submit(wire, 'own');
  settled = true;
  cut.resolve();
  // Found now, and refused for what it is: it pays no fee.
  expect(await submission).toMatchObject({ status: 'refused', error: { code: 'fee_below_minimum' } });
});

test('without a cut under way an unknown input is refused at once', async () => {
  const { body, wire } = sampleTransactions()[0]!;
  const dependencies = {
    mempool: { get: () => undefined, spender: () => undefined, isSlotTaken: () => false },
    ledger: () => ({
      state: { height: body.validFromHeight },
      isExecuted: () => false,
      spender: () => undefined,
      output: () => undefined,
    }),
    sealing: () => undefined,
  } as unknown as AdmissionDependencies;
  const admission = new Admission({ chainId: body.chainId, maxPending: 1 }, dependencies);
  expect(await admission.submit(wire, 'own')).toMatchObject({ status: 'refused', error: { code: 'input_unknown' } });
});

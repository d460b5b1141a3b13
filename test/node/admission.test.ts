/** Admission beside a cut that is being made. */
import { expect, test } from 'vitest';
import type { Origin, Submission } from '../../node/full-node.ts';
import { Admission, type AdmissionDependencies } from '../../node/mempool/admission.ts';
import { VerifiedTransactions } from '../../node/mempool/witness-check.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, type SingleWitness } from '../../protocol/transactions/transaction.ts';
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
    progress: {
      get sealing() {
        return settled ? undefined : cut.promise;
      },
    },
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
    progress: { sealing: undefined },
  } as unknown as AdmissionDependencies;
  const admission = new Admission({ chainId: body.chainId, maxPending: 1 }, dependencies);
  expect(await admission.submit(wire, 'own')).toMatchObject({ status: 'refused', error: { code: 'input_unknown' } });
});

/** A door with eight places, through which every transaction waits for something that never comes. */
function crowdedDoor(dependencies: object) {
  const { body, witnesses } = decodeTransaction(sampleTransactions()[0]!.wire);
  const [witness] = witnesses as [SingleWitness & { publicKey: Uint8Array }];
  const all = {
    mempool: { get: () => undefined, spender: () => undefined, isSlotTaken: () => false, hasRoomFor: () => true },
    verified: new VerifiedTransactions(),
    workers: { verify: () => new Promise(() => undefined) },
    ledger: () => ledger,
    progress: { sealing: undefined },
    ...dependencies,
  } as unknown as AdmissionDependencies;
  const ledger = {
    state: { height: body.validFromHeight },
    isExecuted: () => false,
    spender: () => undefined,
    output: () => ({ address: keyAddressPayload(witness.publicKey), amount: 10n ** 12n }),
  };
  const admission = new Admission({ chainId: body.chainId, maxPending: 8 }, all);
  let sent = 0;
  /** Outcomes of so many more; those that wait have none. */
  return async (count: number, origin: Origin): Promise<string[]> => {
    const outcomes: string[] = [];
    for (let i = 0; i < count; i++) {
      const other = { ...body, payload: utf8(`\0${sent++}`) };
      void admission
        .submit(encodeTransaction({ body: other, witnesses }), origin)
        .then((outcome: Submission) => outcomes.push(outcome.status === 'refused' ? outcome.error.code : 'taken'));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return outcomes;
  };
}

test('transactions of peers that are being checked leave places for those that are submitted here', async () => {
  const submit = crowdedDoor({});
  expect(await submit(9, 'relayed')).toEqual(Array(3).fill('mempool_full'));
  expect(await submit(3, 'own')).toEqual(['mempool_full']);
});

test('made-up inputs do not fill the door while a cut is made: a quarter of the places waits for it', async () => {
  const { body } = sampleTransactions()[0]!;
  const nothing = {
    state: { height: body.validFromHeight },
    isExecuted: () => false,
    spender: () => undefined,
    output: () => undefined,
  };
  const submit = crowdedDoor({ ledger: () => nothing, progress: { sealing: new Promise(() => undefined) } });
  expect(await submit(8, 'relayed')).toEqual(Array(6).fill('input_unknown'));
  expect(await submit(3, 'own')).toEqual(['input_unknown']);
});

/** Valid transactions over one output cost their sender no score, and those that are checked at the same time are all checked: their bytes are bounded. In virtual time. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeRelayQuestion, encodeBatch, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { wireOf } from '../network/relay-host.ts';

const MEBIBYTE = 1024 * 1024;
const STRANGERS = 4;
const SECONDS = 3;
/** Transactions of 42 KB each: as many as an answer holds. */
const BATCH = 48;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('strangers that deliver as fast as they can have a bounded number of bytes checked, and an honest payment is checked soon', async () => {
  const one = decodeTransaction(wireOf(0));
  const [input] = one.body.inputs as [(typeof one.body.inputs)[number]];
  const body = { ...one.body, inputs: Array.from({ length: 8 }, (_, outputIndex) => ({ ...input, outputIndex })) };
  const witnesses = body.inputs.map(() => one.witnesses[0] as (typeof one.witnesses)[number]);
  const byId = new Map<string, Uint8Array>();
  const rivals = (count: number) =>
    Array.from({ length: count }, () => {
      const wire = encodeTransaction({ body: { ...body, validUntilHeight: 1_000 + byId.size }, witnesses });
      const id = transactionIdOfWire(wire);
      byId.set(toHex(id), wire);
      return id;
    });
  const [honest] = rivals(1) as [Uint8Array];
  let bytes = 0;
  let honestAt = Number.NaN;
  const relay = new TransactionRelay({
    node: {
      on: () => () => undefined,
      mempool: { get: () => undefined },
      chain: { transactionStatus: () => undefined },
      submitTransaction: async (wire: Uint8Array) => {
        bytes += wire.length;
        if (toHex(transactionIdOfWire(wire)) === toHex(honest)) honestAt = Date.now();
        return { status: 'refused', error: { code: 'input_conflict', message: '' } };
      },
    },
    network: {
      ask: async (_peer: string, _: string, question: Uint8Array) => {
        const asked = decodeRelayQuestion(question);
        return encodeWires((asked.type === 'transactions' ? asked.ids : []).map((id) => byId.get(toHex(id))));
      },
      fault: () => undefined,
      publish: () => undefined,
    },
    isSynced: () => true,
    steady: () => Date.now(),
  } as unknown as TransactionRelayDependencies);
  const began = Date.now();
  const announce = (peer: string, ids: Uint8Array[]) => void relay.judge(peer, encodeBatch(randomBytes(8), ids));
  for (let second = 0; second < SECONDS; second++) {
    for (let stranger = 0; stranger < STRANGERS; stranger++)
      for (let batch = 0; batch < 2; batch++) announce(`stranger ${stranger}`, rivals(BATCH));
    if (second === 1) announce('honest', [honest]);
    await vi.advanceTimersByTimeAsync(1_000);
  }
  relay.close();
  expect(bytes).toBeLessThan((16 + SECONDS * 4) * MEBIBYTE);
  expect(honestAt - began).toBeLessThan(1_500);
});

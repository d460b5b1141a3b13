/** Peers that bring as many payments as they may at once, while few of all can be checked: what waits for its check is bounded, and an honest peer's payment comes. In virtual time. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeRelayQuestion, encodeBatch, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { wireOf } from '../network/relay-host.ts';

const MEBIBYTE = 1_024 * 1_024;
const STRANGERS = 15;
/** In one answer, of those that a peer may have two on their way. */
const PAYMENTS = 95;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Payments of 43 KiB that differ; nobody checks their signatures here. */
function payments(): () => Uint8Array {
  const one = decodeTransaction(wireOf(0));
  const [witness] = one.witnesses;
  const long = { ...one, witnesses: Array.from({ length: 8 }, () => witness as NonNullable<typeof witness>) };
  const inputs = Array.from({ length: 8 }, (_, i) => ({ ...one.body.inputs[0], outputIndex: i }) as never);
  const until = (validUntilHeight: number) =>
    encodeTransaction({ ...long, body: { ...one.body, inputs, validUntilHeight } });
  // Encoded once, as most of the work would be: the others differ in the height alone.
  const [first, other] = [until(1_000), until(1_001)];
  const at = first.findIndex((byte, i) => byte !== other[i]);
  let count = 0;
  return () => {
    const wire = Uint8Array.from(first);
    new DataView(wire.buffer).setUint16(at, 1_000 + count++, true);
    return wire;
  };
}

test('of fifteen peers that bring eight mebibytes each no more waits than is allowed together', async () => {
  const next = payments();
  const byId = new Map<string, Uint8Array>();
  let taken = 0;
  const relay = new TransactionRelay({
    node: {
      on: () => () => undefined,
      mempool: { get: () => undefined },
      chain: { transactionStatus: () => undefined },
      submitTransaction: async (wire: Uint8Array) => {
        taken += wire.length;
        return { status: 'refused', error: { code: 'input_conflict', message: '' } };
      },
    },
    network: {
      ask: async (_: string, __: string, question: Uint8Array) => {
        const read = decodeRelayQuestion(question);
        return encodeWires((read.type === 'transactions' ? read.ids : []).map((id) => byId.get(toHex(id))));
      },
      fault: () => undefined,
      publish: () => undefined,
    },
    isSynced: () => true,
    steady: () => Date.now(),
  } as unknown as TransactionRelayDependencies);
  let [given, settled] = [0, 0];
  const announce = (peer: string, count: number) => {
    const wires = Array.from({ length: count }, next);
    const ids = wires.map((wire) => transactionIdOfWire(wire));
    for (const [i, wire] of wires.entries()) byId.set(toHex(ids[i] as Uint8Array), wire);
    const bytes = wires.reduce((sum, { length }) => sum + length, 0);
    given += bytes;
    return relay.judge(peer, encodeBatch(randomBytes(8), ids)).then((finding) => {
      settled += bytes;
      for (const id of ids) byId.delete(toHex(id));
      return finding;
    });
  };
  for (let i = 0; i < STRANGERS; i++) for (let batch = 0; batch < 2; batch++) void announce(`stranger ${i}`, PAYMENTS);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(given).toBeGreaterThan(110 * MEBIBYTE);
  // What is neither checked nor given up waits here.
  expect(given - settled).toBeLessThanOrEqual(80 * MEBIBYTE);
  let isHere = false;
  void announce('honest', 1).then(() => {
    isHere = true;
  });
  await vi.advanceTimersByTimeAsync(3_000);
  expect(isHere).toBe(true);
  expect(taken).toBeLessThanOrEqual((16 + 5 * 4) * MEBIBYTE);
  relay.close();
});

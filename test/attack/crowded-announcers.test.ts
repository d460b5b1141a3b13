/** Many strangers that announce what an honest peer announces too, or keep all busy with checks: its transactions come all the same. In virtual time. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeRelayQuestion, encodeBatch, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { wireOf } from '../network/relay-host.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
const isHonest = (peer: string) => peer === 'honest';

type Answering = (peer: string, ids: readonly Uint8Array[]) => Promise<readonly (Uint8Array | undefined)[]>;

/** A relay whose mempool takes what the honest peer has. */
function relayed(answer: Answering, own: ReadonlySet<string>) {
  const [taken, asked, faults] = [new Map<string, number>(), [] as string[], [] as string[]];
  const relay = new TransactionRelay({
    node: {
      on: () => () => undefined,
      mempool: { get: (id: Uint8Array) => (taken.has(toHex(id)) ? {} : undefined) },
      chain: { transactionStatus: () => undefined },
      submitTransaction: async (wire: Uint8Array) => {
        const name = toHex(transactionIdOfWire(wire));
        if (!own.has(name)) return { status: 'refused', error: { code: 'input_conflict', message: '' } };
        taken.set(name, Date.now());
        return { status: 'accepted' };
      },
    },
    network: {
      ask: async (peer: string, _: string, question: Uint8Array) => {
        asked.push(peer);
        const read = decodeRelayQuestion(question);
        return encodeWires(await answer(peer, read.type === 'transactions' ? read.ids : []));
      },
      fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
      publish: () => undefined,
    },
    isSynced: () => true,
    steady: () => Date.now(),
  } as unknown as TransactionRelayDependencies);
  const announce = (peer: string, ids: readonly Uint8Array[]) =>
    void relay.judge(peer, encodeBatch(randomBytes(8), ids));
  return { relay, announce, taken, asked, faults };
}

/** When a payment is here that so many strangers announce before an honest peer does. */
async function delay(strangers: number): Promise<{ millis: number; faults: readonly string[] }> {
  const wire = wireOf(0);
  const id = transactionIdOfWire(wire);
  const { relay, announce, taken, faults } = relayed(
    async (peer) => {
      if (isHonest(peer)) return [wire];
      await pause(10_000);
      return [undefined];
    },
    new Set([toHex(id)]),
  );
  const began = Date.now();
  for (let i = 0; i < strangers; i++) announce(`stranger ${i}`, [id]);
  announce('honest', [id]);
  await vi.advanceTimersByTimeAsync(60_000);
  relay.close();
  return { millis: (taken.get(toHex(id)) ?? Number.POSITIVE_INFINITY) - began, faults };
}

test('strangers that announce a payment first and have it not in time delay it by seconds, as they delay a block', async () => {
  expect((await delay(1)).millis).toBe(1_500);
  const eight = await delay(8);
  expect([eight.millis, eight.faults]).toEqual([4_500, []]);
  expect((await delay(49)).millis).toBeLessThanOrEqual(12_000);
});

test('a payment that a slow line delays is not asked of all who announce it at once', async () => {
  const wire = wireOf(0);
  const id = transactionIdOfWire(wire);
  const { relay, announce, asked } = relayed(
    async () => {
      await pause(4_000);
      return [wire];
    },
    new Set([toHex(id)]),
  );
  for (let i = 0; i < 49; i++) announce(`honest ${i}`, [id]);
  await vi.advanceTimersByTimeAsync(60_000);
  relay.close();
  expect(asked.length).toBeLessThanOrEqual(7);
});

test('strangers that have payments of one output checked without end leave an honest peer its part, however much it brings at once', async () => {
  const one = decodeTransaction(wireOf(0));
  const [input] = one.body.inputs as [(typeof one.body.inputs)[number]];
  const body = { ...one.body, inputs: Array.from({ length: 8 }, (_, outputIndex) => ({ ...input, outputIndex })) };
  const witnesses = body.inputs.map(() => one.witnesses[0] as (typeof one.witnesses)[number]);
  const byId = new Map<string, Uint8Array>();
  const noted = (wire: Uint8Array) => {
    const id = transactionIdOfWire(wire);
    byId.set(toHex(id), wire);
    return id;
  };
  const payments = Array.from({ length: 256 }, (_, i) => noted(wireOf(i)));
  const own = new Set(payments.map((id) => toHex(id)));
  const rival = () => noted(encodeTransaction({ body: { ...body, validUntilHeight: 1_000 + byId.size }, witnesses }));
  const { relay, announce, taken } = relayed(async (peer, ids) => {
    // Always one that waits to be checked, and one that is under way.
    if (!isHonest(peer)) announce(peer, [rival()]);
    await pause(10);
    return ids.map((id) => byId.get(toHex(id)));
  }, own);
  for (let i = 0; i < 24; i++) for (let twice = 0; twice < 2; twice++) announce(`stranger ${i}`, [rival()]);
  await vi.advanceTimersByTimeAsync(2_000);
  announce('honest', payments);
  await vi.advanceTimersByTimeAsync(5_000);
  relay.close();
  expect(taken.size).toBeGreaterThan(payments.length / 2);
});

/** Payments that an honest node announces and has no more when it is asked, because a stranger chose their end, or because it was asked late. In virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeRelayQuestion, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { wireOf } from '../network/relay-host.ts';

const CUT_MILLIS = 2_500;
const CUTS = 14;
const WAY_MILLIS = 50;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
const one = decodeTransaction(wireOf(0));

let height = 0;

/** A mempool that takes everything and its relay; `asks`: of the one neighbour. */
class Node {
  readonly pool = new Map<string, Uint8Array>();
  readonly faults: string[] = [];
  readonly relay: TransactionRelay;
  asks: (ids: readonly Uint8Array[]) => Promise<(Uint8Array | undefined)[]> = async () => [];
  publishes: (data: Uint8Array) => void = () => undefined;
  #added: (added: object) => void = () => undefined;

  constructor() {
    this.relay = new TransactionRelay({
      node: {
        on: (_: string, listener: (added: object) => void) => {
          this.#added = listener;
          return () => undefined;
        },
        mempool: { get: (id: Uint8Array) => this.pool.get(toHex(id)) },
        chain: { transactionStatus: () => undefined, head: () => ({ height }) },
        submitTransaction: async (wire: Uint8Array) => this.take(wire),
      },
      network: {
        ask: async (_peer: string, _: string, question: Uint8Array) => {
          const read = decodeRelayQuestion(question);
          return encodeWires(await this.asks(read.type === 'transactions' ? read.ids : []));
        },
        fault: (peer: string, fault: string) => this.faults.push(`${peer} ${fault}`),
        publish: (_: string, data: Uint8Array) => this.publishes(data),
      },
      isSynced: () => true,
      steady: () => Date.now(),
    } as unknown as TransactionRelayDependencies);
  }

  take(wire: Uint8Array) {
    const id = transactionIdOfWire(wire);
    this.pool.set(toHex(id), wire);
    this.#added({ id, wire, body: decodeTransaction(wire).body });
    return { status: 'accepted', id };
  }
}

/** A relay, and the honest neighbour that it announces to, so many milliseconds away. */
function neighbours(wayMillis: number): { readonly relay: Node; readonly other: Node } {
  const [relay, other] = [new Node(), new Node()];
  relay.publishes = (data) => void pause(WAY_MILLIS).then(() => other.relay.judge('relay', data));
  other.asks = async (ids) => {
    await pause(wayMillis);
    const wires = ids.map((id) => relay.pool.get(toHex(id)));
    await pause(wayMillis);
    return wires;
  };
  return { relay, other };
}

let made = 0;
const paymentUntil = (validUntilHeight: number) => {
  const inputs = one.body.inputs.map((input) => ({ ...input, outputIndex: made }));
  made++;
  return encodeTransaction({ ...one, body: { ...one.body, inputs, validUntilHeight } });
};

test('payments that end with the next cut, sent just before it, bring no honest relay into discredit', async () => {
  const { relay, other } = neighbours(WAY_MILLIS);
  for (let cut = 0; cut < CUTS; cut++) {
    await vi.advanceTimersByTimeAsync(CUT_MILLIS - 300);
    for (let i = 0; i < 30; i++) {
      for (let k = 0; k < 10; k++) relay.take(paymentUntil(height + 1));
      await vi.advanceTimersByTimeAsync(10);
    }
    height++;
    for (const { pool } of [relay, other]) pool.clear();
  }
  const wire = paymentUntil(height + 1_000);
  relay.take(wire);
  await vi.advanceTimersByTimeAsync(10_000);
  for (const node of [relay, other]) node.relay.close();
  expect(other.faults).toEqual([]);
  expect([...other.pool.keys()]).toEqual([toHex(transactionIdOfWire(wire))]);
});

test('who is asked late for what it announced, because this node asked it for other payments meanwhile, is not blamed', async () => {
  const { relay, other } = neighbours(1_000);
  for (let i = 0; i < 4_000; i++) relay.take(paymentUntil(height + 1_000));
  await vi.advanceTimersByTimeAsync(3_000);
  // A cut took what they spend.
  relay.pool.clear();
  await vi.advanceTimersByTimeAsync(60_000);
  for (const node of [relay, other]) node.relay.close();
  expect(other.pool.size).toBeGreaterThan(256);
  expect(other.faults).toEqual([]);
});

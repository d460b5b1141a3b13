/** A relay between peers that announce one transaction at a time and an honest neighbour with its limits, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { PendingTransaction } from '../../node/full-node.ts';
import { decodeBatch, decodeRelayQuestion, encodeBatch, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';
import type { Topic } from '../../node/network/thread/host-types.ts';
import { toHex } from '../../protocol/bytes.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { wireOf } from './relay-host.ts';

const PEERS = 10;
const COUNT = 2_500;
const SECONDS = 2;
const SALT = new Uint8Array(8);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A node with what its peers announce: mempool, relay, and the desk of its network thread. */
class RelayingNode {
  readonly pool = new Map<string, Uint8Array>();
  readonly faults: string[] = [];
  readonly sent: Uint8Array[] = [];
  readonly relay: TransactionRelay;
  readonly #desk: GossipDesk;
  #added: (transaction: PendingTransaction) => void = () => undefined;

  /** `ask`: the wire bytes of a transaction at a peer. */
  constructor(ask: (peer: string, id: string) => Uint8Array | undefined, forward: (data: Uint8Array) => void) {
    const seen = new Set<string>();
    const send = (data: Uint8Array) => {
      this.sent.push(data);
      forward(data);
    };
    const dependencies = {
      node: {
        on: (_: string, listener: (transaction: PendingTransaction) => void) => {
          this.#added = listener;
          return () => undefined;
        },
        mempool: { get: (id: Uint8Array) => this.pool.get(toHex(id)) },
        chain: { transactionStatus: () => undefined, head: () => ({ height: 0 }) },
        submitTransaction: async (wire: Uint8Array) => {
          const id = transactionIdOfWire(wire);
          this.pool.set(toHex(id), wire);
          this.#added({ id, wire, body: { validUntilHeight: 1_000 } } as unknown as PendingTransaction);
          return { status: 'accepted', id };
        },
      },
      network: {
        ask: async (peer: string, _: string, question: Uint8Array) => {
          const asked = decodeRelayQuestion(question);
          return encodeWires((asked.type === 'transactions' ? asked.ids : []).map((id) => ask(peer, toHex(id))));
        },
        fault: (peer: string, fault: string) => this.faults.push(`${peer} ${fault}`),
        // The library sends no message that it has seen.
        publish: (_: Topic, data: Uint8Array) => void (seen.has(toHex(data)) || send(data)),
      },
      isSynced: () => true,
      steady: () => Date.now(),
    };
    this.relay = new TransactionRelay(dependencies as unknown as TransactionRelayDependencies);
    this.#desk = new GossipDesk({
      judge: (peer, _, data) => this.relay.judge(peer, data),
      flood: (peer) => this.faults.push(`${peer} flood`),
      steady: () => Date.now(),
    });
    this.hear = async (peer, data) => {
      if (seen.has(toHex(data))) return;
      seen.add(toHex(data));
      // What the library does with a message that was accepted.
      if ((await this.#desk.judge(peer, 'transactions', toHex(data.subarray(0, 58)), data)) === 'accept') send(data);
    };
  }

  readonly hear: (peer: string, data: Uint8Array) => Promise<void>;

  close(): void {
    this.relay.close();
    this.#desk.close();
  }
}

test('a relay that ten peers feed one transaction at a time gathers them, and stays within the limits of an honest neighbour', async () => {
  const wires = Array.from({ length: COUNT }, (_, i) => wireOf(i));
  const byId = new Map(wires.map((wire) => [toHex(transactionIdOfWire(wire)), wire]));
  const neighbour: RelayingNode = new RelayingNode(
    (_, id) => relay.pool.get(id),
    () => undefined,
  );
  const relay = new RelayingNode(
    (_, id) => byId.get(id),
    (data) => void neighbour.hear('relay', data),
  );
  const ids = wires.map((wire) => transactionIdOfWire(wire));
  const perStep = COUNT / (SECONDS * 100);
  for (let i = 0; i < COUNT; i++) {
    void relay.hear(`peer ${i % PEERS}`, encodeBatch(SALT, [ids[i] as Uint8Array]));
    if (i % perStep < 1) await vi.advanceTimersByTimeAsync(10);
  }
  await vi.advanceTimersByTimeAsync(2_000);
  expect([relay.faults, neighbour.faults]).toEqual([[], []]);
  expect([relay.pool.size, neighbour.pool.size]).toEqual([COUNT, COUNT]);
  // Each identifier once, in few batches.
  const sent = relay.sent.flatMap((data) => decodeBatch(data).map(toHex));
  expect([sent.length, new Set(sent).size]).toEqual([COUNT, COUNT]);
  expect(relay.sent.length).toBeLessThanOrEqual((SECONDS + 2) * 20);
  relay.close();
  neighbour.close();
});

test('a transaction that comes alone is passed on, though its batch would have the same content', async () => {
  const wire = wireOf(0);
  const neighbour: RelayingNode = new RelayingNode(
    () => wire,
    () => undefined,
  );
  const relay = new RelayingNode(
    () => wire,
    (data) => void neighbour.hear('relay', data),
  );
  void relay.hear('peer', encodeBatch(SALT, [transactionIdOfWire(wire)]));
  await vi.advanceTimersByTimeAsync(1_000);
  expect([relay.pool.size, neighbour.pool.size]).toEqual([1, 1]);
  relay.close();
  neighbour.close();
});

test('a desk counts what costs: bytes, and for a small message what handing it on costs', () => {
  const counted = (bytes: number, count: number) => {
    let floods = 0;
    const desk = new GossipDesk({
      judge: async () => 'ignore',
      flood: () => void floods++,
      steady: () => 0,
    });
    for (let i = 0; i < count; i++) {
      desk.mayCome('peer', new Uint8Array(bytes));
    }
    return floods;
  };
  expect(counted(50, 2_048)).toBe(0);
  expect(counted(50, 2_049)).toBe(1);
  // The largest message: fewer of them.
  expect(counted(32_768, 256)).toBe(0);
  expect(counted(32_768, 257)).toBe(1);
});

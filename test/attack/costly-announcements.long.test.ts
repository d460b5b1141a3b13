/** Announcements that cost the node more than their sender: identifiers that have to be looked up in the store, names of transactions that have to be read. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { AskError } from '../../node/network/peers/peer-fault.ts';
import { BlockRelay, type BlockRelayDependencies } from '../../node/network/relay/block-relay.ts';
import {
  decodeRelayQuestion,
  encodeBatch,
  encodeShortBlock,
  encodeWaiting,
  encodeWires,
  MAX_TRANSACTIONS,
  MAX_WAITING,
} from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { WaitingPull, type WaitingPullDependencies } from '../../node/network/relay/waiting-pull.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { decodeTransaction, encodeTransaction, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { noLimits, wireOf } from '../network/relay-host.ts';

const STRANGERS = 42;
const SECONDS = 4;
const idsOf = (count: number) => Array.from({ length: count }, () => randomBytes(48));

let [reads, faults] = [0, [] as string[]];
beforeEach(() => {
  vi.useFakeTimers();
  [reads, faults] = [0, []];
});
afterEach(() => {
  vi.useRealTimers();
});

/** A node that has nothing, and peers that have nothing of what they announce and say that they are busy. */
const parts = {
  node: {
    on: () => () => undefined,
    mempool: { get: () => undefined, list: () => [] },
    chain: {
      head: () => ({ height: 1 }),
      block: () => undefined,
      transactionStatus: () => {
        reads++;
        return undefined;
      },
    },
    ledger: { examineHeader: async () => ({ code: 'anchor_unknown' }) },
  },
  network: {
    ask: async (peer: string, _: string, bytes: Uint8Array) => {
      const question = decodeRelayQuestion(bytes);
      if (question.type === 'waiting')
        return encodeWaiting({ transactions: idsOf(MAX_WAITING.transactions), blocks: [] });
      if (peer !== 'liar') throw new AskError('busy', 'busy');
      return encodeWires((question.type === 'transactions' ? question.ids : []).map(() => undefined));
    },
    fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
    publish: () => undefined,
  },
  relay: noLimits,
  isSynced: () => true,
  steady: () => Date.now(),
};

test('identifiers of nothing cost the store a bounded number of reads, however many announce them, and others have their part', async () => {
  const relay = new TransactionRelay(parts as unknown as TransactionRelayDependencies);
  let honest = 0;
  for (let second = 0; second < SECONDS; second++) {
    for (let stranger = 0; stranger < STRANGERS; stranger++)
      for (let batch = 0; batch < 3; batch++)
        void relay.judge(`stranger ${stranger}`, encodeBatch(randomBytes(8), idsOf(MAX_TRANSACTIONS)));
    const before = reads;
    void relay.judge('honest', encodeBatch(randomBytes(8), idsOf(50)));
    honest += reads - before;
    await vi.advanceTimersByTimeAsync(1_000);
  }
  relay.close();
  expect(reads).toBeLessThan(40_000 + SECONDS * 5_000);
  expect(honest).toBeGreaterThan((SECONDS * 50) / 2);
});

test('what a peer says that waits is looked up a part at a time, and no further than it delivers', async () => {
  const pull = new WaitingPull(parts as unknown as WaitingPullDependencies);
  pull.joined('liar', { direction: 'inbound' });
  await vi.advanceTimersByTimeAsync(5_000);
  pull.close();
  expect(reads).toBe(MAX_TRANSACTIONS);
});

/** A peer that says that more wait than one answer holds, all of which are refused like this. */
async function pulled(code: string): Promise<{ readonly checked: number; readonly asked: number }> {
  const one = decodeTransaction(wireOf(0));
  const wires = new Map<string, Uint8Array>();
  for (let i = 0; i < MAX_TRANSACTIONS + 1; i++) {
    const wire = encodeTransaction({ ...one, body: { ...one.body, validUntilHeight: 1_000 + i } });
    wires.set(toHex(transactionIdOfWire(wire)), wire);
  }
  const count = { checked: 0, asked: 0 };
  const node = {
    ...parts.node,
    submitTransaction: async () => {
      count.checked++;
      return { status: 'refused', error: { code, message: '' } };
    },
  };
  const ask = async (_peer: string, _: string, bytes: Uint8Array) => {
    const question = decodeRelayQuestion(bytes);
    if (question.type !== 'transactions')
      return encodeWaiting({ transactions: [...wires.keys()].map((id) => fromHex(id)), blocks: [] });
    count.asked++;
    return encodeWires(question.ids.map((id) => wires.get(toHex(id))));
  };
  const network = { ...parts.network, ask };
  const pull = new WaitingPull({ ...parts, node, network } as unknown as WaitingPullDependencies);
  pull.joined('liar', { direction: 'inbound' });
  await vi.advanceTimersByTimeAsync(5_000);
  pull.close();
  return count;
}

test('a peer whose waiting transactions have false signatures is blamed for the first, and no other of them is checked', async () => {
  expect(await pulled('signature_invalid')).toEqual({ checked: 1, asked: 1 });
  expect(faults).toEqual(['liar bad_transaction']);
});

test('a peer of whose waiting transactions none is taken is not asked for the rest', async () => {
  expect(await pulled('input_conflict')).toEqual({ checked: MAX_TRANSACTIONS, asked: 1 });
  expect(faults).toEqual([]);
});

test('names behind a header are not read before the header is known to be good', async () => {
  const relay = new BlockRelay(parts as unknown as BlockRelayDependencies);
  const root = new Uint8Array(48);
  const header = encodeHeader({
    networkId: NETWORKS.development.id,
    anchorHeight: 900_000,
    timestampMillis: 1,
    anchorId: root,
    parentsRoot: root,
    transactionsRoot: root,
    rewardRoot: root,
    stateRoot: root,
    target: 1n,
    nonce: new Uint8Array(8),
  });
  const body = { payout: developmentKey('bob').address, extranonce: new Uint8Array(8), parents: [], transactions: [] };
  const announced = encodeShortBlock(header, body);
  const read = vi.spyOn(Buffer, 'from');
  const names = Buffer.concat([announced.subarray(0, -2), Uint8Array.of(3_500 & 255, 3_500 >> 8), randomBytes(28_000)]);
  expect(await relay.judge('stranger', names)).toBe('ignore');
  expect(read.mock.calls.length).toBeLessThan(10);
  read.mockRestore();
  expect(await relay.judge('stranger', announced.subarray(0, 20))).toBe('reject');
  relay.close();
  expect(faults).toEqual(['stranger malformed']);
});

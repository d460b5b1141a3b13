/** Who announces first and is then busy decides when honest announcers are asked: late, when a cut or a conflict took what they announced. In virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { AskError } from '../../node/network/peers/peer-fault.ts';
import { BlockRelay, type BlockRelayDependencies } from '../../node/network/relay/block-relay.ts';
import {
  decodeRelayQuestion,
  encodeBatch,
  encodeShortBlock,
  encodeWires,
} from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { encodeBlocksAnswer } from '../../node/network/sync/sync-messages.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { NETWORKS, REGISTRATION_WINDOW } from '../../protocol/network.ts';

const SALT = new Uint8Array(8);
const BATCH = 256;
const ROUNDS = 12;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function idsOf(round: number): Uint8Array[] {
  return Array.from({ length: BATCH }, (_, i) => {
    const id = new Uint8Array(48);
    new DataView(id.buffer).setUint32(0, round * BATCH + i);
    return id;
  });
}

const roundOf = (id: Uint8Array) => Math.floor(new DataView(id.buffer, id.byteOffset).getUint32(0) / BATCH);

/**
 * In each round a stranger, if `busyAfter` is set, and then the honest peer announce a batch, and the honest one has
 * nothing of it any more when it is asked. `takenAfter`: when this node knows the cut that took the batch; undefined:
 * it was a conflict, or it never was.
 */
async function faultsOf({ busyAfter, takenAfter }: { busyAfter?: number; takenAfter?: number }) {
  const faults: string[] = [];
  const asked = { stranger: 0, honest: 0 };
  const began: number[] = [];
  const isTaken = (id: Uint8Array) =>
    takenAfter !== undefined && Date.now() >= (began[roundOf(id)] as number) + takenAfter;
  const relay = new TransactionRelay({
    node: {
      on: () => () => undefined,
      mempool: { get: () => undefined },
      chain: { transactionStatus: (id: Uint8Array) => (isTaken(id) ? { final: true } : undefined) },
    },
    network: {
      ask: async (peer: 'stranger' | 'honest', _: string, question: Uint8Array) => {
        asked[peer]++;
        if (peer === 'stranger') {
          await new Promise((resolve) => setTimeout(resolve, busyAfter));
          throw new AskError('busy', 'busy');
        }
        const read = decodeRelayQuestion(question);
        return encodeWires((read.type === 'transactions' ? read.ids : []).map(() => undefined));
      },
      fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
      publish: () => undefined,
    },
    isSynced: () => true,
    steady: () => Date.now(),
  } as unknown as TransactionRelayDependencies);
  for (let round = 0; round < ROUNDS; round++) {
    began.push(Date.now());
    if (busyAfter !== undefined) void relay.judge('stranger', encodeBatch(SALT, idsOf(round)));
    void relay.judge('honest', encodeBatch(SALT, idsOf(round)));
    await vi.advanceTimersByTimeAsync(2_500);
  }
  await vi.advanceTimersByTimeAsync(20_000);
  relay.close();
  return { faults, asked };
}

test('an announcer that is asked late is not blamed for what a cut took meanwhile, and not asked for what is known to be in a cut', async () => {
  const late = await faultsOf({ busyAfter: 9_000, takenAfter: 2_000 });
  expect(late.faults).toEqual([]);
  expect(late.asked.honest).toBeGreaterThan(0);
  expect(await faultsOf({ busyAfter: 9_000, takenAfter: 1_000 })).toMatchObject({ faults: [], asked: { honest: 0 } });
});

test('nor is one that is asked at once and is a cut ahead of the node that asks', async () => {
  const { faults, asked } = await faultsOf({ takenAfter: 3_000 });
  expect(asked.honest).toBeGreaterThanOrEqual(ROUNDS);
  expect(faults).toEqual([]);
});

test('nor is one that is asked late for what a conflict took, which is in no cut', async () => {
  const { faults, asked } = await faultsOf({ busyAfter: 9_000 });
  expect(asked.honest).toBeGreaterThan(0);
  expect(faults).toEqual([]);
});

test('a peer that has nothing of what it announces when it is asked at once loses score, if no cut took it', async () => {
  const { faults } = await faultsOf({});
  expect(faults.length).toBeGreaterThanOrEqual(ROUNDS - 3);
  expect(new Set(faults)).toEqual(new Set(['honest undelivered']));
});

async function blockFaults({ head, isTaken = false }: { head: number; isTaken?: boolean }) {
  const faults: string[] = [];
  let asked = false;
  const relay = new BlockRelay({
    node: {
      on: () => () => undefined,
      mempool: { list: () => [] },
      chain: { block: () => (asked && isTaken ? {} : undefined), head: () => ({ height: head }) },
      ledger: { examineHeader: async () => undefined },
      submitBlock: async () => ({ status: 'refused', error: { code: 'transactions_root_mismatch' } }),
    },
    network: {
      ask: async () => {
        asked = true;
        return encodeBlocksAnswer([undefined]);
      },
      fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
      publish: () => undefined,
    },
    isSynced: () => true,
  } as unknown as BlockRelayDependencies);
  const root = new Uint8Array(48);
  const header = encodeHeader({
    networkId: NETWORKS.development.id,
    anchorHeight: 100,
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
  const finding = await relay.judge('honest', encodeShortBlock(header, body));
  relay.close();
  expect(asked).toBe(true);
  return { finding, faults };
}

test('a peer is not blamed for a block that it may have dropped at the end of its window or that is here by now, but for any other', async () => {
  const end = 100 + REGISTRATION_WINDOW;
  expect(await blockFaults({ head: end - 2 })).toEqual({ finding: 'undelivered', faults: [] });
  expect(await blockFaults({ head: 101, isTaken: true })).toEqual({ finding: 'ignore', faults: [] });
  expect(await blockFaults({ head: 101 })).toEqual({ finding: 'undelivered', faults: ['honest undelivered'] });
});

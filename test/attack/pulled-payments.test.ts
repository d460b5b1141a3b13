/** Strangers that are asked what waits, and answer with valid payments without end: they are checked within what all peers may have checked together. In virtual time. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeRelayQuestion, encodeWaiting, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import { WaitingPull, type WaitingPullDependencies } from '../../node/network/relay/waiting-pull.ts';
import { equalBytes, toHex } from '../../protocol/bytes.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { count } from '../level.ts';
import { wireOf } from '../network/relay-host.ts';

const MEBIBYTE = 1_024 * 1_024;
const SECONDS = count({ quick: 6, full: 20, deep: 60 });
/** So often are the same 256 named. */
const PARTS = Array.from({ length: 16 });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A node whose peers all come again under a new name once they were asked: what it checks and reads of them in a while. */
async function pulled(answer: 'payments' | 'known') {
  const wires = Array.from({ length: 256 }, (_, i) => wireOf(i));
  const byId = new Map(wires.map((wire) => [toHex(transactionIdOfWire(wire)), wire]));
  const ids = wires.map((wire) => transactionIdOfWire(wire));
  let [checked, read, names] = [0, 0, 0];
  const ask = async (peer: string, _: string, bytes: Uint8Array) => {
    const question = decodeRelayQuestion(bytes);
    if (question.type === 'waiting') {
      pull.left(peer);
      pull.joined(`stranger ${names++}`, { direction: 'inbound' });
      const many =
        answer === 'payments' ? PARTS.flatMap(() => ids) : Array.from({ length: 4_096 }, () => randomBytes(48));
      return encodeWaiting({ transactions: many, blocks: [] });
    }
    return encodeWires((question.type === 'transactions' ? question.ids : []).map((id) => byId.get(toHex(id))));
  };
  const dependencies = {
    node: {
      on: () => () => undefined,
      mempool: { get: () => undefined },
      chain: {
        head: () => ({ height: 1 }),
        block: () => undefined,
        transactionStatus: () => {
          read++;
          return answer === 'known' ? { final: true } : undefined;
        },
      },
      submitTransaction: async (wire: Uint8Array) => {
        checked += wire.length;
        // One of them is taken, so that the peer is asked for more.
        return equalBytes(wire, wires[0] as Uint8Array)
          ? { status: 'accepted' }
          : { status: 'refused', error: { code: 'conflict' } };
      },
    },
    network: { ask, fault: () => undefined, publish: () => undefined },
    isSynced: () => true,
    steady: () => Date.now(),
  };
  const relay = new TransactionRelay(dependencies as unknown as TransactionRelayDependencies);
  const pull = new WaitingPull({ ...dependencies, relay } as unknown as WaitingPullDependencies);
  for (let i = 0; i < 8; i++) pull.joined(`stranger ${names++}`, { direction: 'inbound' });
  await vi.advanceTimersByTimeAsync(SECONDS * 1_000);
  pull.close();
  relay.close();
  return { checked, read };
}

test('payments of strangers that are asked what waits are checked within what all peers share', async () => {
  // 4 MiB a second, and 16 at once.
  expect((await pulled('payments')).checked).toBeLessThanOrEqual((SECONDS * 4 + 16) * MEBIBYTE);
});

test('identifiers that strangers name as waiting are looked up within what all peers share', async () => {
  expect((await pulled('known')).read).toBeLessThanOrEqual(SECONDS * 5_000 + 40_000);
});

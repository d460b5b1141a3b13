/** Strangers that hold the places of those that are asked what waits, by answering late and coming again under new names. In virtual time. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeRelayQuestion, encodeWaiting, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { WaitingPull, type WaitingPullDependencies } from '../../node/network/relay/waiting-pull.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { noLimits, wireOf } from '../network/relay-host.ts';

const CUT_MILLIS = 2_500;
const STRANGERS = 8;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('strangers that answer late and come again do not keep a node from asking the peers that it chose what waits', async () => {
  const wire = wireOf(0);
  const id = transactionIdOfWire(wire);
  let [height, names, isWaiting, takenAt] = [1, 0, false, Number.NaN];
  const faults: string[] = [];
  const comeAgain = (stranger: string) => {
    pull.left(stranger);
    pull.joined(`stranger ${names++}`, { direction: 'inbound' });
  };
  const ask = async (peer: string, _: string, bytes: Uint8Array) => {
    const question = decodeRelayQuestion(bytes);
    const isHonest = peer.startsWith('chosen');
    if (!isHonest) await new Promise((resolve) => setTimeout(resolve, 9_900));
    const junk = () => Array.from({ length: 4_096 }, () => randomBytes(48));
    if (question.type === 'waiting')
      return encodeWaiting({ transactions: isHonest ? (isWaiting ? [id] : []) : junk(), blocks: [] });
    if (question.type !== 'transactions') throw new Error('nothing else is asked for');
    if (!isHonest) comeAgain(peer);
    return encodeWires(question.ids.map((asked) => (isHonest && equalBytes(asked, id) ? wire : undefined)));
  };
  const pull = new WaitingPull({
    node: {
      chain: { head: () => ({ height }), transactionStatus: () => undefined, block: () => undefined },
      mempool: { get: () => undefined },
      submitTransaction: async () => {
        if (Number.isNaN(takenAt)) takenAt = Date.now();
        return { status: 'accepted' };
      },
    },
    network: { ask, fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`) },
    relay: noLimits,
    isSynced: () => true,
    steady: () => Date.now(),
  } as unknown as WaitingPullDependencies);
  const cuts = setInterval(() => height++, CUT_MILLIS);
  for (let i = 0; i < 8; i++) pull.joined(`chosen ${i}`, { direction: 'outbound' });
  await vi.advanceTimersByTimeAsync(5_000);
  for (let i = 0; i < STRANGERS; i++) pull.joined(`stranger ${names++}`, { direction: 'inbound' });
  await vi.advanceTimersByTimeAsync(30_000);
  const began = Date.now();
  isWaiting = true;
  await vi.advanceTimersByTimeAsync(120_000);
  clearInterval(cuts);
  pull.close();
  expect(faults).toEqual([]);
  expect(takenAt - began).toBeLessThan(3 * CUT_MILLIS);
});

/** Strangers that announce what there is not and leave, again and again under new names: what waits here is never more than of those that are connected. In virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CutGossip, type CutGossipDependencies } from '../../node/network/relay/cut-gossip.ts';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';
import { blocksRoot, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { NETWORKS } from '../../protocol/network.ts';

const MEBIBYTE = 1_024 * 1_024;
/** More than a node has places for peers that come. */
const PLACES = 42;
const BYTES = 16 * 1_024;
/** More than one may leave open. */
const MESSAGES = 80;
const SECONDS = 32;
/** How many of the places have somebody else after a second. */
const NEW_ONES = 10;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const deskOf = () =>
  new GossipDesk({ judge: async () => 'undelivered', flood: () => undefined, steady: () => Date.now() });

/** Bytes that wait at most, of strangers that come and go; `helper`: a peer that stays and names the same. */
async function waiting(helper?: string): Promise<number> {
  const desk = deskOf();
  const places: string[] = [];
  const data = new Uint8Array(BYTES);
  let [count, most] = [0, 0];
  for (let second = 0; second < SECONDS; second++) {
    for (let i = 0; i < NEW_ONES; i++) {
      const name = `stranger ${second} ${i}`;
      places.push(name);
      for (let message = 0; message < MESSAGES; message++) {
        if (!desk.mayCome(name, data)) continue;
        const key = `key ${count++}`;
        void desk.judge(name, 'cuts', key, data);
        if (helper !== undefined) desk.announced(helper, key);
      }
      if (places.length > PLACES) desk.left(places.shift() as string);
    }
    await vi.advanceTimersByTimeAsync(1_000);
    most = Math.max(most, desk.open * BYTES);
  }
  desk.close();
  return most;
}

test('what strangers announced that have left waits no longer', async () => {
  expect(await waiting()).toBeLessThanOrEqual((PLACES + 1) * MEBIBYTE);
});

test('nor where a peer that stays names the same: it counts as its own', async () => {
  expect(await waiting('helper')).toBeLessThanOrEqual((PLACES + 2) * MEBIBYTE);
});

test('what another peer announced too is still asked of it', async () => {
  const asked: string[] = [];
  const desk = new GossipDesk({
    judge: async (peer) => {
      asked.push(peer);
      return peer === 'honest' ? 'accept' : await new Promise(() => undefined);
    },
    flood: () => undefined,
    steady: () => Date.now(),
  });
  const verdict = desk.judge('first', 'cuts', 'key', new Uint8Array(BYTES));
  desk.announced('second', 'key');
  desk.announced('honest', 'key');
  desk.left('first');
  desk.left('second');
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await verdict, asked]).toEqual(['accept', ['first', 'honest']]);
  desk.close();
});

test('a cut that a stranger announced just before it left is handed on as soon as it is here', async () => {
  const headerBytes = encodeCutHeader({
    networkId: NETWORKS.development.id,
    height: 11,
    timestampMillis: 11,
    previousId: new Uint8Array(48),
    blocksRoot: blocksRoot([]),
    stateRoot: new Uint8Array(48),
    validatorSetId: new Uint8Array(48),
    blockCount: 0,
    signers: 0n,
  });
  let height = 10;
  let arrived: (event: unknown) => void = () => undefined;
  /** As the library does: what it has seen it sends only when it was accepted. */
  const [seen, sent] = [new Set<string>(), [] as string[]];
  const gossip = new CutGossip({
    node: {
      chain: { head: () => ({ height }), cut: () => ({ headerBytes, blockIds: [] }) },
      on: (_: string, run: typeof arrived) => {
        arrived = run;
        return () => undefined;
      },
    },
    publish: () => {
      if (desk.own('cut 11')) seen.delete('cut 11');
      if (!seen.has('cut 11')) sent.push('cut 11');
    },
    fault: () => undefined,
    isSynced: () => true,
    heard: () => undefined,
    proved: () => undefined,
  } as unknown as CutGossipDependencies);
  const desk = new GossipDesk({
    judge: (peer, _, data) => gossip.judge(peer, data),
    flood: () => undefined,
    steady: () => Date.now(),
  });
  seen.add('cut 11');
  void desk.judge('stranger', 'cuts', 'cut 11', headerBytes).then((found) => {
    if (found === 'accept') sent.push('cut 11');
  });
  desk.left('stranger');
  await vi.advanceTimersByTimeAsync(1_000);
  height = 11;
  arrived({ header: { height }, headerBytes, registered: [] });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent).toEqual(['cut 11']);
  gossip.close();
  desk.close();
});

/** Strangers with invented snapshots come without end to a node that looks for one: the snapshot of a peer that was there before them is looked at within a bounded time. In virtual time, without sockets. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import type { PeerHandlers, PeerLink } from '../../node/network/peer-network.ts';
import { AskError } from '../../node/network/peers/peer-fault.ts';
import { fetchSnapshot } from '../../node/network/snapshots/fetch-snapshot.ts';
import { encodeOffers } from '../../node/network/snapshots/snapshot-messages.ts';
import { decodeSyncQuestion, encodeHeadersAnswer } from '../../node/network/sync/sync-messages.ts';
import { PROTOCOLS } from '../../node/network/thread/host-types.ts';
import { cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { KNOWN_SEED, START_MILLIS } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

const SOME = new Uint8Array(48).fill(7);
const TRUSTED = 300;
const NOW = 1_000_000;
const TOP = encodeCutHeader({
  networkId: NETWORKS.development.id,
  height: TRUSTED,
  timestampMillis: NOW,
  previousId: SOME,
  blocksRoot: SOME,
  stateRoot: SOME,
  validatorSetId: SOME,
  blockCount: 0,
  signers: 0n,
});
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis));

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: NOW }),
);
afterEach(() => void vi.useRealTimers());

/** A node that looks for a snapshot; `parts` are the peers that were asked for a part or for headers before the trusted cut, with the seconds. None of them answers. */
async function looking() {
  let handlers: PeerHandlers | undefined;
  let isStarted = false;
  const began = Date.now();
  const parts: { readonly peer: string; readonly at: number }[] = [];
  const here = new Set<string>();
  const offered = new Map<string, number>();
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => undefined);
  const link = {
    start: async () => {
      isStarted = true;
      return [];
    },
    close: async () => closed.reject(new Error('the network is closed')),
    fault: () => undefined,
    ask: async (peer: string, _: string, bytes: Uint8Array) => {
      const question = decodeSyncQuestion(bytes);
      if (question.type === 'snapshots')
        return encodeOffers([{ height: offered.get(peer) as number, cutId: new Uint8Array(48).fill(peer.length) }]);
      if (question.type === 'headers' && question.to === TRUSTED)
        return encodeHeadersAnswer({ headers: [TOP], certificate: undefined });
      parts.push({ peer, at: (Date.now() - began) / 1_000 });
      await Promise.race([pause(PROTOCOLS.sync.millis), closed.promise]);
      throw new AskError('unanswered', 'no answer');
    },
  };
  const closing = new AbortController();
  const genesis = developmentGenesis({
    timestampMillis: START_MILLIS,
    seed: KNOWN_SEED,
    initialWork: 1n,
    minimumWork: 1n,
    validators: 1,
  });
  const found = fetchSnapshot(
    {
      dataDir: temporaryDirectory(),
      peers: {} as never,
      trust: { height: TRUSTED, cutId: cutId(TOP) },
      genesis,
      release: '0.1.0',
    },
    {
      log: quietLog,
      now: () => NOW,
      steady: () => Date.now(),
      signal: closing.signal,
      openPeers: (_, given) => {
        handlers = given;
        return link as unknown as PeerLink;
      },
    },
  );
  found.catch(() => undefined);
  const end = async () => {
    closing.abort();
    for (let i = 0; i < 50; i++) {
      await vi.advanceTimersByTimeAsync(1_000);
      await turn();
    }
    await expect(found).rejects.toThrow('stopped');
  };
  while (!isStarted) await Promise.race([turn(), found]);
  for (let i = 0; i < 20; i++) await turn();
  const join = (
    peer: string,
    height: number,
    { direction = 'outbound' as 'outbound' | 'inbound', named = false } = {},
  ) => {
    here.add(peer);
    offered.set(peer, height);
    handlers?.joined(peer, { address: '/ip4/198.51.100.1/tcp/1', direction, named, release: '0.1.0', height });
  };
  const leave = (peer: string) => {
    if (here.delete(peer)) handlers?.left(peer);
  };
  const passes = async (seconds: number) => {
    for (let i = 0; i < 2 * seconds; i++) {
      await vi.advanceTimersByTimeAsync(500);
    }
  };
  return { parts, join, leave, passes, end, found, stop: () => closing.abort() };
}

/** As other peers of the same distance that the honest one cannot be told from. */
const NEWER = (i: number) => 383 + 96 * (i + 1);
const nameOf = (i: number) => `stranger${'x'.repeat(i)}`;

test('strangers with newer ones come again and again under new names: one that waits has its turn', async () => {
  const { parts, join, leave, passes, end } = await looking();
  for (let i = 0; i < 8; i++) join(nameOf(i), NEWER(i));
  join('honest', 383);
  for (let i = 8; i < 40; i++) {
    leave(nameOf(i - 8));
    join(nameOf(i), NEWER(i));
    await passes(15);
  }
  const looks = parts.filter(({ peer }) => peer === 'honest').map(({ at }) => at);
  expect(looks[0]).toBeLessThan(180);
  expect(looks.at(-1)).toBeGreaterThan(300);
  await end();
});

test('all others are there from the first and have newer ones: one that waits has its turn', async () => {
  const { parts, join, passes, end } = await looking();
  for (let i = 0; i < 40; i++) join(nameOf(i), NEWER(i));
  join('honest', 383);
  await passes(360);
  expect(parts.filter(({ peer }) => peer === 'honest').length).toBeGreaterThan(0);
  await end();
});

test('others come sooner than they are looked at: one that was looked at in vain has its turn again', async () => {
  const { parts, join, leave, passes, end } = await looking();
  join('honest', 383);
  for (let i = 0; i < 120; i++) {
    if (i >= 16) leave(nameOf(i - 16));
    join(nameOf(i), NEWER(i));
    await passes(5);
  }
  const looks = parts.filter(({ peer }) => peer === 'honest').map(({ at }) => at);
  expect(looks.filter((at) => at > 60).length).toBeGreaterThan(1);
  await end();
});

test('a node that is stopped while nobody answers stops at once', async () => {
  const { parts, join, passes, stop, found, end } = await looking();
  // Only headers prove it.
  for (let i = 0; i < 40; i++) join(nameOf(i), 191);
  await passes(5);
  expect(parts.length).toBeGreaterThan(0);
  let isOver = false;
  found.catch(() => {
    isOver = true;
  });
  stop();
  for (let i = 0; i < 4; i++) {
    await vi.advanceTimersByTimeAsync(500);
    await turn();
  }
  expect(isOver).toBe(true);
  await end();
});

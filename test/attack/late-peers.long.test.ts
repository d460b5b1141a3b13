/** Peers that answer just in time, claim to be as far as this node, announce cuts that there are not, or name what waits and have none of it. A network without sockets. */
import { expect, test } from 'vitest';
import { AskError, faultOf } from '../../node/network/peers/peer-fault.ts';
import { PeerHeights } from '../../node/network/peers/peer-heights.ts';
import { CutGossip, type CutGossipDependencies } from '../../node/network/relay/cut-gossip.ts';
import { decodeRelayQuestion, encodeWaiting, encodeWires } from '../../node/network/relay/relay-messages.ts';
import { WaitingPull, type WaitingPullDependencies } from '../../node/network/relay/waiting-pull.ts';
import { AskOrder } from '../../node/network/sync/ask-order.ts';
import { BlockFetch } from '../../node/network/sync/block-fetch.ts';
import { CutSync, type CutSyncDependencies } from '../../node/network/sync/cut-sync.ts';
import { Search } from '../../node/network/sync/search.ts';
import { decodeSyncQuestion, encodeBlocksAnswer, encodeCutsAnswer } from '../../node/network/sync/sync-messages.ts';
import { blocksRoot, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { noLimits } from '../network/relay-host.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis));

const cutOf = (height: number, timestampMillis: number) =>
  encodeCutHeader({
    networkId: NETWORKS.development.id,
    height,
    timestampMillis,
    previousId: new Uint8Array(48),
    blocksRoot: blocksRoot([]),
    stateRoot: new Uint8Array(48),
    validatorSetId: new Uint8Array(48),
    blockCount: 0,
    signers: 0n,
  });

const HEAD = cutOf(5, 1);

function syncAt(answers: Readonly<Record<string, (from: number) => Promise<Uint8Array>>>) {
  const faults: string[] = [];
  const ledger = {
    head: () => ({ height: 5, cutId: cutId(HEAD) }),
    committee: () => ({ members: [] }),
    intervalCuts: 1_000,
    chainId: new Uint8Array(48),
  };
  const network = {
    ask: async (peer: string, _: string, bytes: Uint8Array) => {
      const question = decodeSyncQuestion(bytes);
      return await (answers[peer] as (from: number) => Promise<Uint8Array>)('from' in question ? question.from : 0);
    },
    fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
  };
  const dependencies = {
    ledger,
    network,
    log: quietLog,
    steady: () => performance.now(),
    checkpoints: [],
    probeMillis: 20,
    isAtTip: () => true,
    updateRequired: () => undefined,
  };
  return { sync: new CutSync(dependencies as unknown as CutSyncDependencies), faults };
}

test('a peer that has nothing to show proves nothing, whatever it says about its height', async () => {
  const { sync, faults } = syncAt({
    liar: async () => encodeCutsAnswer({ head: 5, bodiesFrom: 0 }, [], []),
    other: async (from) => encodeCutsAnswer({ head: 5, bodiesFrom: 0 }, from === 5 ? [cutOf(5, 2)] : [], []),
    behind: async () => encodeCutsAnswer({ head: 3, bodiesFrom: 0 }, [], []),
  });
  for (const peer of ['liar', 'other', 'behind']) sync.heights.joined(peer, 5);
  sync.start();
  await until(() => faults.includes('liar false_height') && faults.includes('other false_proof'));
  expect(sync.heights.best(5, false)).toBe(-1);
  expect(faults.some((fault) => fault.startsWith('behind'))).toBe(false);
  await sync.close();
});

test('a peer that shows the newest cut of this node is as far as this node', async () => {
  const { sync, faults } = syncAt({
    honest: async (from) => encodeCutsAnswer({ head: 5, bodiesFrom: 0 }, from === 5 ? [HEAD] : [], []),
  });
  sync.heights.joined('honest', 5);
  sync.start();
  await until(() => sync.heights.proven === 5);
  expect(sync.heights.best(5, false)).toBe(5);
  expect(faults).toEqual([]);
  await sync.close();
});

test('an old cut of which a peer speaks does not make good for what it failed to deliver', () => {
  const heights = new PeerHeights();
  heights.joined('liar', 100);
  heights.proved('liar', 5);
  expect(heights.best(5, false)).toBe(100);
  heights.failed('liar', 6);
  heights.proved('liar', 4);
  expect(heights.best(5, false)).toBe(5);
});

test('where an answer takes its time another peer is asked too, and is asked first the next time', async () => {
  const order = new AskOrder();
  const asked: string[] = [];
  const search = () =>
    new Promise<string>((resolve) => {
      const since = order.steady();
      const of: Search = new Search({
        order,
        peers: () => ['late', 'quick'],
        missingSince: () => since,
        ask: async (peer) => {
          asked.push(peer);
          if (peer === 'late') await pause(60_000);
          of.close();
          resolve(peer);
          return 1;
        },
        failed: () => undefined,
      });
      of.start();
    });
  expect([await search(), asked]).toEqual(['quick', ['late', 'quick']]);
  await pause(1);
  expect([await search(), asked]).toEqual(['quick', ['late', 'quick', 'quick']]);
});

test('blocks that a peer does not send soon come from another', async () => {
  const header = new Uint8Array(312);
  const block = { header, body: new Uint8Array(3) };
  const asked: string[] = [];
  const fetch = new BlockFetch([blockId(header)], {
    peers: () => ['late', 'quick'],
    ask: async (peer) => {
      asked.push(peer);
      if (asked.length === 1) await pause(60_000);
      return encodeBlocksAnswer([block]);
    },
    blame: () => undefined,
    order: new AskOrder(),
    isHere: () => false,
  });
  const taken = await fetch.take(blockId(header));
  expect(asked).toHaveLength(2);
  expect(taken?.from).toBe(asked[1]);
});

test('what has its reason on this side is nobody’s fault', () => {
  expect(faultOf(new AskError('unanswered', 'late'))).toBe('unanswered');
  expect(faultOf(new AskError('not_asked', 'too many questions'))).toBeUndefined();
  expect(faultOf(new AskError('busy', 'busy'))).toBeUndefined();
  expect(faultOf(new Error('the disk is full'))).toBeUndefined();
});

test('announcements of cuts that there are not take no room from others', async () => {
  const listeners: ((cut: object) => void)[] = [];
  const faults: string[] = [];
  let height = 100;
  const real = cutOf(101, 7);
  const chain = {
    head: () => ({ height }),
    cut: (of: number) => (of === 101 && height >= 101 ? { headerBytes: real, blockIds: [] } : undefined),
  };
  const on = (_: string, run: (cut: object) => void) => {
    listeners.push(run);
    return () => undefined;
  };
  const gossip = new CutGossip({
    node: { on, chain },
    publish: () => undefined,
    fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
    isSynced: () => true,
    heard: () => undefined,
    proved: () => undefined,
  } as unknown as CutGossipDependencies);
  for (let i = 0; i < 300; i++) expect(await gossip.judge('liar', cutOf(190, i))).toBe('ignore');
  const false101 = Array.from({ length: 50 }, (_, i) => gossip.judge('liar', cutOf(101, 1_000 + i)));
  const honest = gossip.judge('honest', real);
  height = 101;
  for (const run of listeners) run({ header: { height: 101 }, cutId: cutId(real), headerBytes: real, registered: [] });
  expect(await honest).toBe('accept');
  expect((await Promise.all(false101)).includes('accept')).toBe(false);
  expect(faults).toContain('liar false_proof');
  gossip.close();
});

test('what waits is asked of several peers at once: one that names much and has nothing delays nobody', async () => {
  const served: string[] = [];
  const faults: string[] = [];
  let asked = 0;
  const network = {
    ask: async (peer: string, _: string, bytes: Uint8Array) => {
      const question = decodeRelayQuestion(bytes);
      served.push(peer);
      if (peer === 'honest') return encodeWaiting({ transactions: [], blocks: [] });
      asked++;
      await pause(50);
      const some = (count: number) => Array.from({ length: count }, (_, i) => new Uint8Array(48).fill(i));
      if (question.type === 'waiting') return encodeWaiting({ transactions: some(200), blocks: some(128) });
      return question.type === 'block' ? encodeBlocksAnswer([undefined]) : encodeWires(some(200).map(() => undefined));
    },
    fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
  };
  const chain = { head: () => ({ height: 1 }), transactionStatus: () => undefined, block: () => undefined };
  const node = { chain, mempool: { get: () => undefined } };
  const pull = new WaitingPull({
    node,
    network,
    relay: noLimits,
    isSynced: () => true,
    steady: () => performance.now(),
  } as unknown as WaitingPullDependencies);
  pull.joined('liar', { direction: 'inbound' });
  pull.joined('honest', { direction: 'outbound' });
  await until(() => served.includes('honest') && faults.length > 0);
  expect(served.indexOf('honest')).toBeLessThan(4);
  expect(faults).toEqual(['liar undelivered']);
  expect(asked).toBeLessThan(15);
  pull.close();
});

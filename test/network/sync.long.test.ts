/** Nodes that follow others over real sockets. */
import type { Connection } from '@libp2p/interface';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { CutRecord } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { decodeChunk } from '../../node/network/snapshots/snapshot-messages.ts';
import { answerSync } from '../../node/network/sync/cut-server.ts';
import { decodeCutsAnswer } from '../../node/network/sync/sync-messages.ts';
import { ask } from '../../node/network/thread/asking.ts';
import { PROTOCOLS } from '../../node/network/thread/host-types.ts';
import { concat } from '../../protocol/bytes.ts';
import { cutId } from '../../protocol/ledger/cut.ts';
import { RULE_SET, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { developmentKeys, payment } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { headOf, lying, NetBed, type NetNode, treasuryOutput, until } from './peers.ts';
import { RawPeer } from './raw-peer.ts';
import { RelayHost } from './relay-host.ts';

const LIMITS = { bytes: 1_024, millis: 20_000 };

const INTERVAL = 36;
const BOB = developmentKey('bob').address;
let bed: NetBed;
beforeEach(() => {
  bed = new NetBed({ intervalCuts: INTERVAL });
});
afterEach(() => bed.close());

const at = ({ view }: NetNode): string => view.addresses[0] as string;
const height = ({ node }: NetNode): number => node.chain.head().height;
const isSynced = ({ node }: NetNode): boolean => node.chain.sync().synced;

const treasury = ({ node }: NetNode, index: number) => treasuryOutput(node.chain, index);

test('a new node syncs the chain with its blocks, goes on where it was stopped, and follows from then on', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 100, 1);
  let fresh = await bed.start('fresh', { bootstrap: [at(source)], follows: true });
  expect(fresh.node.chain.sync()).toMatchObject({ synced: false, peers: { bestPeerHeight: null } });
  await until(() => height(fresh) > 10);
  await fresh.close();
  fresh = await bed.start('fresh', { bootstrap: [at(source)], follows: true });
  expect(height(fresh)).toBeGreaterThan(10);
  await until(() => height(fresh) === 100 && isSynced(fresh));
  expect(headOf(fresh)).toBe(headOf(source));
  expect(fresh.node.chain.sync()).toMatchObject({ height: 100, peers: { bestPeerHeight: 100, behindBy: 0, peers: 1 } });
  for (let i = 1; i <= 3; i++) {
    await bed.seal(source, 1, 2);
    await until(() => height(fresh) === 100 + i);
  }
  expect(headOf(fresh)).toBe(headOf(source));
});

test('an old epoch of which only the last certificate is kept is proven back from it', async () => {
  const source = await bed.start('source', {}, (node) => ({
    node: lying(node, {
      certificate: (of) => (of < INTERVAL && of !== INTERVAL - 1 ? undefined : node.chain.certificate(of)),
    }),
  }));
  await bed.seal(source, INTERVAL + 5);
  const fresh = await bed.start('fresh', { bootstrap: [at(source)], follows: true });
  await until(() => height(fresh) === INTERVAL + 5);
  expect(headOf(fresh)).toBe(headOf(source));
  // It has no more to show than it got.
  expect(fresh.node.chain.certificate(5)).toBeUndefined();
  expect(fresh.node.chain.certificate(INTERVAL - 1)).toBeDefined();
  await fresh.close();
  expect((await bed.openChain('fresh')).chain.head().height).toBe(INTERVAL + 5);
});

test('peers that serve false certificates, cuts or bodies are barred, and the others are asked', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 20, 1);
  const [, blockOf2] = [1, 2].map((of) => source.node.chain.cut(of)?.blockIds[0] as Uint8Array);
  const liars = await Promise.all(
    [
      // A certificate of another cut.
      lying(source.node, { certificate: (of) => source.node.chain.certificate(of === 20 ? 19 : of) }),
      // A cut that does not follow from the one before.
      lying(source.node, { cut: (of) => source.node.chain.cut(of === 10 ? 11 : of) }),
      // The body of another block.
      lying(source.node, { blockBody: () => source.node.chain.blockBody(blockOf2 as Uint8Array) }),
    ].map((node, i) => bed.start(`liar-${i}`, {}, () => ({ node }))),
  );
  const fresh = await bed.start('fresh', { bootstrap: [...liars.map(at), at(source)], follows: true });
  await until(() => height(fresh) === 20 && isSynced(fresh));
  expect(headOf(fresh)).toBe(headOf(source));
});

test('a peer that has pruned what a node lacks is not asked for it and not blamed; a full one brings it', async () => {
  const asked: (number | undefined)[] = [];
  const full = await bed.start('full', {});
  await bed.seal(full, 4, 1);
  await bed.seal(full, 96);
  const pruned = await bed.start('pruned', { bootstrap: [at(full)], follows: true }, () => ({
    served: (_, from) => void asked.push(from),
  }));
  await until(() => height(pruned) === 100);
  await pruned.node.pruneBodies(3);
  const cutsFrom = (from: number) => decodeCutsAnswer(answerSync(pruned.node.chain, { type: 'cuts', from, count: 96 }));
  expect(cutsFrom(3)).toMatchObject({ head: 100, bodiesFrom: 4, cuts: { length: 0 } });
  expect(cutsFrom(4).cuts[0]?.header.height).toBe(4);
  const [all, brief] = [false, true].map((isBrief) =>
    decodeCutsAnswer(answerSync(full.node.chain, { type: 'cuts', from: 1, count: 90, isBrief })),
  );
  expect(all?.certificates.size).toBeGreaterThan(1);
  expect(brief).toEqual({ ...all, certificates: new Map([...(all?.certificates ?? [])].slice(-1)) });
  const id = full.node.chain.cut(1)?.blockIds[0] as Uint8Array;
  const block = concat(full.node.chain.block(id)?.header as Uint8Array, full.node.chain.blockBody(id) as Uint8Array);
  const partFrom = (from: number) => decodeChunk(answerSync(full.node.chain, { type: 'blockPart', id, from }));
  expect([0, 100, block.length].map(partFrom)).toEqual(
    [0, 100, block.length].map((from) => ({ length: block.length, bytes: block.subarray(from) })),
  );
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (message: string) => void warnings.push(message) };
  // It hears of nobody else, and has no place for another.
  const alone = { listen: [], maxPeers: 2 };
  const fresh = await bed.start('fresh', { bootstrap: [at(pruned)], follows: true, ...alone }, () => ({ log }));
  await until(() => warnings.some((line) => line.includes('have pruned the cuts that this node lacks')));
  expect(height(fresh)).toBe(0);
  // It was asked and held nothing for that; nor does it pay for what it does not have.
  expect(asked).toContain(undefined);
  expect(asked).not.toContain(1);
  await until(() => fresh.view.figures().peers.length === 1, { seen: () => fresh.view.figures().peers.length });
  expect(fresh.view.figures().peers[0]?.lostScore).toBe(0);
  await fresh.close();
  const again = await bed.start('fresh', { bootstrap: [at(pruned), at(full)], follows: true });
  await until(() => height(again) === 100);
  expect(headOf(again)).toBe(headOf(full));
  await until(() => again.view.figures().peers.length === 2);
  expect(again.view.figures().peers.map(({ lostScore }) => lostScore)).toEqual([0, 0]);
});

/** What is announced before the streams and meshes of gossip are made is lost: so another one, until one is heard of. */
async function heard(announce: () => Promise<Uint8Array>, isThere: (id: Uint8Array) => boolean): Promise<Uint8Array> {
  for (;;) {
    const id = await announce();
    for (let looks = 0; looks < 60 && !isThere(id); looks++) await new Promise((resolve) => setTimeout(resolve, 50));
    if (isThere(id)) return id;
  }
}

test('in a line of three a transaction and a block reach the far end, and the cut that takes them all', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 3, 1);
  const middle = await bed.start('middle', { bootstrap: [at(source)], follows: true });
  await until(() => isSynced(middle));
  // Nobody listens at the far end, and it is told of nobody else: what it sends goes through the middle.
  const far = await bed.start('far', { bootstrap: [at(middle)], follows: true, listen: [], maxPeers: 2 });
  await until(() => isSynced(far) && height(far) === 3);
  const sent: Uint8Array[] = [];
  const pay = async (): Promise<Uint8Array> => {
    const wire = payment(far.node.chain, [treasury(far, sent.length)], [{ address: BOB, amount: 5n }]);
    expect(await far.node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
    sent.push(transactionIdOfWire(wire));
    return sent.at(-1) as Uint8Array;
  };
  const isEverywhere = (id: Uint8Array) => [source, middle].every(({ node }) => node.mempool.get(id) !== undefined);
  const arrived = await heard(pay, isEverywhere);
  expect(source.node.mempool.get(arrived)?.origin).toBe('relayed');
  const more = [await pay(), await pay()];
  await until(() => more.every(isEverywhere));
  const mined: Uint8Array[] = [];
  const mine = async (): Promise<Uint8Array> => {
    mined.push(await bed.mine(far.node));
    return mined.at(-1) as Uint8Array;
  };
  // It is known before it waits for a cut.
  const isWaiting = (id: Uint8Array) =>
    [...source.node.chain.waitingBlocks()].some(({ id: other }) => Buffer.compare(id, other) === 0);
  const block = await heard(mine, isWaiting);
  expect(source.node.chain.block(block)).toMatchObject({ origin: 'relayed' });
  const carried = mined.map((id) => source.node.chain.block(id)?.transactionCount ?? 0);
  expect(carried.reduce((sum, count) => sum + count, 0)).toBe(sent.length);
  await bed.seal(source, 1);
  await until(() => height(far) === 4);
  expect(headOf(far)).toBe(headOf(source));
  expect(far.node.mempool.count).toBe(0);
});

test('what waits at two nodes before they meet reaches the other', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 2, 1);
  const wire = payment(source.node.chain, [treasury(source, 0)], [{ address: BOB, amount: 5n }]);
  await source.node.submitTransaction(wire);
  const id = await bed.mine(source.node);
  const late = await bed.start('late', { bootstrap: [at(source)], follows: true });
  await until(() => late.node.mempool.count === 1 && [...late.node.chain.waitingBlocks()].length === 1);
  expect(late.node.chain.block(id)).toMatchObject({ origin: 'relayed', transactionCount: 1 });
});

test('a node of another chain is left alone', async () => {
  const source = await bed.start('source', {});
  const other = new NetBed({ intervalCuts: INTERVAL, initialWork: 2n });
  try {
    const stranger = await other.start('stranger', { bootstrap: [at(source)], follows: true });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(stranger.view.figures().peers).toEqual([]);
    expect(source.view.figures()).toMatchObject({ peers: [], barred: 0 });
  } finally {
    await other.close();
  }
});

test('a node whose newest cut is old is not synced, whatever its peers prove', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 3);
  const fresh = await bed.start('fresh', { bootstrap: [at(source)], follows: true });
  await until(() => isSynced(fresh));
  bed.now += 300_000;
  expect([fresh, source].map(isSynced)).toEqual([false, false]);
  await bed.seal(source, 1);
  await until(() => isSynced(fresh) && isSynced(source));
});

test('whatever its clock does while it syncs, a node has the same chain, and is synced when the clock is right', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 150, 1);
  const right = bed.now;
  bed.now = right - 86_400_000;
  const fresh = await bed.start('fresh', { bootstrap: [at(source)], follows: true });
  await until(() => height(fresh) > 20);
  bed.now = right + 10 * 86_400_000;
  await until(() => height(fresh) === 150);
  expect(isSynced(fresh)).toBe(false);
  bed.now = right;
  await until(() => isSynced(fresh));
  expect(headOf(fresh)).toBe(headOf(source));
});

test('a peer of other rules that this node chose announces an update before it is dropped; none is required while cuts come', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 3);
  const newer = new RelayHost();
  try {
    await newer.start({ chainId: source.node.chain.chainId, ruleSet: RULE_SET + 1, release: '0.2.0' });
    const node = await bed.start('node', { bootstrap: [at(source), newer.address], follows: true });
    const says = () => {
      const { synced, peers } = node.node.chain.sync();
      return { synced, announced: peers?.updateAnnounced, required: peers?.updateRequired, peers: peers?.peers };
    };
    await until(() => says().announced === true && says().synced);
    expect(says()).toEqual({ synced: true, announced: true, required: false, peers: 1 });
    bed.now += 300_000;
    expect(says()).toMatchObject({ synced: false, announced: true, required: true });
    await bed.seal(source, 1);
    await until(() => says().synced);
    expect(says()).toMatchObject({ announced: true, required: false });
  } finally {
    await newer.close();
  }
});

test('a final cut of an unknown version stops the node and says that an update is required; a false one is malformed', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 6);
  const { chain, ledger } = source.node;
  const real = chain.cut(6) as CutRecord;
  const headerBytes = Uint8Array.from(real.headerBytes).fill(2, 0, 1);
  const unknown = { ...real, headerBytes, cutId: cutId(headerBytes) };
  const members = ledger.committee(6)?.members ?? [];
  const { cutId: id } = unknown;
  const certify = certifyWith(developmentKeys(2));
  const certificate = await certify({ chainId: chain.chainId, height: 6, cutId: id, committee: members });
  const cut = (of: number) => (of === 6 ? unknown : chain.cut(of));
  // Without a certificate of that cut nobody is believed.
  const liar = await bed.start('liar', {}, () => ({ node: lying(source.node, { cut }) }));
  const misled = await bed.start('misled', { bootstrap: [at(liar)], follows: true });
  await until(
    () => misled.view.figures().peers.some(({ lostScore }) => lostScore > 0) || misled.view.figures().barred > 0,
  );
  expect(misled.node.chain.sync().peers?.updateRequired).toBe(false);
  const newer = await bed.start('newer', {}, () => ({
    node: lying(source.node, { cut, certificate: (of) => (of === 6 ? certificate : chain.certificate(of)) }),
  }));
  const old = await bed.start('old', { bootstrap: [at(newer)], follows: true });
  await until(() => old.node.chain.sync().peers?.updateRequired === true);
  expect(old.node.chain.sync()).toMatchObject({ synced: false, height: 0 });
  expect(old.view.figures().barred).toBe(0);
});

test('a question that only a later release knows is not answered, and costs no points; one that breaks off does', async () => {
  const { node, view } = await bed.start('node', {});
  const peer = await RawPeer.open(node.chain.chainId);
  try {
    await peer.join(view.addresses[0] as string);
    const [connection] = peer.host.getConnections();
    for (const { name } of Object.values(PROTOCOLS))
      await expect(ask(connection as Connection, name, Uint8Array.of(99), LIMITS)).rejects.toThrow();
    await expect(ask(connection as Connection, PROTOCOLS.sync.name, Uint8Array.of(1), LIMITS)).rejects.toThrow();
    const scores = () => view.figures().peers.map(({ lostScore }) => lostScore);
    await until(() => view.figures().barred > 0 || scores().some((lost) => lost > 0));
    // What is malformed costs 50; none of the other questions did.
    expect(scores()).toEqual([expect.toSatisfy((lost: number) => lost <= 50)]);
  } finally {
    await peer.close();
  }
});

/**
 * Announcements of cuts, which anybody can make up: what one costs to judge, who is blamed for it, and what it does to
 * the node's own announcements.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CutGossip, type CutGossipDependencies } from '../../node/network/relay/cut-gossip.ts';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { useSha384 } from '../../protocol/crypto/identifier.ts';
import { blocksRoot, cutId, encodeCutHeader, MAX_CUT_BLOCKS } from '../../protocol/ledger/cut.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { nativeSha384, nativeSha384OfTwo, useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';

let hashes = 0;
const counting =
  <A extends unknown[], R>(hash: (...bytes: A) => R) =>
  (...bytes: A): R => {
    hashes++;
    return hash(...bytes);
  };
beforeAll(() => useSha384(counting(nativeSha384), counting(nativeSha384OfTwo)));
afterAll(useNativeSha384);

const IDS = Array.from({ length: MAX_CUT_BLOCKS }, (_, i) => new Uint8Array(48).fill(i));

function cutOf(height: number, timestampMillis = height) {
  const headerBytes = encodeCutHeader({
    networkId: NETWORKS.development.id,
    height,
    timestampMillis,
    previousId: new Uint8Array(48),
    blocksRoot: blocksRoot(IDS),
    stateRoot: new Uint8Array(48),
    validatorSetId: new Uint8Array(48),
    blockCount: IDS.length,
    signers: 0n,
  });
  const header = { height, timestampMillis };
  return {
    header,
    headerBytes,
    cutId: cutId(headerBytes),
    blockIds: IDS,
    content: concat(headerBytes, ...IDS) as Bytes,
  };
}

function gossipAt(head: number) {
  const faults: string[] = [];
  const published: Bytes[] = [];
  let [height, reads] = [head, 0];
  let settled: (event: unknown) => void = () => undefined;
  const chain = {
    head: () => ({ height }),
    cut: (of: number) => {
      reads++;
      return cutOf(of);
    },
  };
  const gossip = new CutGossip({
    node: {
      chain,
      on: (_: string, run: typeof settled) => {
        settled = run;
        return () => undefined;
      },
    },
    publish: (_: string, data: Bytes) => published.push(data),
    fault: (peer: string, fault: string) => faults.push(`${peer} ${fault}`),
    isSynced: () => true,
    heard: () => undefined,
    proved: () => undefined,
  } as unknown as CutGossipDependencies);
  const next = () => {
    const cut = cutOf(++height);
    settled({ ...cut, registered: cut.blockIds.map((id) => ({ id })) });
    return cut;
  };
  return { gossip, faults, published, next, reads: () => reads };
}

test('whatever height an announcement names, its blocks are not hashed, and cuts that are far from the head are not read', async () => {
  const { gossip, faults, reads } = gossipAt(10_000);
  const random = randomOf(seed);
  const made = Array.from({ length: count({ full: 300, deep: 3_000 }) }, () => {
    const height = [random(9_990), 10_004 + random(1_000_000), 10_001 + random(3)][random(3)] as number;
    return { height, content: cutOf(height, random(1_000_000)).content };
  });
  const waiting = made.filter(({ height }) => height > 10_000 && height <= 10_003).map(({ content }) => content);
  hashes = 0;
  for (const { height, content } of made)
    if (height <= 10_000 || height > 10_003) expect(await gossip.judge('liar', content)).toBe('ignore');
  for (const content of waiting) void gossip.judge('liar', content);
  expect(hashes).toBeLessThanOrEqual(made.length);
  expect(reads()).toBe(0);
  expect(faults).toEqual([]);
  gossip.close();
});

test('an announcement with other blocks than its header costs its sender points, and keeps no cut from being announced', async () => {
  const { gossip, faults, published, next } = gossipAt(10);
  const { content } = cutOf(11);
  const spoiled = gossip.judge('liar', content.with(content.length - 1, 1));
  const cut = next();
  expect(await spoiled).toBe('reject');
  expect(faults).toEqual(['liar malformed']);
  expect(published).toEqual([cut.content]);
  expect(await gossip.judge('liar', content.with(content.length - 1, 2))).toBe('reject');
  expect(await gossip.judge('other', content.subarray(0, content.length - 48))).toBe('reject');
  expect(await gossip.judge('other', cutOf(11, 5).content)).toBe('reject');
  expect(faults.slice(1)).toEqual(['liar malformed', 'other malformed', 'other false_proof']);
  gossip.close();
});

test('what a node announces of a cut are the bytes that others announced: gossip hands them on once', async () => {
  const { gossip, faults, published, next } = gossipAt(10);
  const first = gossip.judge('honest', cutOf(11).content);
  const { content } = next();
  expect(await first).toBe('accept');
  expect(await gossip.judge('other', cutOf(11).content)).toBe('accept');
  expect([faults, published]).toEqual([[], [content]]);
  gossip.close();
});

test('a peer that announces cuts of a newer version is not blamed', async () => {
  const { gossip, faults } = gossipAt(10);
  for (const height of [11, 12, 13])
    expect(await gossip.judge('newer', cutOf(height).content.with(0, 2))).toBe('ignore');
  expect(faults).toEqual([]);
  gossip.close();
});

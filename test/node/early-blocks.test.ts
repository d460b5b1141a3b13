/** Blocks that came before what they build on: kept, handed out when it is here, and bounded for every sender. */
import { beforeEach, expect, test } from 'vitest';
import { EARLY_LIMITS, type EarlyBlock, EarlyBlocks } from '../../node/mining/early-blocks.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { encodeBody, parentsRoot } from '../../protocol/ledger/body.ts';
import { blockId, encodeHeader } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

const HEAD = 1_000;
let head = HEAD;
let known: ReadonlySet<string> = new Set();
let blocks: EarlyBlocks<string>;
let count = 0;
beforeEach(() => {
  head = HEAD;
  known = new Set();
  blocks = new EarlyBlocks({
    isKnown: (id) => known.has(Buffer.from(id).toString('hex')),
    headHeight: () => head,
    // 'stranger:place:connection', or the name of a neighbour that is known.
    senderOf: (from) => ({ name: from.split(':').slice(0, 2).join(':'), isStranger: from.startsWith('stranger:') }),
  });
});

const idOf = (n: number): Bytes => new Uint8Array(48).fill(n);

/** What is the same in thousands of blocks is made once. */
const bodies = new Map<string, { bytes: Bytes; root: Bytes }>();

function bodyOf(parents: readonly Bytes[], transactionBytes: number): { bytes: Bytes; root: Bytes } {
  const name = `${parents.map((parent) => Buffer.from(parent).toString('hex'))} ${transactionBytes}`;
  const made = bodies.get(name);
  if (made !== undefined) return made;
  const body = {
    parents,
    payout: new Uint8Array(49),
    extranonce: new Uint8Array(4),
    // A transaction has at most 65,000 bytes.
    transactions: Array.from({ length: transactionBytes / 50_000 }, () => new Uint8Array(50_000)),
  };
  const found = { bytes: encodeBody(body), root: parentsRoot(body) };
  bodies.set(name, found);
  return found;
}

function blockOf(
  from: string,
  parents: readonly Bytes[],
  anchorHeight = HEAD,
  transactionBytes = 0,
): EarlyBlock<string> {
  const body = bodyOf(parents, transactionBytes);
  const zero = new Uint8Array(48);
  const header = encodeHeader({
    networkId: 3,
    anchorHeight,
    anchorId: zero,
    stateRoot: zero,
    parentsRoot: body.root,
    transactionsRoot: zero,
    rewardRoot: zero,
    target: 1n << 255n,
    timestampMillis: ++count,
    nonce: new Uint8Array(8),
  });
  return { from, header, body: body.bytes };
}

test('a block waits for all its parents, and a chain of blocks comes out one after the other', () => {
  const first = blockOf('a', [idOf(1), idOf(2)]);
  const second = blockOf('a', [blockId(first.header)]);
  expect(blocks.keep(first)).toEqual([idOf(1), idOf(2)]);
  expect(blocks.keep(second)).toEqual([blockId(first.header)]);
  // The same again is not kept twice.
  expect(blocks.keep(first)).toBeUndefined();
  expect(blocks.arrived(idOf(1))).toEqual([]);
  expect(blocks.arrived(idOf(2))).toMatchObject([{ from: 'a', header: first.header, body: first.body }]);
  expect(blocks.arrived(blockId(first.header))).toMatchObject([{ header: second.header }]);
  expect(blocks.size).toBe(0);
});

test('a block waits for its anchor, and for parents that a cut brought', () => {
  expect(blocks.keep(blockOf('a', [], HEAD + 1))).toEqual([]);
  expect(blocks.keep(blockOf('a', [idOf(1)]))).toEqual([idOf(1)]);
  expect(blocks.keep(blockOf('a', [], HEAD + EARLY_LIMITS.cutsAhead + 1))).toBeUndefined();
  head++;
  expect(blocks.cut([idOf(1)]).length).toBe(2);
  // One whose window is over is gone.
  blocks.keep(blockOf('a', [idOf(1)]));
  head = HEAD + REGISTRATION_WINDOW;
  expect(blocks.cut([])).toEqual([]);
  expect(blocks.size).toBe(0);
});

test('a parent that is on record and cannot be stood on is not tried without end', () => {
  known = new Set([Buffer.from(idOf(1)).toString('hex')]);
  const block = blockOf('a', [idOf(1)]);
  let tries = 0;
  while (blocks.keep(block) !== undefined) {
    tries++;
    expect(blocks.arrived(idOf(9)).length).toBe(1);
  }
  expect(tries).toBe(EARLY_LIMITS.tries);
});

test('a neighbour that fills the room pushes out its own blocks, not those of others', () => {
  const honest = blockOf('honest', [idOf(1)]);
  blocks.keep(honest);
  for (let i = 0; i < 2 * EARLY_LIMITS.blocks; i++) blocks.keep(blockOf('flood', [idOf(2)]));
  expect(blocks.size).toBe(EARLY_LIMITS.blocks);
  for (let i = 0; i < 200; i++) blocks.keep(blockOf('large', [idOf(3)], HEAD, 1_000_000));
  expect(blocks.arrived(idOf(1))).toMatchObject([{ from: 'honest' }]);
  const large = blocks.arrived(idOf(3)).reduce((sum, { body }) => sum + body.length, 0);
  expect(large).toBeGreaterThan(EARLY_LIMITS.bytes / 2);
  expect(large).toBeLessThanOrEqual(EARLY_LIMITS.bytes);
  // Bytes that are no body are not kept.
  expect(blocks.keep({ ...blockOf('a', []), body: new Uint8Array(3) })).toBeUndefined();
});

test('the limit that was reached decides who gives way: small blocks without number, then large ones', () => {
  for (const one of ['honest', 'stranger:honest:1']) {
    const at = one === 'honest' ? 1 : 4;
    // Few blocks of many bytes: less than its share of places, more of bytes.
    for (let i = 0; i < 4; i++) blocks.keep(blockOf(one, [idOf(at)], HEAD, 1_000_000));
    for (let i = 0; i < 2 * EARLY_LIMITS.blocks; i++) blocks.keep(blockOf('stranger:flood:1', [idOf(2)]));
    expect(blocks.arrived(idOf(at)).length).toBe(4);
    // Many small ones: more than its share of places, few bytes.
    for (let i = 0; i < 100; i++) blocks.keep(blockOf(one, [idOf(at)]));
    for (let i = 0; i < 100; i++) blocks.keep(blockOf('stranger:large:1', [idOf(3)], HEAD, 1_000_000));
    expect(blocks.arrived(idOf(at)).length).toBe(100);
    blocks.arrived(idOf(2));
    blocks.arrived(idOf(3));
  }
});

test('strangers give way before neighbours that are known, and many connections from one place are one sender', () => {
  for (let i = 0; i < 300; i++) blocks.keep(blockOf('member', [idOf(1)]));
  for (let i = 0; i < 10; i++) blocks.keep(blockOf('stranger:alone:1', [idOf(2)]));
  // Each of the connections has less than anybody else.
  for (let i = 0; i < 2_000; i++) blocks.keep(blockOf(`stranger:crowd:${i}`, [idOf(3)]));
  expect(blocks.size).toBe(EARLY_LIMITS.blocks);
  expect(blocks.arrived(idOf(1)).length).toBe(300);
  expect(blocks.arrived(idOf(2)).length).toBe(10);
  // A member that fills the room pushes out strangers first, then its own.
  blocks.keep(blockOf('other', [idOf(4)]));
  for (let i = 0; i < 2_000; i++) blocks.keep(blockOf('member', [idOf(1)]));
  expect(blocks.arrived(idOf(3)).length).toBe(0);
  expect(blocks.arrived(idOf(4)).length).toBe(1);
  expect(blocks.arrived(idOf(1)).length).toBe(EARLY_LIMITS.blocks - 1);
});

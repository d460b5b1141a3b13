/** Blocks that came before what they stand on: kept, handed out when it is here, and bounded whoever sends them. */
import { beforeEach, expect, test } from 'vitest';
import { EARLY_LIMITS, type EarlyBlock, EarlyBlocks } from '../../node/mining/early-blocks.ts';
import { encodeBody, parentsRoot } from '../../protocol/body.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { blockId, encodeHeader } from '../../protocol/header.ts';
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
  });
});

const idOf = (n: number): Bytes => new Uint8Array(48).fill(n);

function blockOf(
  from: string,
  parents: readonly Bytes[],
  anchorHeight = HEAD,
  transactionBytes = 0,
): EarlyBlock<string> {
  const body = {
    parents,
    payout: new Uint8Array(49),
    extranonce: new Uint8Array(4),
    transactions: transactionBytes === 0 ? [] : [new Uint8Array(transactionBytes)],
  };
  const zero = new Uint8Array(48);
  const header = encodeHeader({
    networkId: 3,
    anchorHeight,
    anchorId: zero,
    stateRoot: zero,
    parentsRoot: parentsRoot(body),
    transactionsRoot: zero,
    rewardRoot: zero,
    target: 1n << 255n,
    timestampMillis: ++count,
    nonce: new Uint8Array(8),
  });
  return { from, header, body: encodeBody(body) };
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
  expect(blocks.arrived(idOf(3)).reduce((sum, { body }) => sum + body.length, 0)).toBeLessThanOrEqual(
    EARLY_LIMITS.bytes,
  );
  // Bytes that are no body are not kept.
  expect(blocks.keep({ ...blockOf('a', []), body: new Uint8Array(3) })).toBeUndefined();
});

/** Templates with `anchors: best` on a real node (ledger rule 42): what they stand on, and that blocks on old anchors are registered and paid. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { LEAST_CUTS_LEFT, MOST_WAITING } from '../../node/mining/anchor-choice.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { Bed, searchNonce } from './bed.ts';

const alice = developmentKey('alice').address;

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open();
});
afterEach(async () => {
  await bed.close();
});

const best = () => bed.node.template({ payout: alice, maxTransactions: 10, anchors: 'best' });

/** A block on an anchor that is not the newest. */
async function mineOld(): Promise<{ readonly id: Uint8Array; readonly anchorHeight: number }> {
  for (;;) {
    const template = best();
    if (template.anchor.height === bed.node.chain.head().height) continue;
    const outcome = await bed.node.submitBlock(searchNonce(template.header, template.target), template.body);
    if (outcome.status !== 'accepted') throw new Error(JSON.stringify(outcome));
    return { id: outcome.id, anchorHeight: template.anchor.height };
  }
}

test('an anchor is one of the last 80 cuts, and the header is that of a block on it', async () => {
  await bed.seal(120);
  await bed.mine(alice);
  const head = bed.node.chain.head();
  const heights = new Set<number>();
  for (let i = 0; i < 600; i++) {
    const { anchor, header, parents } = best();
    const { anchorHeight, anchorId, stateRoot, target, timestampMillis } = decodeHeader(header);
    const cut = bed.node.chain.cut(anchorHeight);
    expect([toHex(anchorId), toHex(stateRoot), target]).toEqual([
      toHex(cut?.cutId as Uint8Array),
      toHex(cut?.header.stateRoot as Uint8Array),
      cut?.target,
    ]);
    expect(timestampMillis).toBeGreaterThan(cut?.header.timestampMillis as number);
    expect(parents.length).toBe(anchor.height === head.height ? 1 : 0);
    heights.add(anchorHeight);
  }
  const oldest = head.height - REGISTRATION_WINDOW + LEAST_CUTS_LEFT;
  expect(Math.min(...heights)).toBeGreaterThanOrEqual(oldest);
  expect(Math.min(...heights)).toBeLessThan(oldest + 10);
  expect(heights.size).toBeGreaterThan(40);
});

test('blocks on old anchors are registered by the next cut and paid with their anchors', async () => {
  await bed.seal(60);
  const blocks = [await mineOld(), await mineOld(), await mineOld()];
  const { registered } = await bed.seal();
  expect(registered.map(({ id }) => toHex(id)).sort()).toEqual(blocks.map(({ id }) => toHex(id)).sort());
  for (const { id, anchorHeight } of blocks.toSorted((a, b) => a.anchorHeight - b.anchorHeight)) {
    while (bed.node.chain.head().height < anchorHeight + REGISTRATION_WINDOW) await bed.seal();
    const record = bed.node.chain.block(id);
    expect(record?.reward).toMatchObject({ state: 'paid' });
  }
});

test('a block that was seen makes its anchor less likely at once, before a cut registers it', async () => {
  await bed.seal(3);
  const drawn = (height: number) =>
    Array.from({ length: 400 }, () => best().anchor.height).filter((each) => each === height).length;
  const before = drawn(3);
  for (let i = 0; i < 6; i++) await bed.mine(alice);
  expect(drawn(3)).toBeLessThan(before / 2);
});

test('the newest cut while more than 32 blocks wait, and without being asked for another', async () => {
  await bed.seal(50);
  for (let i = 0; i < MOST_WAITING + 1; i++) await bed.mine(alice);
  for (let i = 0; i < 50; i++) expect(best().anchor.height).toBe(50);
  await bed.seal();
  for (let i = 0; i < 50; i++) expect(bed.node.template({ payout: alice, maxTransactions: 10 }).anchor.height).toBe(51);
});

test('no anchor of an earlier proof-of-work epoch', async () => {
  const short = await Bed.open({ genesis: { powEpochLength: 40 } });
  try {
    await short.seal(45);
    for (let i = 0; i < 200; i++) {
      const { anchor, pow } = short.node.template({ payout: alice, maxTransactions: 10, anchors: 'best' });
      expect(anchor.height).toBeGreaterThanOrEqual(40);
      expect(pow.epoch).toBe(1);
    }
  } finally {
    await short.close();
  }
});

/** The order of a found block's way: the books, then the nodes; and what a sink that fails or hangs does to it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FoundBlocks } from '../../bridge/shares/found-blocks.ts';
import type { FoundBlock } from '../../bridge/shares/sink.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { quietLog } from '../quiet-log.ts';

const BODY = () => Uint8Array.of(7);
const BLOCK: FoundBlock = {
  service: 'pplns',
  account: new Uint8Array(49),
  worker: 'rig',
  work: 4n,
  anchorHeight: 1,
  hashWork: 1,
  cutHeight: 1,
  extranonce: new Uint8Array(20),
  headerDigest: new Uint8Array(16),
  nonce: new Uint8Array(8),
  atMillis: 0,
  blockId: new Uint8Array(48).fill(1),
  payout: new Uint8Array(49),
  target: 1n,
  header: new Uint8Array(312),
  carried: { fees: 0n, mass: 0 },
};

/** Long waits are a hundredth as long, but for the limit of waits for the books (20 s) where it must not come about. */
function bed(book: () => Promise<void>, knowsFinder?: boolean, limits: number[] = [], isLimitReal = false) {
  const seen: string[] = [];
  const blocks = new FoundBlocks({
    upstream: {
      async submit() {
        seen.push('sent');
        return [{ node: 'a', answer: { state: 'accepted' } }];
      },
    },
    sink: {
      async block() {
        await book();
        seen.push('booked');
      },
      ...(knowsFinder === undefined ? {} : { knowsFinder: () => knowsFinder }),
      async blockFate(_id, fate) {
        seen.push(fate.state);
      },
    },
    log: quietLog,
    // Shorter where it is long, and noted.
    sleep: (millis, signal) => {
      limits.push(millis);
      return sleep(millis > 400 && !(isLimitReal && millis === 20_000) ? millis / 100 : millis, undefined, { signal });
    },
  });
  return { blocks, seen };
}

test('a node hears of a block when it is booked, not before', async () => {
  const disk = Promise.withResolvers<void>();
  const { blocks, seen } = bed(() => disk.promise);
  blocks.add(BLOCK, BODY);
  await sleep(0);
  expect(seen).toEqual([]);
  disk.resolve();
  await expect.poll(() => seen).toEqual(['booked', 'sent', 'accepted']);
});

test.each([
  ['fails', () => Promise.reject(new Error('no space left'))],
  ['hangs', () => new Promise<void>(() => undefined)],
])('a sink that %s does not keep a block from the nodes', async (_, book) => {
  const { blocks, seen } = bed(book);
  blocks.add(BLOCK, BODY);
  await expect.poll(() => seen).toEqual(['sent', 'accepted']);
});

test('where the finder is not on record, a node hears of the block when it is', async () => {
  let tries = 0;
  const { blocks, seen } = bed(
    async () => {
      await sleep(20);
      if (++tries < 4) throw new Error('no space left');
    },
    false,
    [],
    true,
  );
  blocks.add(BLOCK, BODY);
  await expect.poll(() => seen).toEqual(['booked', 'sent', 'accepted']);
  expect(tries).toBe(4);
});

test.each([
  ['fails for ever', () => Promise.reject(new Error('no space left'))],
  ['hangs', () => new Promise<void>(() => undefined)],
])('a block whose finder is not on record is sent after a longer while over a sink that %s', async (_, book) => {
  const limits: number[] = [];
  const { blocks, seen } = bed(book, false, limits);
  blocks.add(BLOCK, BODY);
  await expect.poll(() => seen).toEqual(['sent', 'accepted']);
  expect(limits).toContain(20_000);
  await blocks.close();
});

test('a block found just before the end is still sent once', async () => {
  const { blocks, seen } = bed(() => sleep(20));
  blocks.add(BLOCK, BODY);
  await blocks.close();
  expect(seen).toEqual(['booked', 'sent', 'accepted']);
});

test('a cut that pays blocks of others too pays the own one alone; what it leaves out is over with its window', async () => {
  const { blocks, seen } = bed(async () => undefined);
  const other = { ...BLOCK, blockId: new Uint8Array(48).fill(2) };
  for (const block of [BLOCK, other]) blocks.add(block, BODY);
  await expect.poll(() => seen.filter((what) => what === 'accepted')).toHaveLength(2);
  const rewardOf = (fill: string) => ({
    blockId: fill.repeat(48),
    transactionId: 'ab'.repeat(48),
    outputIndex: 0,
    amount: 7n,
  });
  const height = BLOCK.anchorHeight + REGISTRATION_WINDOW;
  blocks.onCut({ height, rewards: [rewardOf('ff'), rewardOf('01'), rewardOf('ee')] } as never);
  expect(blocks.counts).toMatchObject({ paid: 1, expired: 1 });
  expect(blocks.paidAtoms).toBe(7n);
  await expect.poll(() => seen.slice(-2)).toEqual(['paid', 'expired']);
  await blocks.close();
});

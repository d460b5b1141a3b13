/** Nodes that take blocks and never answer, or answer that they failed: they gather no bodies, hold up no other node, and lose no block. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type CandidateAnswer, NodeUpstream, UPSTREAM_DEFAULTS } from '../../bridge/nodes/upstream.ts';
import { FoundBlocks } from '../../bridge/shares/found-blocks.ts';
import type { FoundBlock } from '../../bridge/shares/sink.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { quietLog } from '../quiet-log.ts';

const blockOf = (n: number): FoundBlock => ({
  service: 'pplns',
  account: new Uint8Array(49),
  worker: 'rig',
  work: 4n,
  anchorHeight: 1,
  hashWork: 4,
  cutHeight: 1,
  extranonce: new Uint8Array(20),
  headerDigest: new Uint8Array(16),
  nonce: new Uint8Array(8),
  atMillis: n,
  payout: new Uint8Array(49),
  target: 1n,
  header: new Uint8Array(312),
  carried: { fees: 0n, mass: 0 },
  blockId: Uint8Array.from({ length: 48 }, (_, i) => (i < 4 ? (n >> (8 * i)) & 255 : 0)),
});

class HangingSource extends TemplateSource {
  hanging = 0;

  override submit(): Promise<never> {
    this.hanging++;
    return new Promise(() => undefined);
  }
}

/** Takes each block, and says twice that it could not. */
class DenyingSource extends TemplateSource {
  override async submit(header: Uint8Array, body: Uint8Array): Promise<CandidateAnswer> {
    await super.submit(header, body);
    if (this.submitted.length <= 2) throw new Error('503');
    return { state: 'known' };
  }
}

function bed(sources: readonly TemplateSource[]) {
  const upstream = new NodeUpstream(
    { network: NETWORKS.development, ...UPSTREAM_DEFAULTS },
    { sources, now: Date.now, log: quietLog },
  );
  const fates: string[] = [];
  const blocks = new FoundBlocks({
    upstream,
    sink: {
      block: async () => undefined,
      blockFate: async (_, fate) => void fates.push(fate.state),
    },
    log: quietLog,
    sleep: () => sleep(5),
  });
  // Blocks that no node takes are sent again and again, until their time is over.
  onTestFinished(() => blocks.onCut({ height: 1_000, cutId: '', rewards: [] }));
  let bodies = 0;
  const body = () => {
    bodies++;
    return new Uint8Array(1);
  };
  return { blocks, fates, body, made: () => bodies };
}

test('a node that hangs holds sixteen bodies at most, however many blocks are found', async () => {
  const source = new HangingSource('hanging');
  const { blocks, body, made } = bed([source]);
  for (let n = 0; n < 1_000; n++) blocks.add(blockOf(n), body);
  await expect.poll(() => source.hanging).toBe(16);
  await sleep(100);
  expect(source.hanging).toBe(16);
  expect(made()).toBe(16);
});

test('another node has every block all the same, and its answer is not waited for longer', async () => {
  const [hanging, good] = [new HangingSource('hanging'), new TemplateSource('good')];
  const { blocks, fates, body } = bed([hanging, good]);
  for (let n = 0; n < 200; n++) blocks.add(blockOf(n), body);
  await expect.poll(() => good.submitted.length).toBe(200);
  await expect.poll(() => fates.filter((state) => state === 'accepted').length).toBe(200);
  expect(hanging.hanging).toBe(16);
});

test('blocks without end, as from a target that every hash meets, do not gather without end', async () => {
  const source = new HangingSource('hanging');
  const { blocks, body } = bed([source]);
  for (let n = 0; n < 7_000; n++) blocks.add(blockOf(n), body);
  expect(blocks.counts.found - blocks.counts.expired).toBe(96 * 64);
  expect(blocks.list(10_000).length).toBeLessThan(96 * 64 + 2_001);
});

test('a node that takes a block and says that it failed is sent the same one again, and no other', async () => {
  const source = new DenyingSource('denying');
  const { blocks, fates, body } = bed([source]);
  const block = { ...blockOf(1), header: new Uint8Array(312).fill(7) };
  blocks.add(block, body);
  await expect.poll(() => fates).toEqual(['known']);
  expect(source.submitted).toEqual(
    Array.from({ length: 3 }, () => ({ header: block.header, body: new Uint8Array(1) })),
  );
  expect(blocks.counts).toMatchObject({ found: 1, accepted: 1 });
});

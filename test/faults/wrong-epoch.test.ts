/** Templates of the wrong epoch, or on cuts that are not there, are refused: blocks found on them would be nobody's. Nor do made-up heights end what is under way. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { checkTemplate } from '../../bridge/nodes/template.ts';
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { NETWORKS, POW_EPOCH_CUTS } from '../../protocol/network.ts';
import { LIES } from './lies.ts';
import { followNodes, httpNode, startMiningBed } from './mining-bed.ts';

test('a lying node that tells the wrong epoch serves nobody, and another one does', async () => {
  const { bed, url, liar } = await startMiningBed();
  const chain = { network: NETWORKS.development, headHeight: 0, nowMillis: bed.now };
  const truth = await httpNode(url, 5_000).template(0);
  expect(checkTemplate(truth, chain)).toMatchObject({ ok: true });
  const told = (epoch: number, epochLength: number | undefined) =>
    checkTemplate({ ...truth, pow: { epoch, seed: datasetSeed(NETWORKS.development.id, epoch), epochLength } }, chain);
  expect(told(7, POW_EPOCH_CUTS)).toEqual({ ok: false, reason: 'work on anchor 0 is of epoch 0, not 7' });
  expect(told(7, undefined)).toMatchObject({ ok: false });
  for (const length of [0, -1, 1.5, Number.NaN]) expect(told(0, length)).toMatchObject({ ok: false });

  const { sets } = followNodes(bed, [liar.url, url]);
  await expect.poll(() => sets.at(-1)?.node).toBe(liar.url);
  liar.lie = LIES.epochs?.('') ?? {};
  await bed.seal();
  await expect.poll(() => sets.at(-1)?.node).toBe(url);
  expect(sets.every(({ templates }) => templates.every(({ epoch }) => epoch === 0))).toBe(true);
});

test('work on a cut that is far ahead is handed to nobody', async () => {
  const { bed, url, liar } = await startMiningBed();
  const { sets } = followNodes(bed, [liar.url, url]);
  await expect.poll(() => sets.at(-1)?.node).toBe(liar.url);
  liar.lie = LIES.anchors?.('') ?? {};
  await bed.seal();
  await expect.poll(() => sets.at(-1)?.node).toBe(url);
  expect(sets.every(({ templates }) => templates.every(({ anchorHeight }) => anchorHeight < 100))).toBe(true);
});

test('cuts of heights that no template confirms are not reported, and the real ones are reported after them', async () => {
  const { bed, liar } = await startMiningBed();
  const { sets, cuts, states } = followNodes(bed, [liar.url]);
  await expect.poll(() => states.healthy && sets.length > 0).toBe(true);
  await bed.seal(3);
  await expect.poll(() => cuts.at(-1)).toBe(bed.node.chain.head().height);
  liar.lie = LIES.heights?.('') ?? {};
  liar.dropReaders();
  const sealed = async () => {
    await bed.seal();
    return states.healthy;
  };
  await expect.poll(sealed, { interval: 20 }).toBe(false);
  for (let i = 0; i < 20; i++) {
    await bed.seal();
    await sleep(20);
  }
  liar.lie = {};
  liar.dropReaders();
  // A cut that is made while the bridge connects is its first head and no news: others follow until one is.
  const from = bed.node.chain.head().height;
  const isReported = async () => {
    await bed.seal();
    return (cuts.at(-1) as number) > from;
  };
  await expect.poll(isReported, { interval: 20 }).toBe(true);
  await expect.poll(() => cuts.at(-1)).toBe(bed.node.chain.head().height);
  expect(Math.max(...cuts)).toBe(bed.node.chain.head().height);
});

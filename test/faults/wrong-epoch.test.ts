/** A template with the right seed of the wrong epoch is refused: blocks found on it would be nobody's. */
import { expect, test } from 'vitest';
import { checkTemplate } from '../../bridge/nodes/template.ts';
import { NETWORKS, POW_EPOCH_CUTS } from '../../protocol/network.ts';
import { datasetSeed } from '../../protocol/pow.ts';
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
  await expect.poll(() => sets.at(-1)?.node, { timeout: 10_000 }).toBe(liar.url);
  liar.lie = LIES.epochs?.('') ?? {};
  await bed.seal();
  await expect.poll(() => sets.at(-1)?.node, { timeout: 10_000 }).toBe(url);
  expect(sets.every(({ templates }) => templates.every(({ epoch }) => epoch === 0))).toBe(true);
});

/** Two halves that cannot make a cut alone, parted for a while: `npm run bench -- network split` does the same for five minutes and with more validators. */
import { expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { Halves } from './halves.ts';

const CUT_MILLIS = 400;

test('validators and nodes of two halves that were parted come back to one chain, with the blocks of both', async () => {
  const halves = await Halves.prepare(temporaryDirectory(), { validators: 2, cutMillis: CUT_MILLIS });
  onTestFinished(() => halves.close());
  await halves.start();
  const { height } = await halves.split(10 * CUT_MILLIS);
  expect(await halves.compare()).toBeGreaterThan(height);
});

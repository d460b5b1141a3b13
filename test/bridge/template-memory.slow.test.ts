/** Memory of a server without a single miner while full templates come every cut: what is kept does not grow with them. */
import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { count } from '../level.ts';
import { startBed } from './bed.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

useNativeSha384();

const MIB = 1024 * 1024;
const CUTS = count({ full: 30, deep: 600 });
const DRAWS = 4;
const PER_BODY = 250;

test('many cuts with four full bodies each leave no more behind than the first ten', async () => {
  const { server, source } = await startBed();
  const mempool = Array.from({ length: PER_BODY }, () => randomBytes(4_000));
  source.fees = 1n;
  // Every answer is decoded from bytes of its own, as one that came by HTTP is.
  source.spoil = (answer) => ({ ...answer, body: decodeBody(encodeBody(answer.body)) });
  const measure = async (): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Buffers that the first finds are given back by a background thread, for which the second waits.
    collect();
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  let early = 0;
  for (let cut = 1; cut <= CUTS; cut++) {
    // A few leave and a few come; each draw is in another order.
    for (let i = 0; i < 2; i++) mempool[(cut * 2 + i) % PER_BODY] = randomBytes(4_000);
    source.transactions = Array.from({ length: DRAWS }, (_, draw) => [
      ...mempool.slice(draw * 10),
      ...mempool.slice(0, draw * 10),
    ]);
    const before = (await server.figures()).templates.published;
    source.cut();
    await expect
      .poll(async () => (await server.figures()).templates.published, { interval: 5 })
      .toBeGreaterThan(before);
    if (cut === 10) early = await measure();
  }
  const { kept } = (await server.figures()).templates;
  expect(kept.transactions).toBeLessThanOrEqual(PER_BODY + 2 * CUTS);
  expect(kept.bytes).toBe(kept.transactions * 4_000);
  // The old way: four mebibytes a cut.
  expect((await measure()) - early).toBeLessThan(kept.bytes + 20 * MIB);
});

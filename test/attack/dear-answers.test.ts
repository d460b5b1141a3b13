/**
 * What an answer with cuts costs before it is proven, whoever sent it: the checks of one certificate, and no memory while
 * headers are read that prove it. In virtual time.
 */
import type { KeyObject } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { encodeCutsAnswer } from '../../node/network/sync/sync-messages.ts';
import { ByteReader } from '../../protocol/bytes.ts';
import { readCutContent } from '../../protocol/consensus/proposal.ts';
import { type Certificate, certificateMessage } from '../../protocol/ledger/cut.ts';
import { developmentKeys } from '../node/bed.ts';
import { LiarsBed, passing, pause } from './liars.ts';

const INTERVAL = 384;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'], now: 1_000_000 });
});
afterEach(() => void vi.useRealTimers());

test.each([
  ['headers of an old epoch', []],
  ['the way back from a checkpoint', [700]],
  ['headers up to a cut that a checkpoint proves', [701]],
] as const)('answers of fifty peers are not kept while %s are read', async (_, at) => {
  const bed = new LiarsBed(900, 720, INTERVAL, { checkpoints: at });
  const answers: WeakRef<Uint8Array>[] = [];
  let isServed = false;
  for (let i = 0; i < 50; i++)
    bed.join(`peer${i}`, bed.tip, async (question) => {
      await pause(100);
      // The end of the batch is proven by what the way back kept, other cuts of it by headers of the batch.
      const isBusy = question.type === 'headers' && (at[0] !== 701 || question.count < 96);
      if (isBusy && !isServed) return 'busy';
      const most = at[0] === 701 ? 50 : 96;
      const answer = bed.truth(question, { isCertified: (height) => height >= INTERVAL, most });
      if (question.type === 'cuts') answers.push(new WeakRef(answer));
      return answer;
    });
  bed.sync.start();
  await passing(() => answers.length >= 50, 60_000);
  // All have come, and the newest still wait.
  await passing(() => false, 1_000);
  expect(answers.length).toBeGreaterThanOrEqual(50);
  expect(bed.height).toBe(0);
  // References are let go of between two turns of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(answers.filter((answer) => answer.deref() !== undefined).length).toBeLessThanOrEqual(1);
  isServed = true;
  expect(await passing(() => bed.height === bed.tip, 60_000)).toBeLessThan(30_000);
  expect(bed.blamed).toEqual([]);
  void bed.sync.close();
  await passing(() => false, 60_000, 1_000);
});

/** The cuts of an answer in wire form. */
function contentsOf(answer: Uint8Array): Uint8Array[] {
  const reader = new ByteReader(answer.subarray(16));
  return Array.from({ length: reader.u8() }, () => readCutContent(reader).content as Uint8Array);
}

test('an answer whose last certificate is false costs the checks of that one, however many true ones came along', async () => {
  const [key] = developmentKeys(1) as [KeyObject];
  const publicKey = rawPublicKey(key);
  let checks = 0;
  const member = {
    stake: 1n,
    get publicKey() {
      checks++;
      return publicKey;
    },
  };
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 24 }), async (count, most) => {
      const bed = new LiarsBed(200, 150, INTERVAL, { members: Array.from({ length: count }, () => member) });
      const certificateOf = (height: number): Certificate => {
        const { cutId } = bed.cuts[height] as (typeof bed.cuts)[number];
        const signature = signMessage(key, certificateMessage(bed.chainId, { height, cutId }, 0));
        return { round: 0, signatures: Array.from({ length: count }, (_, of) => ({ member: of, signature })) };
      };
      bed.join('liar', bed.tip, async (question) => {
        if (question.type !== 'cuts' || bed.blamed.length > 0) return 'busy';
        const cuts = contentsOf(bed.truth(question, { most }));
        const certificates = cuts.map((_, index) => ({
          index,
          certificate: certificateOf(index === cuts.length - 1 ? 0 : question.from + index),
        }));
        return encodeCutsAnswer({ head: bed.tip, bodiesFrom: 0 }, cuts, certificates);
      });
      checks = 0;
      bed.sync.start();
      // Signatures are checked by other threads.
      while (bed.blamed.length === 0) {
        await vi.advanceTimersByTimeAsync(50);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(bed.blamed).toEqual([`liar false_proof the certificate of cut ${most} does not verify`]);
      expect(checks).toBe(count);
      void bed.sync.close();
      await passing(() => false, 60_000, 1_000);
    }),
    { numRuns: 6, seed: 20_260_101 },
  );
});

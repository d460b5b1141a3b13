/** Threads that check signatures: as many as there are checks for, or all of them ahead, so that the first transaction of a node does not wait for them. */
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/development.ts';
import { SignatureWorkers } from '../../node/mempool/signature-workers.ts';
import { signMessage } from '../../node/ml-dsa.ts';

const alice = developmentKey('alice');
const message = new Uint8Array(48).fill(7);
const check = { publicKey: alice.publicKey, message, signature: signMessage(alice.privateKey, message) };

/** Workers with the count of threads that they started. */
function counted(threads: number): { readonly workers: SignatureWorkers; readonly started: () => Promise<number> } {
  let made = 0;
  const count = () => void made++;
  process.on('worker', count);
  const workers = new SignatureWorkers(threads);
  onTestFinished(async () => {
    process.off('worker', count);
    await workers.close();
  });
  // The event comes a tick after the start.
  const started = () => new Promise<number>((resolve) => setImmediate(() => resolve(made)));
  return { workers, started };
}

test('workers that are warm are all there before the first check, and none is added', async () => {
  const { workers, started } = counted(2);
  workers.warm();
  expect(await started()).toBe(2);
  workers.warm();
  expect(await workers.verify([check, check, check])).toBe(true);
  expect(await started()).toBe(2);
});

test('a check of cold workers starts one of them, and not more than there are checks', async () => {
  const { workers, started } = counted(2);
  expect(await workers.verify([{ ...check, message: new Uint8Array(48) }])).toBe(false);
  expect(await started()).toBe(1);
  expect(await workers.verify([check, check])).toBe(true);
  expect(await started()).toBe(2);
});

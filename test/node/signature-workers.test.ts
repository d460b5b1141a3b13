/** Threads that check signatures: as many as there are checks for, or all of them ahead, so that the first transaction of a node does not wait for them. */
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { CheckedSignatures } from '../../node/mempool/checked-signatures.ts';
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
  expect(await Promise.all([check, check, check].map((each) => workers.verify(each)))).toEqual([true, true, true]);
  expect(await started()).toBe(2);
});

test('a check of cold workers starts one of them, and not more than there are checks', async () => {
  const { workers, started } = counted(2);
  expect(await workers.verify({ ...check, message: new Uint8Array(48) })).toBe(false);
  expect(await started()).toBe(1);
  expect(await Promise.all([workers.verify(check), workers.verify(check)])).toEqual([true, true]);
  expect(await started()).toBe(2);
});

test('a result that came while a check waited for its turn is taken, and nothing is checked', async () => {
  const { workers } = counted(1);
  const wrong = { ...check, message: new Uint8Array(48) };
  // No check would find this one valid.
  expect(await workers.verify(wrong, () => true)).toBe(true);
  expect(await Promise.all([workers.verify(check), workers.verify(wrong, () => true)])).toEqual([true, true]);
});

test('checks for blocks come before those of transactions, however many of these wait, and the same signature among them', async () => {
  const { workers } = counted(1);
  const signatures = new CheckedSignatures();
  let done = 0;
  const many = Array.from({ length: 600 }, async (_, i) => {
    await workers.verify({ ...check, message: new Uint8Array(48).fill(i & 255).fill(i >> 8, 1) });
    done++;
  });
  const sent = signatures.areValid([check], workers);
  expect(await signatures.areValid([check], workers.first)).toBe(true);
  // Those that the thread had already.
  expect(done).toBeLessThan(100);
  expect(await sent).toBe(true);
  await Promise.all(many);
});

test('a signature is checked once: while it is being checked, and after that, valid or not', async () => {
  let here = 0;
  const aside: { resolve(valid: boolean): void; reject(error: Error): void }[] = [];
  const signatures = new CheckedSignatures(() => {
    here++;
    return true;
  });
  const threads = {
    verify: () => new Promise<boolean>((resolve, reject) => aside.push({ resolve, reject })),
  };
  const wrong = { ...check, message: new Uint8Array(48) };
  const first = signatures.areValid([check, wrong], threads);
  const second = signatures.areValid([check], threads);
  expect(aside).toHaveLength(2);
  aside[0]?.resolve(true);
  aside[1]?.resolve(false);
  expect(await Promise.all([first, second])).toEqual([false, true]);
  expect([signatures.isValid(check), signatures.isValid(wrong)]).toEqual([true, false]);
  expect(await signatures.areValid([check], threads)).toBe(true);
  expect([aside.length, here]).toEqual([2, 0]);
  // A thread that died says nothing about a signature.
  const other = { ...check, message: new Uint8Array(48).fill(1) };
  const failing = signatures.areValid([other], threads);
  aside[2]?.reject(new Error('the worker died'));
  await expect(failing).rejects.toThrow('the worker died');
  expect(signatures.isValid(other)).toBe(true);
  expect(here).toBe(1);
});

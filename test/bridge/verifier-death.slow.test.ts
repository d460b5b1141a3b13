/** Verification workers killed under the running server: every share is answered, none is lost and none wrongly refused. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import { toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { startBed } from './bed.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';

const SHARES = 40;

/** Workers in the order they start, while `run` runs. */
async function watchWorkers<T>(seen: Worker[], run: () => T | Promise<T>): Promise<T> {
  const take = (worker: Worker): void => void seen.push(worker);
  process.on('worker', take);
  onTestFinished(() => void process.off('worker', take));
  return await run();
}

test.each([0, 2])('%i listener threads', async (threads) => {
  const workers: Worker[] = [];
  const verifier = await watchWorkers(workers, async () => {
    const made = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 2 });
    await made.prepare(0);
    return made;
  });
  onTestFinished(() => verifier.close());
  const verifying = workers.filter(({ threadName }) => threadName === 'pow').slice(0, 2);
  expect(verifying.length).toBe(2);
  const { port, sink } = await startBed({ verifier, threads });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`, 'd=4');
  const job = client.jobs[0]!;
  const nonces: Uint8Array[] = [];
  for (let from = 0n; nonces.length < SHARES; ) {
    const hit = mine(job, client.prefix, from);
    from = hit.next;
    nonces.push(Uint8Array.from(hit.nonce));
  }
  const codes = new Map<string, number>();
  const submit = async (nonce: Uint8Array): Promise<void> => {
    // A fault of ours (20) may be sent again, and then counts: what was not judged is not a duplicate.
    for (;;) {
      const code = await client.submitCode(job.jobId, nonce);
      codes.set(toHex(nonce), code);
      if (code !== 20) return;
      await sleep(20);
    }
  };
  const third = Math.floor(SHARES / 3);
  const answered: Promise<void>[] = [];
  for (const [i, nonce] of nonces.entries()) {
    answered.push(submit(nonce));
    // One with shares in its hands, and later the other, so that only replacements are left.
    if (i === third) void verifying[0]?.terminate();
    if (i === 2 * third) {
      await Promise.all(answered);
      void verifying[1]?.terminate();
    }
  }
  await Promise.all(answered);
  expect([...codes.values()].filter((code) => code !== 0)).toEqual([]);
  expect(new Set(sink.accepted.map(({ nonce }) => toHex(nonce))).size).toBe(SHARES);
  expect(sink.accepted.length).toBe(SHARES);
  // Wrong ones are still told from right ones.
  const wrong = Uint8Array.from(nonces[0]!);
  for (;;) {
    wrong[5] = (wrong[5]! + 1) & 255;
    const code = await client.submitCode(job.jobId, wrong);
    if (code === 23) break;
    expect([0, 20, 22]).toContain(code);
  }
  expect((await client.ask({ method: 'mining.stats' })) as object).toMatchObject({ kind: 'result' });
  client.close();
});

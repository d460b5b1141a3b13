/** A listener thread that dies takes its connections with it, and another takes its place: nothing of the dead one stays. */
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { EASY, startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { dial } from './raw-client.ts';

test('the places of its connections are free again', async () => {
  const sent = vi.spyOn(Worker.prototype, 'postMessage');
  onTestFinished(() => void sent.mockRestore());
  const limits = { ...EASY, connections: 2 };
  const { port, server } = await startBed({ threads: 1, limits });
  // The thread of the listener is the one that was asked to listen.
  const asked = sent.mock.calls.findIndex(([message]) => (message as { name?: string }).name === 'listen');
  const thread = sent.mock.contexts[asked] as Worker;
  const clients = [await dial(port, '{'), await dial(port, '{')];
  onTestFinished(() => {
    for (const { socket } of clients) socket.destroy();
  });
  await expect.poll(async () => (await server.figures()).listeners[0]?.byTransport.tcp).toBe(2);
  await thread.terminate();
  for (const { gone, socket } of clients) {
    socket.end();
    await gone;
  }
  await expect.poll(async () => (await server.figures()).listeners.length).toBe(1);
  const miner = await V1Client.open(port);
  const refused = miner.closed.then(() => {
    throw new Error('there was no place');
  });
  await Promise.race([miner.login(`${addressOf(1)}.w`), refused]);
  const job = miner.jobs.at(-1)!;
  expect(await miner.submitCode(job.jobId, mine(job, miner.prefix).nonce)).toBe(0);
  refused.catch(() => undefined);
  miner.close();
});

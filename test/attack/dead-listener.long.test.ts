/** A listener thread that dies takes its connections with it, and another takes its place: nothing of the dead one stays. */
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { EASY, startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { until } from '../until.ts';
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

/** The threads that were asked to listen so far. */
function listening() {
  const sent = vi.spyOn(Worker.prototype, 'postMessage');
  onTestFinished(() => void sent.mockRestore());
  return (): Worker[] =>
    sent.mock.contexts.filter(
      (_, i) => (sent.mock.calls[i]?.[0] as { name?: string } | undefined)?.name === 'listen',
    ) as unknown as Worker[];
}

test('figures that were asked of it are those of the others: nothing is rejected, which would end the program', async () => {
  const threads = listening();
  const { server } = await startBed({ threads: 2 });
  const [first] = threads();
  const ended = first?.terminate();
  const asked = [server.figures(), server.figures()];
  for (const { ready, listeners } of await Promise.all(asked)) {
    expect(ready).toBe(true);
    expect(listeners.length).toBeGreaterThan(0);
  }
  await ended;
});

test('one that is being replaced while the server closes does not stay', async () => {
  const threads = listening();
  const { server } = await startBed({ threads: 1 });
  await threads()[0]?.terminate();
  await until(() => threads().length === 2);
  await server.close();
  await until(() => threads().every(({ threadId }) => threadId === -1));
});

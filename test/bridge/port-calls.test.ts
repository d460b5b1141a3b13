/** Calls between threads: every failure is answered, or reported to the owner of this end; no unhandled rejection ends the process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { PortCalls } from '../../bridge/threads/port-calls.ts';
import { fatalErrors } from '../faults/mining-bed.ts';

test('a tell that throws or rejects, or of which there is no method, is heard of; calls are answered with the reason', async () => {
  const fatal = fatalErrors();
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const failed: string[] = [];
  const methods = {
    throws: () => {
      throw new Error('thrown');
    },
    rejects: () => Promise.reject(new Error('rejected')),
    twice: (n: number) => 2 * n,
  };
  new PortCalls(port1 as never, methods, (name, error) => failed.push(`${name}: ${(error as Error).message}`));
  const calls = new PortCalls(port2 as never, {}, () => undefined);
  for (const name of ['throws', 'rejects', 'nothing']) calls.tell(name, []);
  await expect(calls.call('rejects', [])).rejects.toThrow('rejected');
  await expect(calls.call('nothing', [])).rejects.toThrow('there is no method nothing');
  expect(await calls.call('twice', [21])).toBe(42);
  await sleep(20);
  expect(failed).toEqual(['throws: thrown', 'rejects: rejected', 'nothing: there is no method nothing']);
  expect(fatal).toEqual([]);
});

/** A defect met over one miner ends that miner: in its messages, in a job to all, in a verdict, on the timer. The others mine on. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { Mining } from '../../bridge/session/mining.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { startBed } from './bed.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';

type Act = (bed: { cut(): void; bad: V1Client }) => void;
const submit: Act = ({ bad }) => {
  const job = bad.jobs.at(-1)!;
  bad.send({ method: 'mining.submit', params: { jobId: job.jobId, nonce: mine(job, bad.prefix).nonce } });
};

test.each<[method: 'submit' | 'offer' | 'accepted' | 'retarget', act: Act]>([
  ['submit', submit],
  ['accepted', submit],
  ['offer', ({ cut }) => cut()],
  ['retarget', () => undefined],
])('in Mining.%s', async (method, act) => {
  const { port, source, server } = await startBed();
  const [bad, good] = [await V1Client.open(port), await V1Client.open(port)];
  await bad.login(`${addressOf(1)}.bad`);
  await good.login(`${addressOf(2)}.good`);
  const real = Mining.prototype[method] as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(Mining.prototype, method).mockImplementation(function (this: Mining, ...args: unknown[]) {
    if (this.member.worker === 'bad') throw new TypeError(`a defect in ${method}`);
    return real.apply(this, args) as never;
  });
  onTestFinished(() => void spy.mockRestore());
  act({ cut: () => source.cut(), bad });
  await bad.closed;
  spy.mockRestore();
  expect(clientFaults.take()).toBeGreaterThanOrEqual(1);
  const seen = good.jobs.length;
  source.cut();
  await good.until(() => (good.jobs.length > seen ? true : undefined));
  const job = good.jobs.at(-1)!;
  expect(await good.submitCode(job.jobId, mine(job, good.prefix).nonce)).toBe(0);
  await expect.poll(async () => (await server.figures()).listeners[0]?.connections).toBe(1);
  expect(clientFaults.total).toBe(0);
  good.close();
});

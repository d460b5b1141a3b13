/** Everybody at once, again and again: all are served in the end, sessions are resumed, and memory does not grow with the rounds. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { count } from '../level.ts';
import { EASY, startBed } from './bed.ts';
import type { StormReport, StormTask } from './storm-process.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';

const MINERS = count({ full: 300, deep: 10_000 });
const ROUNDS = 9;
/** Rounds after which the heaps of three threads have the size they like. */
const SETTLED = 5;
/** What the rounds after those may add, whatever the garbage collectors have not come to yet: a third of a leaked connection a round. */
const GROWTH_BYTES = 40 * 2 ** 20 + (ROUNDS - SETTLED) * 2_048 * MINERS;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

test(`${MINERS} miners reconnect at once`, async () => {
  const limits = { ...EASY, connectionsPerAddress: 100_000, loginMillis: 60_000 };
  const { port, server, sink } = await startBed({ threads: 2, limits });
  const miners = fork(new URL('./storm-process.ts', import.meta.url), { execPath: process.execPath, execArgv: [] });
  onTestFinished(() => void miners.kill('SIGKILL'));
  const rss: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    miners.send({ port, miners: MINERS } satisfies StormTask);
    const [report] = (await once(miners, 'message')) as [StormReport];
    expect(report.served).toBe(MINERS);
    if (round > 0) expect(report.resumed).toBe(MINERS);
    const figures = async () => {
      const { listeners } = await server.figures();
      return listeners.reduce((sum, { connections }) => sum + connections, 0);
    };
    await expect.poll(figures).toBe(MINERS);
    sink.events.length = 0;
    collect();
    rss.push(process.memoryUsage().rss);
  }
  expect(rss.at(-1)! - rss[SETTLED]!).toBeLessThan(GROWTH_BYTES);
  miners.disconnect();
  await expect
    .poll(async () => (await server.figures()).listeners.map(({ connections }) => connections))
    .toEqual([0, 0]);
});

test.each([0, 2])(
  'a session whose connection breaks in the middle of a resume is resumed by the next, %i threads',
  async (threads) => {
    const { port, sink } = await startBed({ threads });
    const first = await V1Client.open(port);
    await first.login(`${addressOf(1)}.a`);
    const job = first.jobs[0]!;
    first.close();
    await expect.poll(() => sink.events.filter(({ kind }) => kind === 'left').length).toBe(1);
    for (const isClosed of [true, false, true]) {
      const broken = await V1Client.open(port);
      await broken.subscribe(first.session);
      expect(broken.session).toBe(first.session);
      if (isClosed) broken.close();
    }
    const last = await V1Client.open(port);
    await last.login(`${addressOf(1)}.a`, '', first.session);
    expect(last.session).toBe(first.session);
    expect(await last.submitCode(job.jobId, mine(job, last.prefix).nonce)).toBe(0);
    last.close();
    await expect.poll(() => sink.events.map(({ kind }) => kind)).toEqual(['joined', 'left', 'joined', 'left']);
  },
);

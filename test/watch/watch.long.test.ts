/** The watch on planted hangs: what it ends, what it leaves alone, and what it says. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';

import { processTree, quietShare, threadsOf, useBetween } from './quiet-time.ts';
import { kindOf } from './seen.ts';
import { Watch } from './watch.ts';

/** Its ticks are short, so that a hang takes half a second. */
const TICK = 50;
const LIMITS = { millis: 60_000, stillMillis: 500 };
const nothing = () => new Promise<never>(() => {});
const tick = () => new Promise((resolve) => setTimeout(resolve, TICK));

async function messageOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => expect.fail('it did not end'),
    ({ message }: Error) => message,
  );
}

test('a test that waits for what never comes ends, and says what that is, what it saw last, and what its programs printed', async () => {
  const watch = new Watch(TICK);
  // A program that goes on with what it does, as a node makes cuts.
  const script = 'console.log("ready"); let i = 0; setInterval(() => console.log("cut", i++), 20)';
  const act = async () => {
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    await watch.lookFor(
      'the pool refuses',
      () => ({ refused: 0 }),
      async (look) => {
        while ((await look()).refused === 0) await tick();
      },
    );
  };
  const message = await messageOf(watch.guard('a planted hang', LIMITS, act));
  expect(message).toMatch(/^nothing that it waits for has moved for 1 s: a planted hang\n/);
  expect(message).toMatch(/it waits:\n {2}for \d+ s: the pool refuses\n {4}last seen: \{ refused: 0 \}/);
  expect(message).toMatch(/-e console\.log.* \(process \d+, runs\)\n( {4}.*\n)* {4}cut \d+$/);
});

test('what a test awaits without a word ends too', async () => {
  const message = await messageOf(new Watch(TICK).guard('silence', LIMITS, nothing));
  expect(message).toMatch(/has moved for 1 s: silence\nit does not say what it waits for\nno program was started/);
});

test('a wait whose value moves goes on, however long it takes, up to the limit of the test', async () => {
  const watch = new Watch(TICK);
  let looks = 0;
  const counts = (until: number) =>
    watch.lookFor(
      'enough',
      () => ++looks,
      async (look) => {
        while ((await look()) < until) await tick();
        return 'there';
      },
    );
  // Three times as long as nothing may stand still.
  expect(await watch.guard('slow', LIMITS, () => counts((3 * LIMITS.stillMillis) / TICK))).toBe('there');
  const message = await messageOf(watch.guard('endless', { ...LIMITS, millis: 1_000 }, () => counts(1e9)));
  expect(message).toMatch(/^it took longer than its limit of 1 s: endless\nit waits:\n {2}for \d s: enough/);
});

test('a test that computes goes on', async () => {
  const watch = new Watch(TICK);
  const computes = async () => {
    const { user } = process.cpuUsage();
    // Processor time, not time: a busy machine takes longer for it.
    while (process.cpuUsage().user - user < 2 * LIMITS.stillMillis * 1_000) {
      for (let i = 0; i < 1e6; i++) Math.sqrt(i);
      await new Promise(setImmediate);
    }
    return 'there';
  };
  expect(await watch.guard('fuzz', LIMITS, computes)).toBe('there');
});

test('looks of a test that was ended stop', async () => {
  const watch = new Watch(TICK);
  let looks = 0;
  const poll = watch.polled(() => ++looks && 'never');
  const signal = new AbortController().signal;
  let isParked = false;
  const polls = async () => {
    for (;;) {
      const look = poll({ signal });
      isParked = (await Promise.race([look, tick().then(() => 'parked')])) === 'parked';
      if (isParked) return;
      await tick();
    }
  };
  await messageOf(watch.guard('polls', LIMITS, polls));
  const after = looks;
  await expect.poll(() => isParked).toBe(true);
  expect(looks).toBe(after);
});

test('time is quiet as far as the threads got what they wanted of the machine', () => {
  const SECOND = 1e9;
  // Nothing wants to run, or hardly anything: a hang, however busy others are.
  expect(quietShare({ ran: 0, waited: 0 }, SECOND)).toBe(1);
  expect(quietShare({ ran: 0.001 * SECOND, waited: 0.008 * SECOND }, SECOND)).toBeCloseTo(0.992);
  // One thread that computes, beside eight that do the same on one core.
  expect(quietShare({ ran: SECOND / 9, waited: (8 * SECOND) / 9 }, SECOND)).toBeCloseTo(1 / 9);
  // Four of its own on two cores.
  expect(quietShare({ ran: 2 * SECOND, waited: 2 * SECOND }, SECOND)).toBe(0.5);
  expect(quietShare({ ran: SECOND, waited: 0 }, SECOND, 0.75)).toBe(0.25);
  expect(quietShare({ ran: 0, waited: 9 * SECOND }, SECOND)).toBe(0.05);
});

test('the processor time of this process and of a program that it starts is seen', async () => {
  const child = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(processTree(process.pid)).toContain(child.pid);
  const before = threadsOf([child.pid as number]);
  const ran = () => useBetween(before, threadsOf(processTree(process.pid).filter((pid) => pid === child.pid))).ran;
  await expect.poll(ran).toBeGreaterThan(2e8);
});

test('lines of a log are of one kind when only numbers and identifiers differ', () => {
  const line = (time: number, id: string) =>
    `2026-01-01T00:00:0${time}Z INFO chain: cut finalized height=${time} id=${id}`;
  expect(kindOf(line(1, 'deadbeef01'))).toBe(kindOf(line(2, '00ff00ff00ff')));
  expect(kindOf('pool: refused')).not.toBe(kindOf('pool: accepted'));
});

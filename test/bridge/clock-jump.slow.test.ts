/**
 * The system's clock jumps back. The server goes by a clock of its own that never does (runtime/clock/clock.ts), so no job dies, no
 * limit starves, no ban grows, nobody is thrown out, and times in the books do not go back either.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import { serialOf } from '../../bridge/session/job-book.ts';
import { steadyNow } from '../../runtime/clock/clock.ts';
import { startBed } from './bed.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';

const HOUR = 3_600_000;

test('the server’s clock does not follow the system’s', () => {
  const before = steadyNow();
  const spy = vi.spyOn(Date, 'now').mockReturnValue(0);
  onTestFinished(() => spy.mockRestore());
  expect(steadyNow()).toBeGreaterThanOrEqual(before);
});

test('the system’s clock goes back an hour under a running server: shares, logins, new jobs and bans go on', async () => {
  const { port, source, sink, server } = await startBed();
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0]!;
  const real = Date.now;
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => real.call(Date) - HOUR);
  onTestFinished(() => spy.mockRestore());
  const hit = mine(job, client.prefix);
  expect(await client.submitCode(job.jobId, hit.nonce)).toBe(0);
  source.cut();
  const next = await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(job.jobId)));
  expect(await client.submitCode(next.jobId, mine(next, client.prefix).nonce)).toBe(0);
  expect(await client.submitCode(job.jobId, mine(job, client.prefix, hit.next).nonce)).toBe(0);
  const other = await V1Client.open(port);
  await other.login(`${addressOf(2)}.b`);
  server.ban('203.0.113.9', steadyNow() + 60_000);
  expect(server.bans().map(({ key }) => key)).toEqual(['203.0.113.9']);
  expect(sink.accepted.length).toBe(3);
  // Times of shares never go back either: books kept by them lose no window.
  const times = sink.accepted.map(({ atMillis }) => atMillis);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  client.close();
  other.close();
});

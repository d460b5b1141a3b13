/** Memory over time with churn: a thousand miners come, send a thousand shares a second while jobs change, and go, again and again. */
import type { Bench } from '../harness.ts';
import type { Asked } from './asked.ts';

const CONNECTIONS = 1_000;
const ROUND_SECONDS = 8;
const JOB_MILLIS = 2_500;

export async function benchSoak(b: Bench, server: Asked, load: Asked, port: number, minutes: number): Promise<void> {
  const samples: number[] = [];
  let errors = 0;
  const change = setInterval(() => void server.ask('job'), JOB_MILLIS);
  for (const until = Date.now() + minutes * 60_000; Date.now() < until; ) {
    const version = samples.length % 2 === 0 ? 1 : 2;
    await load.ask('login', { port, count: CONNECTIONS, transport: 'tcp', version });
    // The load speaks v1 when it sends shares.
    if (version === 1)
      errors += (await load.ask<{ errors: number }>('steady', { perSecond: 1_000, seconds: ROUND_SECONDS })).errors;
    await load.ask('close');
    samples.push(await server.ask<number>('memory'));
  }
  clearInterval(change);
  const part = Math.max(1, Math.floor(samples.length / 3));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length / 2 ** 20;
  b.note(
    `soak of ${minutes} min: ${samples.length * CONNECTIONS} connections came and went, ${errors} shares refused, ` +
      `the highest ${Math.round(Math.max(...samples) / 2 ** 20)} MiB`,
  );
  b.figure('soak-memory-first-third', mean(samples.slice(0, part)), 'MiB');
  b.figure('soak-memory-middle-third', mean(samples.slice(part, 2 * part)), 'MiB');
  b.figure('soak-memory-last-third', mean(samples.slice(-part)), 'MiB');
}

/** Jobs every 2.5 s, 200 ms of added latency: almost nothing is stale, because work on an older anchor still earns. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { count } from '../level.ts';
import { lasts } from '../watch/limits.ts';
import { startBed } from './bed.ts';
import { withLatency } from './latency.ts';
import { addressOf, V1Client } from './stratum-client.ts';

test(
  'stale rate with latency is at most 0.1 %',
  lasts(120, 'it mines until thousands of shares are judged'),
  async () => {
    const seconds = count({ full: 15, deep: 300 });
    const { port, source, verifier } = await startBed({ threads: 1 });
    const far = await withLatency(port, 100);
    const clients = await Promise.all(Array.from({ length: 20 }, () => V1Client.open(far)));
    await Promise.all(clients.map((client, i) => client.login(`${addressOf(i)}.far`, 'd=1')));
    const timer = setInterval(() => source.cut(), 2_500);
    const until = Date.now() + seconds * 1_000;
    const enough = 600;
    let [sent, stale, other] = [0, 0, 0];
    await Promise.all(
      clients.map(async (client) => {
        for (let i = 0; Date.now() < until || sent < enough; i++) {
          // At a work of 1 every nonce is a share.
          const nonce = Uint8Array.of(i & 255, i >> 8, 7, 7, 7, 7, ...client.prefix);
          const code = await client.submitCode(client.jobs.at(-1)!.jobId, nonce);
          sent++;
          if (code === 21) stale++;
          else if (code !== 0) other++;
          await sleep(5);
        }
      }),
    );
    clearInterval(timer);
    expect(verifier.queued).toBe(0);
    expect(other).toBe(0);
    expect(stale / sent).toBeLessThanOrEqual(0.001);
    for (const client of clients) client.close();
  },
);

/** The client over simulated hours: a pool that is gone, one that comes and goes, a machine that sleeps. No clock but the test's. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PoolClient } from '../../miner/client/pool-client.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import type { PoolJob, Verdict } from '../../miner/client/session-events.ts';
import type { TransportEvents } from '../../miner/client/transport.ts';
import { WireV1 } from '../../miner/client/wire-v1.ts';
import { WireV2 } from '../../miner/client/wire-v2.ts';
import { type MinerErrorCode, refusal } from '../../miner/miner-error.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest } from '../../protocol/stratum/v1-request.ts';
import { count, seed } from '../level.ts';
import { arbitraryInput } from '../protocol/fuzz.ts';
import { MINER_ADDRESS, PoolFixture } from './pool-fixture.ts';
import { sessionOptions } from './session-options.ts';

const SESSION = 'ab'.repeat(16);

/** Servers that answer at once, in this thread; `isUp` says whether they are there. */
function simulate(
  isUp: (pool: number, now: number) => boolean,
  pools = 1,
  random = () => 0.5,
  away: MinerErrorCode = 'pool_unreachable',
) {
  const maker = new PoolFixture();
  let now = 0;
  let tick: () => void = () => undefined;
  const open: { pool: number; events: TransportEvents; closed: boolean; loggedIn: boolean }[] = [];
  const jobs: { at: number; job: PoolJob | undefined }[] = [];
  const verdicts: Verdict[] = [];
  let attempts = 0;
  const client = new PoolClient(
    {
      pools: Array.from({ length: pools }, (_, i) => parsePoolUrl(`stratum+tcp://pool:${i + 1}`)),
      session: sessionOptions(),
    },
    { onJob: (job) => jobs.push({ at: now, job }), onVerdict: (_share, verdict) => verdicts.push(verdict) },
    {
      now: () => now,
      random,
      note: () => undefined,
      every: (_millis, act) => {
        tick = act;
        return () => undefined;
      },
      connect: ({ port }, events) => {
        const link = { pool: port - 1, events, closed: false, loggedIn: false };
        attempts++;
        open.push(link);
        const later: (() => void)[] = [() => (isUp(link.pool, now) ? events.onOpen() : close())];
        const close = () => {
          if (link.closed) return;
          link.closed = true;
          events.onClose(refusal(away, 'away'));
        };
        pending.push(later);
        return {
          send(data) {
            const request = decodeRequest(data as Uint8Array);
            if (request.kind === 'invalid') throw new Error(request.reason);
            const answer = (text: string) => later.push(() => events.onData(utf8(`${text}\n`)));
            if (request.method === 'mining.subscribe')
              answer(
                encodeResult(request.id, {
                  method: 'mining.subscribe',
                  result: {
                    session: SESSION,
                    noncePrefix: Uint8Array.of(1, link.pool),
                    network: 4,
                    server: 's',
                    pool: null,
                  },
                }),
              );
            else if (request.method === 'mining.authorize') {
              answer(
                encodeResult(request.id, {
                  method: 'mining.authorize',
                  result: { address: MINER_ADDRESS, worker: '' },
                }),
              );
              const job = maker.makeJob({ username: MINER_ADDRESS } as never);
              answer(encodeNotification({ method: 'mining.notify', params: job }));
              link.loggedIn = true;
            } else if (request.method === 'mining.ping') answer(encodeResult(request.id, { method: 'mining.ping' }));
          },
          close: () => {
            link.closed = true;
          },
        };
      },
    },
  );
  const pending: (() => void)[][] = [];
  client.start();
  const run = (until: number, step = 250): void => {
    while (now < until) {
      now += step;
      for (const link of open)
        if (!link.closed && !isUp(link.pool, now)) {
          link.closed = true;
          link.events.onClose(refusal(link.loggedIn ? 'pool_closed' : away, 'gone'));
        } else if (!link.closed && link.loggedIn && now % 60_000 === 0) {
          const job = maker.makeJob({ username: MINER_ADDRESS } as never);
          link.events.onData(utf8(`${encodeNotification({ method: 'mining.notify', params: job })}\n`));
        }
      for (let i = 0; i < pending.length; i++) {
        const queue = pending[i] as (() => void)[];
        while (queue.length > 0) (queue.shift() as () => void)();
      }
      tick();
    }
  };
  const sleep = (millis: number) => {
    now += millis;
  };
  return { client, run, sleep, jobs, verdicts, attempts: () => attempts };
}

const HOUR = 3_600_000;

test('a pool gone for an hour: work goes on for the grace of its jobs, attempts stay rare, and it is back within a minute', () => {
  const { client, run, jobs, attempts } = simulate((_, now) => now < 60_000 || now > 60_000 + HOUR);
  run(59_000);
  expect(client.state?.pool).toBe(0);
  run(60_000 + HOUR);
  expect(jobs.at(-1)).toMatchObject({ job: undefined });
  expect((jobs.at(-1)?.at as number) - 60_000).toBeGreaterThanOrEqual(30_000);
  expect((jobs.at(-1)?.at as number) - 60_000).toBeLessThan(31_000);
  expect(attempts()).toBeLessThan(100);
  run(60_000 + HOUR + 61_000);
  expect(client.state?.pool).toBe(0);
  expect(jobs.at(-1)?.job).toBeDefined();
});

test('a first pool that is away for a while is returned to within a minute, with work all the time', () => {
  const { client, run, jobs } = simulate((pool, now) => pool === 1 || now < 10_000 || now > 10_000 + HOUR, 2);
  run(20_000);
  expect(client.state?.pool).toBe(1);
  run(10_000 + HOUR);
  expect(client.state?.pool).toBe(1);
  run(10_000 + HOUR + 62_000);
  expect(client.state?.pool).toBe(0);
  expect(jobs.every(({ job }) => job !== undefined)).toBe(true);
});

test.each(['pool_down', 'pool_closed', 'pool_not_ready'] as const)(
  'a pool that was restarted (%s at the next try): no hash on its dead jobs after two seconds, and the next try is known',
  (away) => {
    const { client, run, jobs } = simulate(
      (_, now) => now < 60_000 || now > 90_000,
      1,
      () => 0.99,
      away,
    );
    run(59_000);
    expect(client.nextTryMillis).toBeUndefined();
    run(62_000);
    expect(jobs.at(-1)).toMatchObject({ job: undefined });
    expect(client.nextTryMillis).toBeGreaterThan(0);
    run(125_000);
    expect(jobs.at(-1)?.job).toBeDefined();
  },
);

test('a machine that slept for hours asks the pool and goes on', () => {
  const { client, run, sleep, attempts } = simulate(() => true);
  run(30_000);
  sleep(5 * HOUR);
  run(5 * HOUR + 60_000);
  expect(client.state?.pool).toBe(0);
  expect(attempts()).toBe(1);
});

test('whatever pools do, the client ends up at the first one that is there', () => {
  const outage = fc.record({
    pool: fc.nat({ max: 2 }),
    from: fc.nat({ max: 600_000 }),
    length: fc.integer({ min: 500, max: 300_000 }),
  });
  fc.assert(
    fc.property(
      fc.array(outage, { maxLength: 8 }),
      fc.nat({ max: 2 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (outages, first, random) => {
        const isUp = (pool: number, now: number): boolean =>
          now >= 900_000
            ? pool >= first
            : !outages.some((o) => o.pool === pool && now >= o.from && now < o.from + o.length);
        const { client, run } = simulate(isUp, 3, () => random);
        run(900_000 + 130_000, 500);
        expect(client.state?.pool).toBe(first);
      },
    ),
    { seed, numRuns: count({ quick: 5, full: 30, deep: 1_000 }) },
  );
});

test.each([
  ['v1 lines', () => new WireV1(false)],
  ['v1 frames', () => new WireV1(true)],
  ['v2 stream', () => new WireV2(false)],
  ['v2 frames', () => new WireV2(true)],
])('%s: what comes is a message or a refusal', (_, make) => {
  const maker = new PoolFixture();
  const line = utf8(
    `${encodeNotification({ method: 'mining.notify', params: maker.makeJob({ username: MINER_ADDRESS } as never) })}\n`,
  );
  fc.assert(
    fc.property(
      arbitraryInput([line, utf8('{"jsonrpc":"2.0","id":1,"result":{}}\n')]),
      fc.boolean(),
      (bytes, asText) => {
        try {
          make().receive(asText ? new TextDecoder().decode(bytes) : bytes, () => undefined);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      },
    ),
    { seed, numRuns: count({ quick: 200, full: 2_000, deep: 100_000 }) },
  );
});

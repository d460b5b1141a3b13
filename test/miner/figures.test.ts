/** Hash rates, the pool's view, the watchdog, back-off and pool order: pure decisions under clocks that misbehave. */
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BACKOFF, backoffMillis, LONGEST_WAIT_MILLIS, PoolOrder } from '../../miner/client/pool-order.ts';
import { followReconnect, parsePoolUrl, showEndpoint } from '../../miner/client/pool-url.ts';
import { AcceptedWork } from '../../miner/work/accepted-work.ts';
import { HashRate, showRate } from '../../miner/work/hash-rate.ts';
import { Throttle } from '../../miner/work/throttle.ts';
import { Watchdog } from '../../miner/work/watchdog.ts';
import { count, seed } from '../level.ts';

const runs = count({ quick: 100, full: 1_000, deep: 20_000 });

test('rates over 10 s, 60 s and 15 min follow the counter', () => {
  const rate = new HashRate();
  let hashes = 0;
  for (let second = 0; second <= 1_000; second++) {
    hashes += second <= 990 ? 100 : 1_000;
    rate.read(second * 1_000, hashes);
  }
  const { short, medium, long } = rate.rates(1_000_000);
  expect(short).toBeCloseTo(1_000, 5);
  expect(medium).toBeCloseTo((50 * 100 + 10 * 1_000) / 60, 5);
  expect(long).toBeCloseTo((890 * 100 + 10 * 1_000) / 900, 5);
});

test('no rate is ever negative or above what the counter did in its fastest second, whatever the clock does', () => {
  const step = fc.record({
    millis: fc.oneof(fc.integer({ min: 900, max: 2_000 }), fc.integer({ min: -10_000_000, max: 10_000_000 })),
    hashes: fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.constant(-1)),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const rate = new HashRate();
      let now = 0;
      let total = 0;
      for (const { millis, hashes } of steps) {
        now += millis;
        total = hashes < 0 ? 0 : total + hashes;
        rate.read(now, total);
        for (const value of Object.values(rate.rates(now))) {
          if (value === undefined) continue;
          expect(value).toBeGreaterThanOrEqual(0);
          // Readings closer than a second are merged, and a second holds at most two steps of 900 ms.
          expect(value).toBeLessThanOrEqual(3_400_000);
        }
      }
    }),
    { seed, numRuns: runs },
  );
});

test('a clock that jumps an hour leaves the rate as it was', () => {
  for (const jump of [3_600_000, -3_600_000]) {
    const rate = new HashRate();
    let now = 0;
    for (let i = 0; i < 65; i++) {
      now += i === 60 ? jump : 1_000;
      rate.read(now, i * 500);
    }
    expect(rate.rates(now).medium).toBeCloseTo(500, 5);
  }
});

test('rates are shown in four figures', () => {
  expect([0, 12.345, 999.96, 1_000, 547_123_456, undefined].map(showRate)).toEqual([
    '0.00 H/s',
    '12.3 H/s',
    '1.00 kH/s',
    '1.00 kH/s',
    '547.1 MH/s',
    '-',
  ]);
});

test('the pool-side rate is accepted work over time', () => {
  const work = new AcceptedWork();
  work.begin(0);
  for (let second = 1; second <= 600; second++) work.add(second * 1_000, 5_000n);
  expect(work.rate(600_000)).toBeCloseTo(5_000, 0);
  expect(work.rate(600_000 + 450_000)).toBeCloseTo(2_500, -1);
  expect(work.total).toBe(3_000_000n);
});

test('the pool-side rate is known after a minute, or with sixteen shares', () => {
  const [quick, slow] = [new AcceptedWork(), new AcceptedWork()];
  for (const work of [quick, slow]) work.begin(0);
  for (let share = 1; share <= 497; share++) quick.add(share * 40, 200n);
  expect(quick.rate(20_000)).toBeCloseTo(4_970, 0);
  for (let share = 1; share <= 15; share++) slow.add(share * 1_000, 200n);
  expect([slow.rate(59_999), slow.rate(60_000)]).toEqual([undefined, 50]);
});

test('the watchdog barks at a silent device only', () => {
  const dog = new Watchdog(30_000);
  for (let second = 0; second < 100; second++) expect(dog.check(second * 1_000, true, second)).toBe(false);
  for (let second = 100; second < 129; second++) expect(dog.check(second * 1_000, true, 99)).toBe(false);
  expect(dog.check(130_000, true, 99)).toBe(true);
  dog.reset();
  // Idle, paused or building; and a machine that slept for an hour.
  for (let second = 200; second < 300; second++) expect(dog.check(second * 1_000, false, 99)).toBe(false);
  expect(dog.check(3_900_000, true, 99)).toBe(false);
  expect(dog.check(0, true, 99)).toBe(false);
});

test('back-off doubles to a minute, at least half of it certain', () => {
  expect([1, 2, 3, 7, 50].map((failures) => backoffMillis(failures, 0))).toEqual([500, 1_000, 2_000, 30_000, 30_000]);
  fc.assert(
    fc.property(
      fc.nat({ max: 2_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, random) => {
        const wait = backoffMillis(failures, random);
        expect(wait).toBeGreaterThanOrEqual(BACKOFF.firstMillis / 2);
        expect(wait).toBeLessThanOrEqual(BACKOFF.lastMillis);
      },
    ),
    { seed, numRuns: runs },
  );
});

test('the first pool that may be tried is taken; a pool gone for an hour is tried once a minute', () => {
  const order = new PoolOrder(2);
  expect(order.choose(0)).toBe(0);
  order.failed(0, 0, 0.5);
  expect(order.choose(0)).toBe(1);
  let tries = 0;
  for (let now = 0; now < 3_600_000; now += 1_000)
    if (order.better(1, now) === 0) {
      tries++;
      order.failed(0, now, 0.99);
    }
  expect(tries).toBeLessThan(75);
  expect(tries).toBeGreaterThan(55);
  order.worked(0, 3_600_000);
  expect(order.choose(3_600_000)).toBe(0);
});

test('a pool that worked for a while starts again from one second; one that breaks each time does not', () => {
  const order = new PoolOrder(1);
  let now = 0;
  const waits = Array.from({ length: 8 }, () => {
    order.worked(0, now);
    order.failed(0, now, 0.99);
    const wait = order.wait(now);
    now += wait;
    return Math.round(wait / 1_000);
  });
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  order.worked(0, now);
  order.worked(0, now + BACKOFF.steadyMillis);
  order.failed(0, now + BACKOFF.steadyMillis, 0.99);
  expect(order.failures(0)).toBe(1);
});

test('no server can ask for a longer wait than two minutes, nor for a shorter one than the back-off', () => {
  const order = new PoolOrder(1);
  order.failed(0, 0, 0.5, 4_294_967_295);
  expect(order.wait(0)).toBe(LONGEST_WAIT_MILLIS);
  expect(order.moves(0, 0, 0.5, 4_294_967_295)).toBe(LONGEST_WAIT_MILLIS);
  expect(order.moves(0, 0, 0.5, 0)).toBe(backoffMillis(3, 0.5));
});

test.each([
  ['pool.example', 'stratum+tcp://pool.example:28710'],
  ['stratum+tcp://pool.example:1', 'stratum+tcp://pool.example:1'],
  ['stratum+ssl://[::1]:5', 'stratum+tls://[::1]:5'],
  ['stratum2+tcp://h:5', 'stratum2+tcp://h:5'],
  ['stratum+tls://h:5?protocol=v2', 'stratum2+tls://h:5'],
  ['ws://h:5/mine', 'ws://h:5/mine'],
  ['wss://h/mine?protocol=v2', 'wss://h:443/mine?protocol=v2'],
])('%s is %s', (text, shown) => {
  expect(showEndpoint(parsePoolUrl(text))).toBe(shown);
  expect(parsePoolUrl(shown)).toEqual(parsePoolUrl(text));
});

test.each([
  '',
  'http://h:1',
  'stratum+tcp://h:0',
  'stratum+tcp://h:70000',
  'stratum+tcp://h/x',
  'stratum2+tcp://h?protocol=v1',
  'ws://h?x=1',
  'a b',
  'stratum+tcp://u@h:1',
])("'%s' is no pool address", (text) =>
  expect(() => parsePoolUrl(text)).toThrow(expect.objectContaining({ code: 'pool_url' })),
);

test('another host is followed only over TLS', () => {
  const wish = { host: 'other', port: 7, waitMillis: 0 };
  expect(followReconnect(parsePoolUrl('stratum+tcp://h:1'), wish)).toMatchObject({ code: 'reconnect_refused' });
  expect(followReconnect(parsePoolUrl('ws://h:1'), wish)).toMatchObject({ code: 'reconnect_refused' });
  expect(followReconnect(parsePoolUrl('stratum+tls://h:1'), wish)).toMatchObject({ host: 'other', port: 7 });
  expect(followReconnect(parsePoolUrl('stratum+tcp://h:1'), { ...wish, host: '' })).toMatchObject({
    host: 'h',
    port: 7,
  });
  expect(followReconnect(parsePoolUrl('stratum+tcp://h:1'), { ...wish, host: 'h', port: 0 })).toMatchObject({
    port: 1,
  });
});

test('a throttle works its part of the time and never rests at full', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let working = false;
  const target = {
    rest: () => {
      working = false;
    },
    work: () => {
      working = true;
    },
  };
  const throttle = new Throttle(target, 0.2);
  const share = (millis: number): number => {
    let worked = 0;
    for (let i = 0; i < millis; i++) {
      vi.advanceTimersByTime(1);
      if (working) worked++;
    }
    return worked / millis;
  };
  throttle.start();
  expect(share(10_000)).toBeCloseTo(0.2, 1);
  throttle.part = 0.7;
  expect(share(10_000)).toBeCloseTo(0.7, 1);
  throttle.part = 1;
  expect(share(1_000)).toBe(1);
});

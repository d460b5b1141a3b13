/** The system's clock against the monotonic one: what is a jump, what is reported and which time counts. */
import { expect, test } from 'vitest';
import { laterMillis, steadyMillis } from '../../runtime/clock/clock.ts';
import { type ClockNews, SETTLE_MILLIS, WatchedClock } from '../../runtime/clock/watched-clock.ts';

const START = 1_800_000_000_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Both clocks in the test's hands. */
function rig() {
  const time = { mono: 5_000, wall: START, slow: 0 };
  const news: ClockNews[] = [];
  const clock = new WatchedClock({
    wall: () => {
      time.mono += time.slow;
      time.wall += time.slow;
      return time.wall;
    },
    monotonic: () => time.mono,
    onNews: (entry) => news.push(entry),
  });
  const pass = (millis: number): void => {
    for (let left = millis; left > 0; left -= 1_000) {
      time.mono += Math.min(1_000, left);
      time.wall += Math.min(1_000, left);
      clock.now();
    }
  };
  return { time, news, clock, pass };
}

for (const millis of [8_000, HOUR, 2 * DAY, -8_000, -HOUR, -2 * DAY])
  test(`a jump by ${millis / 1_000} s: told once, forgotten when it is over soon, taken over when it lasts`, () => {
    const { time, news, clock, pass } = rig();
    pass(10_000);
    time.wall += millis;
    pass(8_000);
    expect(clock.now()).toBe(START + 18_000);
    expect(news).toEqual([{ kind: 'jumped', millis }]);
    time.wall -= millis;
    pass(10_000);
    expect(clock.now()).toBe(START + 28_000);
    expect(news).toEqual([
      { kind: 'jumped', millis },
      { kind: 'returned', millis: 0 },
    ]);
    time.wall += millis;
    pass(SETTLE_MILLIS + 2_000);
    expect(clock.now()).toBe(time.wall);
    expect(news.slice(2)).toEqual([
      { kind: 'jumped', millis },
      { kind: 'settled', millis },
    ]);
    pass(100_000);
    expect(news.length).toBe(4);
  });

test('corrections of less than two seconds are followed at once, and are no news', () => {
  const { time, news, clock, pass } = rig();
  for (const step of [1_500, -1_900, 300, -1]) {
    time.wall += step;
    expect(clock.now()).toBe(time.wall);
    pass(3_000);
  }
  expect(news).toEqual([]);
});

test('a jump on top of a jump is another one', () => {
  const { time, news, clock, pass } = rig();
  time.wall += HOUR;
  pass(30_000);
  time.wall += HOUR;
  pass(SETTLE_MILLIS - 5_000);
  expect(clock.now()).toBe(time.wall - 2 * HOUR);
  pass(10_000);
  expect(clock.now()).toBe(time.wall);
  expect(news).toEqual([
    { kind: 'jumped', millis: HOUR },
    { kind: 'jumped', millis: 2 * HOUR },
    { kind: 'settled', millis: 2 * HOUR },
  ]);
});

test('a reading that the processor interrupted for seconds is not taken for a jump', () => {
  const { time, news, clock } = rig();
  time.slow = 5_000;
  for (let i = 0; i < 5; i++) clock.now();
  time.slow = 0;
  expect(clock.now()).toBe(time.wall);
  expect(news).toEqual([]);
});

test('the later of both clocks', () => {
  const before = steadyMillis();
  expect(laterMillis()).toBeGreaterThanOrEqual(before - 1);
  expect(Number.isInteger(laterMillis())).toBe(true);
});

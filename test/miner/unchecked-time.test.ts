/** Since when a part of the books could not be checked is known over a restart of the miner. */
import { expect, test } from 'vitest';
import { UncheckedTime } from '../../miner/books/unchecked-time.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { Played, PlayedPool } from './played-pool.ts';

const HOUR = 3_600_000;

test('the watch over a pool keeps it in its file', async () => {
  const silent = () => {
    throw new PoolSilence('status 503');
  };
  const played = new Played(new PlayedPool({ answers: silent, lists: silent }));
  for (let hours = 0; hours < 3; hours++) {
    await played.watch.check().catch(() => undefined);
    expect(played.watch.isChanged).toBe(true);
    played.restart(played.watch.save());
    played.now += HOUR / 2;
  }
  await played.watch.check().catch(() => undefined);
  expect(
    played.warnings
      .filter((text) => text.includes('CANNOT BE CHECKED'))
      .map((text) => text.split(': ')[0])
      .sort(),
  ).toEqual(['THE POOL’S BOOKS CANNOT BE CHECKED lists', 'THE POOL’S BOOKS CANNOT BE CHECKED receipts']);
});

function started(clock: { wall: number }) {
  const warned: Readonly<Record<string, unknown>>[] = [];
  const from = clock.wall;
  const time = new UncheckedTime({
    warn: (_, fields) => void warned.push(fields),
    // A new process begins its steady clock anew.
    nowMillis: () => clock.wall - from,
    wallMillis: () => clock.wall,
  });
  return { time, warned };
}

test('a miner that is restarted every half hour is warned after an hour all the same, with the first time, and told when it is over', () => {
  const clock = { wall: Date.UTC(2026, 0, 1) };
  const since = new Date(clock.wall).toISOString();
  const warned: Readonly<Record<string, unknown>>[] = [];
  let saved: unknown;
  const run = (why: string | undefined) => {
    const { time, warned: own } = started(clock);
    time.restore(saved === undefined ? undefined : JSON.parse(JSON.stringify(saved)));
    time.note('lists', why);
    clock.wall += HOUR / 2;
    time.note('lists', why);
    saved = time.save();
    warned.push(...own);
  };
  run('status 503');
  expect(warned).toEqual([]);
  run('status 503');
  expect(warned).toEqual([{ part: 'lists', since, why: 'status 503' }]);
  // Again when it has doubled, and not before.
  run('status 503');
  expect(warned).toHaveLength(1);
  run('status 503');
  expect(warned).toHaveLength(2);
  run(undefined);
  expect(warned.at(-1)).toEqual({ part: 'lists', since });
  run(undefined);
  expect(warned).toHaveLength(3);
});

test('a state of any other form, and a clock that was set back, warn of nothing', () => {
  const clock = { wall: Date.UTC(2026, 0, 1) };
  const { time, warned } = started(clock);
  for (const wrong of [
    null,
    'x',
    [['lists']],
    [['x', 1, HOUR]],
    [['lists', -1, HOUR]],
    [['lists', 1e300, HOUR]],
    [['lists', 1, 0]],
  ])
    time.restore(wrong);
  expect(time.save()).toEqual([]);
  time.restore([['lists', clock.wall + 9 * HOUR, HOUR]]);
  time.note('lists', 'status 503');
  expect(warned).toEqual([]);
});

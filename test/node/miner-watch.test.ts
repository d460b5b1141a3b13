/** The warning that payments wait for a miner: after a minute without a work block, and not often. */
import { expect, test } from 'vitest';
import { MinerWatch } from '../../node/reports/miner-watch.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';

test('a warning when transactions wait and no block comes, at most every 15 minutes', () => {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), close: () => undefined, flush: () => undefined };
  const log = createLogger('node', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: () => 0 });
  let [waiting, now] = [0, 0];
  const watch = new MinerWatch({ waiting: () => waiting, steady: () => now, log });
  const after = (seconds: number): number => {
    now += 1000 * seconds;
    watch.tick();
    return lines.length;
  };
  expect(after(1000)).toBe(0);
  waiting = 2;
  expect([after(10), after(59)]).toEqual([0, 0]);
  expect(after(1)).toBe(1);
  expect(lines[0]).toMatch(/WARN .*transactions wait and no work block comes.*transactions=2 seconds=60/);
  expect([after(60), after(839)]).toEqual([1, 1]);
  expect(after(1)).toBe(2);
  watch.block();
  expect([after(1000), after(59), after(1)]).toEqual([2, 2, 3]);
  waiting = 0;
  watch.tick();
  waiting = 1;
  expect(after(1000)).toBe(3);
});

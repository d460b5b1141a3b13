/** The log of a miner stays short: one line a minute and kind, with what was left out. */
import { expect, test } from 'vitest';
import { AcceptedLine, VERBOSE_MILLIS } from '../../miner/terminal/accepted-line.ts';
import { LINE_LIMIT, LineLimit } from '../../miner/terminal/line-limit.ts';

function setup() {
  const lines: string[] = [];
  let now = 0;
  const write = (level: string, message: string, fields: object) =>
    void lines.push(`${now / 1_000} ${level} ${message} ${Object.values(fields).join(' ')}`.trim());
  const clock = () => now;
  return {
    lines,
    limit: new LineLimit(write, clock),
    accepted: new AcceptedLine(write, clock),
    verbose: new AcceptedLine(write, clock, true),
    to: (millis: number) => {
      now = millis;
    },
  };
}

test('the first line at once, then one a minute with the number of those held back', () => {
  const { lines, limit, to } = setup();
  for (let second = 0; second <= 180; second++) {
    to(second * 1_000);
    if (second <= 90) for (let i = 0; i < 10; i++) limit.note('warn', 'it happened', { code: 'x', n: second });
    limit.tick();
  }
  expect(lines).toEqual(['0 warn it happened x 0', '60 warn it happened x 60 600', '120 warn it happened x 90 309']);
  to(400_000);
  limit.note('warn', 'it happened', { code: 'x', n: 1 });
  expect(lines.at(-1)).toBe('400 warn it happened x 1');
});

test('kinds differ by message, pool, device and code, not by what else they say', () => {
  const { lines, limit } = setup();
  for (let i = 0; i < 50; i++)
    for (const pool of ['a', 'b']) limit.note('warn', 'pool lost', { pool, code: 'pool_closed', reason: `text ${i}` });
  expect(lines.length).toBe(2);
});

test('a session that is resumed is another kind than one that is not, and what is held back comes at the end', () => {
  const { lines, limit, to } = setup();
  for (const [second, resumed] of [false, true, true, true].entries()) {
    to(second * 1_000);
    limit.note('info', 'connected', { pool: 'a', resumed });
  }
  const soon = ['0 info connected a false', '1 info connected a true'];
  expect(lines).toEqual(soon);
  limit.end();
  expect(lines).toEqual([...soon, '3 info connected a true 2']);
  limit.end();
  expect(lines).toHaveLength(3);
});

test('memory is bounded, and a clock that is set back silences nothing', () => {
  const { lines, limit, to } = setup();
  for (let i = 0; i < 10 * LINE_LIMIT.kinds; i++) limit.note('info', 'kind', { pool: i });
  limit.note('info', 'last', {});
  const before = lines.length;
  to(-3_600_000);
  limit.note('info', 'last', {});
  expect(lines.length).toBe(before + 1);
});

test('accepted shares are summed up', () => {
  const { lines, accepted, to } = setup();
  for (let second = 0; second < 125; second++) {
    to(second * 1_000);
    for (let i = 0; i < 100; i++) accepted.add(0, 7n);
    accepted.tick();
  }
  expect(lines[0]).toBe('0 info share accepted 0 7');
  expect(lines.length).toBe(3);
  expect(lines[1]).toMatch(/^60 info shares accepted 6000 42000$/);
});

test('with -v every share has its line, unless they come faster than a person reads', () => {
  const { lines, verbose, to } = setup();
  for (let second = 0; second < 10; second++) {
    to(second * 1_000);
    verbose.add(0, 7n);
    to(second * 1_000 + 500);
    verbose.add(1, 8n);
  }
  expect(lines).toHaveLength(20);
  expect(lines.slice(0, 2)).toEqual(['0 info share accepted 0 7', '0.5 info share accepted 1 8']);
  lines.length = 0;
  for (let millis = 20_000; millis < 21_000; millis++) {
    to(millis);
    verbose.add(0, 1n);
  }
  to(22_000);
  verbose.tick();
  expect(lines.length).toBeLessThanOrEqual(1_000 / VERBOSE_MILLIS + 2);
  const counted = lines.map((line) => Number(/shares accepted (\d+)/.exec(line)?.[1] ?? 1));
  expect(counted.reduce((sum, count) => sum + count, 0)).toBe(1_000);
});

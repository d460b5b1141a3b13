/** What the log says of a task of the books that fails for a while. */
import { expect, test } from 'vitest';
import { ToldWait } from '../../pool/accountant/told-wait.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';

function told() {
  const lines: string[] = [];
  const clock = { millis: 0 };
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('pool', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: () => 0 });
  const wait = new ToldWait('payouts', { log, now: () => clock.millis });
  const said = () => lines.splice(0).map((line) => /the books \w+( on)?/.exec(line)?.[0]);
  return { wait, clock, said };
}

test('books that waited say when they go on, and books that did not wait say nothing', () => {
  const { wait, said } = told();
  wait.works();
  expect(said()).toEqual([]);
  wait.failed(new Error('the database is away'));
  wait.failed(new Error('the database is away'));
  wait.works();
  wait.works();
  expect(said()).toEqual(['the books wait', 'the books go on']);
});

test('another reason is told at once, the same one once a minute, also where the task works in between', () => {
  const { wait, clock, said } = told();
  for (; clock.millis < 60_000; clock.millis += 1_000) {
    wait.failed(new Error('a'));
    wait.works();
  }
  expect(said()).toEqual(['the books wait', 'the books go on']);
  wait.failed(new Error('a'));
  wait.failed(new Error('b'));
  expect(said()).toEqual(['the books wait', 'the books wait']);
});

/** The filter in front of the request table: a used id is never taken for a new one, and few new ones for used. */
import { expect, test } from 'vitest';
import { RequestFilter } from '../../../wallet/state/request-filter.ts';
import { count } from '../../level.ts';

const USED = count({ quick: 20_000, full: 100_000, deep: 1_000_000 });

test.each([
  ['numbers', (i: number) => `${i}`],
  ['payouts', (i: number) => `payout-${i}-0`],
  ['texts beyond ASCII', (i: number) => `zahlung №${i} für 鉱夫`],
])('every used id is known, and new ones nearly never are: %s', (_, name) => {
  const filter = new RequestFilter(USED);
  for (let i = 0; i < USED; i++) filter.add(name(i));
  for (let i = 0; i < USED; i++) if (!filter.mayHave(name(i))) expect.fail(`${name(i)} was forgotten`);
  let mistaken = 0;
  for (let i = USED; i < 2 * USED; i++) if (filter.mayHave(name(i))) mistaken++;
  expect(mistaken).toBeLessThan(USED / 100);
});

test('more ids than it was made for are still all known', () => {
  const filter = new RequestFilter(0);
  const many = 10 * USED;
  for (let i = 0; i < many; i++) filter.add(`r${i}`);
  for (let i = 0; i < many; i++) if (!filter.mayHave(`r${i}`)) expect.fail(`r${i} was forgotten`);
});

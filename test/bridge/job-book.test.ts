import { expect, test } from 'vitest';
import {
  jobIdOf,
  MAX_REVISION,
  MAX_SERIAL,
  revisionOf,
  serialOf,
  TemplateShelf,
} from '../../bridge/session/job-book.ts';

const life = { graceMillis: 30_000, memoryMillis: 120_000 };
const template = (registrationWindowEnd: number) => ({ registrationWindowEnd });

test('a job id holds serial and revision in 32 bits', () => {
  expect(jobIdOf(MAX_SERIAL, MAX_REVISION)).toBe(0xffffffff);
  expect(serialOf(jobIdOf(1234, 5))).toBe(1234);
  expect(revisionOf(jobIdOf(1234, 5))).toBe(5);
});

test('a job is good until 30 s after a newer one superseded it, however long the node is away', () => {
  const shelf = new TemplateShelf(life);
  shelf.add(new Map([[1, template(196)]]), 0);
  expect(shelf.find(1, 100, 3_600_000).state).toBe('good');
  shelf.add(new Map([[2, template(197)]]), 10_000);
  expect(shelf.find(1, 100, 40_000).state).toBe('good');
  expect(shelf.find(1, 100, 40_001).state).toBe('expired');
  shelf.add(new Map([[3, template(198)]]), 170_000);
  expect(shelf.find(1, 100, 170_000).state).toBe('unknown');
  expect(shelf.oldest).toBe(2);
});

test('a job ends with its window', () => {
  const shelf = new TemplateShelf(life);
  shelf.add(new Map([[1, template(196)]]), 0);
  expect(shelf.find(1, 195, 0).state).toBe('good');
  expect(shelf.find(1, 196, 0).state).toBe('expired');
});

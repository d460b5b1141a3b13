import { expect, test } from 'vitest';
import { JobLog, jobIdOf, MAX_REVISION, MAX_SERIAL, serialOf, TemplateShelf } from '../../bridge/job-book.ts';

const life = { graceMillis: 30_000, memoryMillis: 120_000 };
const template = (registrationWindowEnd: number) => ({ registrationWindowEnd });
const nonce = (value: number) => Uint8Array.of(value, 0, 0, 0, 0, 0, 0, 0);

test('a job id holds serial and revision in 32 bits', () => {
  expect(jobIdOf(MAX_SERIAL, MAX_REVISION)).toBe(0xffffffff);
  expect(serialOf(jobIdOf(1234, 5))).toBe(1234);
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

test('terms are those of the moment the job was sent', () => {
  const log = new JobLog();
  log.send(jobIdOf(1, 0), 0, 100n);
  log.send(jobIdOf(2, 0), 0, 100n);
  log.send(jobIdOf(2, 1), 0, 900n);
  log.send(jobIdOf(3, 0), 1, 900n);
  expect(log.termsOf(jobIdOf(2, 0))?.shareWork).toBe(100n);
  expect(log.termsOf(jobIdOf(2, 1))?.shareWork).toBe(900n);
  expect(log.termsOf(jobIdOf(3, 0))?.generation).toBe(1);
  expect(log.termsOf(jobIdOf(0, 0))).toBeUndefined();
  log.forget(2);
  expect(log.termsOf(jobIdOf(2, 0))?.shareWork).toBe(100n);
  log.forget(3);
  expect(log.termsOf(jobIdOf(3, 0))?.generation).toBe(1);
  expect(log.state().terms.length).toBe(1);
});

test('a nonce is judged once per job, also after the session moved', () => {
  const log = new JobLog();
  log.send(64, 0, 1n);
  expect(log.judge(64, nonce(7))).toBe(true);
  expect(log.judge(64, nonce(7))).toBe(false);
  expect(log.judge(65, nonce(7))).toBe(true);
  const moved = JobLog.restore(structuredClone(log.state()));
  expect(moved.judge(64, nonce(7))).toBe(false);
  moved.unjudge(64, nonce(7));
  expect(moved.judge(64, nonce(7))).toBe(true);
  for (let i = 0; i < 300; i++) expect(moved.judge(64, Uint8Array.of(i & 255, i >> 8, 1, 2, 3, 4, 0, 0))).toBe(true);
  for (let i = 0; i < 300; i++) expect(moved.judge(64, Uint8Array.of(i & 255, i >> 8, 1, 2, 3, 4, 0, 0))).toBe(false);
  moved.unjudge(64, nonce(7));
  expect(moved.judge(64, nonce(7))).toBe(true);
  moved.forget(2);
  expect(moved.state().seen.length).toBe(0);
});

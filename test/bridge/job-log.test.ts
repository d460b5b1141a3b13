import { expect, test } from 'vitest';
import { jobIdOf, MAX_REVISION } from '../../bridge/session/job-book.ts';
import { JobLog } from '../../bridge/session/job-log.ts';

const nonce = (value: number) => Uint8Array.of(value & 255, (value >> 8) & 255, 0, 0, 0, 0, 0, 0);

/** As a session does it: what is fresh is marked. */
const judge = (log: JobLog, ...share: Parameters<JobLog['known']>): ReturnType<JobLog['known']> => {
  const known = log.known(...share);
  if (known === 'fresh') log.judge(...share);
  return known;
};

test('an id is known when it was sent, and no other is', () => {
  const log = new JobLog();
  const first = log.begin(0, 100n);
  expect(log.send(1, undefined, first)).toBe(jobIdOf(1, 0));
  expect(log.send(5, 1, first)).toBe(jobIdOf(5, 0));
  const second = log.begin(1, 900n);
  expect(log.send(5, 1, second)).toBe(jobIdOf(5, 1));
  // The templates 9 and 13 were passed over: a slow reader.
  expect(log.send(17, 13, second)).toBe(jobIdOf(17, 0));
  expect(log.send(21, 17, second)).toBe(jobIdOf(21, 0));
  const known = new Map([
    [jobIdOf(1, 0), first],
    [jobIdOf(5, 0), first],
    [jobIdOf(5, 1), second],
    [jobIdOf(17, 0), second],
    [jobIdOf(21, 0), second],
  ]);
  // Serials between those of a run belong to other draws of the same templates: the shelf tells them apart.
  for (const serial of [0, 1, 5, 9, 13, 17, 21, 25])
    for (let revision = 0; revision <= MAX_REVISION; revision++) {
      const jobId = jobIdOf(serial, revision);
      expect(log.find(jobId), `${serial}/${revision}`).toBe(known.get(jobId));
    }
});

test('a header goes out once; a template has no more jobs than ids; an older template than the last has none', () => {
  const log = new JobLog();
  const terms = log.begin(0, 1n);
  log.send(4, undefined, terms);
  expect([log.isSent(4, terms), log.isSent(8, terms)]).toEqual([true, false]);
  expect(() => log.send(4, undefined, terms)).toThrow(/once/);
  for (let i = 1; i <= MAX_REVISION; i++) expect(log.send(4, undefined, log.begin(i, 1n))).toBe(jobIdOf(4, i));
  expect(log.send(4, undefined, log.begin(64, 1n))).toBeUndefined();
  expect(log.send(3, undefined, log.begin(65, 1n))).toBeUndefined();
  expect(log.lastJobId).toBe(jobIdOf(4, MAX_REVISION));
});

test('terms and spent bodies are remembered as long as a job on them is known', () => {
  const log = new JobLog();
  const [old, current] = [log.begin(0, 100n), log.begin(1, 900n)];
  log.send(1, undefined, old);
  log.send(2, 1, old);
  log.send(2, 1, current);
  old.isSpent = true;
  log.forget(2, [current]);
  expect(log.find(jobIdOf(2, 0))).toMatchObject({ shareWork: 100n, isSpent: true });
  expect(JobLog.restore(structuredClone(log.state())).find(jobIdOf(2, 0))).toMatchObject({ isSpent: true });
  log.forget(3, [current]);
  expect(log.find(jobIdOf(2, 0))).toBeUndefined();
  expect(log.state().terms).toMatchObject([{ generation: 1 }]);
});

test('a nonce is judged once per header, also after the session moved', () => {
  const log = new JobLog();
  const [terms, other] = [log.begin(0, 1n), log.begin(1, 1n)];
  log.send(1, undefined, terms);
  log.send(1, undefined, other);
  expect(judge(log, terms, 1, nonce(7))).toBe('fresh');
  expect(judge(log, terms, 1, nonce(7))).toBe('again');
  expect(judge(log, other, 1, nonce(7))).toBe('fresh');
  expect(judge(log, terms, 2, nonce(7))).toBe('fresh');
  const moved = JobLog.restore(structuredClone(log.state()));
  expect(moved.judged).toBe(3);
  const again = moved.find(jobIdOf(1, 0))!;
  expect(judge(moved, again, 1, nonce(7))).toBe('again');
  moved.unjudge(again, 1, nonce(7));
  expect(judge(moved, again, 1, nonce(7))).toBe('fresh');
  for (const expected of ['fresh', 'again'])
    for (let i = 300; i < 600; i++) expect(judge(moved, again, 1, nonce(i))).toBe(expected);
  moved.unjudge(again, 1, nonce(7));
  expect(judge(moved, again, 1, nonce(7))).toBe('fresh');
  expect(moved.judged).toBe(303);
  moved.forget(2, [again]);
  expect(moved.judged).toBe(1);
  moved.forget(3, [again]);
  expect(moved.judged).toBe(0);
});

test.each([1, 2, 3])(
  'of %i judged nonces one that the verifier had no time for may come again, and the others do not count twice',
  (count) => {
    const log = new JobLog();
    const terms = log.begin(0, 1n);
    log.send(1, undefined, terms);
    const nonces = Array.from({ length: count }, (_, i) => nonce(i));
    for (const each of nonces) expect(judge(log, terms, 1, each)).toBe('fresh');
    log.unjudge(terms, 1, nonces[0]!);
    expect(log.judged).toBe(count - 1);
    expect(nonces.map((each) => judge(log, terms, 1, each))).toEqual(
      nonces.map((_, i) => (i === 0 ? 'fresh' : 'again')),
    );
  },
);

test('what is remembered is bounded, and what is beyond it is refused, not forgotten', () => {
  const log = new JobLog(100);
  const terms = log.begin(0, 1n);
  log.send(1, undefined, terms);
  for (let i = 0; i < 100; i++) expect(judge(log, terms, 1, nonce(i))).toBe('fresh');
  expect(judge(log, terms, 1, nonce(100))).toBe('full');
  for (let i = 0; i < 100; i++) expect(judge(log, terms, 1, nonce(i))).toBe('again');
  log.unjudge(terms, 1, nonce(5));
  expect(judge(log, terms, 1, nonce(100))).toBe('fresh');
  expect(judge(log, terms, 1, nonce(5))).toBe('full');
  log.send(2, 1, terms);
  log.forget(2, [terms]);
  expect(judge(log, terms, 2, nonce(5))).toBe('fresh');
});

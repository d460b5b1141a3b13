/** The audit that an operator starts: one at a time, how far it is, how it ends, and that it ends with the pool. */
import { expect, test } from 'vitest';
import { BookAudit } from '../../pool/api/operator/book-audit.ts';
import { audit as auditDocument } from '../../pool/api/operator/operator-documents.ts';
import type { RunAudit } from '../../pool/api/operator/run-audit.ts';
import type { AuditReport } from '../../pool/audit/audit.ts';
import { check } from '../../protocol/api/schema.ts';

const REPORT: AuditReport = {
  slices: 7,
  lists: 3,
  accounts: 2,
  ledger: true,
  wallet: false,
  differences: 0,
  unread: 0,
  not_checked: [],
  owed: [],
  findings: [],
};

function bed() {
  const runs: (Parameters<RunAudit> extends [infer P, infer S] ? { progress: P; signal: S } : never)[] = [];
  const ends: PromiseWithResolvers<AuditReport>[] = [];
  const notes: unknown[] = [];
  const warned: string[] = [];
  const clock = { now: 1_000 };
  const audit = new BookAudit({
    now: () => clock.now,
    warn: (message) => void warned.push(message),
    run: (progress, signal) => {
      const end = Promise.withResolvers<AuditReport>();
      runs.push({ progress, signal });
      ends.push(end);
      signal.addEventListener('abort', () => end.reject(new Error('ended with 1')));
      return end.promise;
    },
  });
  const note = async (action: string, details: object) => void notes.push([action, details]);
  /** Every state fits the document of the route. */
  const state = () => {
    expect(check(auditDocument, { api_version: 1, ...audit.state })).toBeUndefined();
    return audit.state;
  };
  return { audit, runs, ends, notes, warned, clock, note, state };
}

/** What is resolved is heard of some turns later. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('an audit runs once however often it is started, tells how far it is, and what it found is kept until the next one', async () => {
  const { audit, runs, ends, notes, clock, note, state } = bed();
  expect(state()).toMatchObject({ state: 'idle', started_millis: null, result: null });
  expect(audit.start(note)).toMatchObject({ state: 'running', started_millis: 1_000, progress: null });
  clock.now = 2_000;
  expect(audit.start(note)).toMatchObject({ state: 'running', started_millis: 1_000 });
  await settled();
  expect(runs).toHaveLength(1);
  runs[0]?.progress('slices', 2, 7);
  expect(state().progress).toEqual({ part: 'slices', done: 2, of: 7 });
  runs[0]?.progress('accounts', 0);
  expect(state().progress).toEqual({ part: 'accounts', done: 0, of: null });
  const finding = { what: 'slice 3', books: 'x'.repeat(5_000), computed: '1', remedy: 'restore it' };
  ends[0]?.resolve({
    ...REPORT,
    differences: 30_000,
    findings: Array.from({ length: 10_000 }, () => finding),
    not_checked: Array.from({ length: 50 }, (_, i) => `payout ${i}`),
  });
  await settled();
  const { result, ...rest } = state();
  expect(rest).toEqual({ state: 'done', started_millis: 1_000, ended_millis: 2_000, progress: null, reason: null });
  expect(result).toMatchObject({ slices: 7, wallet: false, differences: 30_000, not_checked: { count: 50 } });
  expect([result?.findings.length, result?.not_checked.first.length]).toEqual([20, 20]);
  expect(JSON.stringify(result).length).toBeLessThan(20_000);
  expect(notes).toEqual([
    ['audit', {}],
    ['audit_end', { differences: 30_000, not_checked: 50, owed: 0 }],
  ]);
  expect(audit.start(note)).toMatchObject({ state: 'running', started_millis: 2_000, result: null });
  await settled();
  ends[1]?.resolve(REPORT);
  await settled();
  expect(state()).toMatchObject({ state: 'done', result: { differences: 0, findings: [] } });
});

test('an audit that fails says why and can be started again; one whose start cannot be noted is not made', async () => {
  const { audit, runs, ends, notes, warned, note, state } = bed();
  audit.start(note);
  await settled();
  ends[0]?.reject(new Error('the database cannot be used'));
  await settled();
  expect(state()).toMatchObject({ state: 'failed', reason: 'the database cannot be used', result: null });
  expect(notes.at(-1)).toEqual(['audit_end', { failed: 'the database cannot be used' }]);
  audit.start(() => Promise.reject(new Error('no connection')));
  await settled();
  expect(state()).toMatchObject({ state: 'failed', reason: 'no connection' });
  expect(runs).toHaveLength(1);
  expect(warned).toHaveLength(1);
  expect(audit.start(note)).toMatchObject({ state: 'running', reason: null });
  await audit.close();
});

test('an audit ends with the pool, and none begins after it', async () => {
  const { audit, runs, notes, note, state } = bed();
  audit.start(note);
  await settled();
  await audit.close();
  expect(runs[0]?.signal.aborted).toBe(true);
  expect(state()).toMatchObject({ state: 'failed', reason: 'the pool stopped' });
  expect(notes.at(-1)).toEqual(['audit_end', { failed: 'the pool stopped' }]);
  runs[0]?.progress('slices', 1, 2);
  expect(audit.start(note)).toMatchObject({ state: 'failed' });
  await settled();
  expect(runs).toHaveLength(1);
});

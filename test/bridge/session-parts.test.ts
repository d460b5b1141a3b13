/** Parts of a session that need no connection: its totals, whose generations are whose, and what a restart keeps. */
import { expect, test } from 'vitest';
import type { KeptTemplate } from '../../bridge/nodes/template-store.ts';
import { jobIdOf } from '../../bridge/session/job-book.ts';
import { endOfGenerations, type Terms } from '../../bridge/session/job-log.ts';
import { KeptSessions } from '../../bridge/session/kept-sessions.ts';
import { runEntry, sessionEntry, spentEntry, templatesEntry } from '../../bridge/session/session-entries.ts';
import { Tally } from '../../bridge/session/tally.ts';
import { concat } from '../../protocol/bytes.ts';
import { HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { waiting } from '../pool/waiting-session.ts';

test('a share of a job that is over counts as stale, every other refusal under its reason, and all of them for the credit', () => {
  const tally = new Tally();
  tally.accept(5n);
  tally.accept(7n);
  tally.reject(CODE.unknown_job);
  expect(tally.state()).toEqual({ accepted: 2, stale: 1, rejected: {}, work: 12n });
  tally.reject(CODE.above_target);
  expect(tally.isCredible).toBe(true);
  tally.reject(CODE.unknown_job);
  expect(tally.isCredible).toBe(false);
  const state = tally.state();
  expect(state).toEqual({ accepted: 2, stale: 2, rejected: { above_target: 1 }, work: 12n });
  const resumed = new Tally();
  resumed.restore(state);
  expect([resumed.state(), resumed.isCredible]).toEqual([state, false]);
});

test('terms end where the next ones of their own owner begin', () => {
  const [a, b] = [Uint8Array.of(1, 2), Uint8Array.of(3, 4)];
  const terms = (generation: number, owner: Uint8Array<ArrayBuffer> | null) => ({ generation, owner });
  const all = [
    terms(1, null),
    terms(2, a),
    terms(4, b),
    terms(6, Uint8Array.of(1, 2)),
    terms(9, null),
    terms(12, null),
  ];
  const ends = all.map((one) => endOfGenerations(one, all));
  const never = Number.POSITIVE_INFINITY;
  expect(ends).toEqual([9, 6, never, never, 12, never]);
});

test('a session of before a restart is taken once, while it can be resumed: two connections would count its shares twice', () => {
  const bootId = new Uint8Array(8).fill(7);
  const kept = new KeptSessions({ bootId, resumeMillis: 1_000, maxSessions: 3 });
  const log = (...ids: readonly string[]) => concat(...ids.map((id, i) => sessionEntry(waiting(id), 2_000 + i)));
  kept.read(log('old', 'a', 'b', 'a', 'c'));
  expect(kept.size).toBe(3);
  // The oldest left its place; one that was noted again is a newer one.
  expect(kept.take('old', 2_000)).toBeNull();
  expect(kept.take('a', 3_004)).toMatchObject({ record: { id: 'a', bootId, accepted: 5 }, isShared: false });
  expect(kept.take('a', 3_004)).toBeNull();
  // It lasted to the end of its process, which is the newest note.
  expect(kept.take('b', 3_005)).toBeNull();
  expect([kept.take('c', 3_004)?.record.id, kept.size]).toEqual(['c', 0]);
});

test('jobs after a restart are numbered above all of before: a share on one of those must not name another', () => {
  const kept = new KeptSessions({ bootId: new Uint8Array(8), resumeMillis: 1_000, maxSessions: 3 });
  const body = { epochLength: 1, fees: 0n, parents: [], transactions: [] } as unknown as KeptTemplate;
  const place = { header: new Uint8Array(HEADER_BYTES), epoch: 0, draws: 2, isFresh: false, cutHeight: 0, told: 0 };
  for (const serials of [
    [5, 6],
    [9, 10],
    [7, 8],
  ]) {
    const templates = serials.map((serial, draw) => ({ ...place, serial, draw }));
    kept.read(templatesEntry({ templates, headHeight: 7, clean: false }, [body, body], 1_000));
  }
  expect(kept.newestSerial).toBe(10);
  const record = waiting('a');
  const terms = { generation: 40, shareWork: 77n, farm: null } as Terms;
  kept.read(
    concat(sessionEntry(record, 1_000), runEntry(record.owner, terms, jobIdOf(7, 1)), spentEntry(record.owner, terms)),
  );
  const { log, current } = kept.take('a', 1_000)?.record.jobs ?? {};
  expect([current, log?.lastJobId]).toEqual([40, jobIdOf(7, 1)]);
  expect(log?.terms.at(-1)).toMatchObject({ generation: 40, shareWork: 77n, isSpent: true, owner: record.owner });
  expect(log?.runs.at(-1)).toEqual({ generation: 40, revision: 1, from: 7, to: 10 });
  expect(kept.publications({ graceMillis: 0, memoryMillis: 0 }).at(-1)?.templates).toHaveLength(2);
});

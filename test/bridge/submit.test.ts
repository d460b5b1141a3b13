/** The verdict over a submit before anything is hashed, as a table of facts and what follows from each. */
import { expect, test } from 'vitest';
import type { Terms } from '../../bridge/session/job-log.ts';
import { judgeSubmit, type SubmitFacts } from '../../bridge/session/submit.ts';
import { CODE } from '../../protocol/stratum/errors.ts';

const template = { draw: 1, draws: 2 };
const terms: Terms = { generation: 0, shareWork: 1n, isSpent: false, seen: undefined, owner: null, farm: null };
const rate = { perSecond: 1, burst: 1 };
const empty = { tokens: 0, atMillis: 1_000 };
const GOOD: SubmitFacts<typeof template> = {
  nowMillis: 1_000,
  limits: { submits: rate, owedSubmits: rate, lateSubmits: rate },
  budgets: { submits: null, owed: null, late: null },
  hasRoom: true,
  isReady: true,
  terms,
  found: { state: 'good', template },
  draw: 3,
  wrong: null,
  known: 'fresh',
};
const spent = { ...terms, isSpent: true };
const expired = { state: 'expired', template } as const;
const budgets = (names: readonly ('submits' | 'owed' | 'late')[]) => ({
  budgets: { ...GOOD.budgets, ...Object.fromEntries(names.map((name) => [name, empty])) },
});

test.each<[what: string, facts: Partial<SubmitFacts<typeof template>>, verdict: object]>([
  ['a good share', {}, { kind: 'hash', refusal: null, isOwed: true, template, terms }],
  [
    'too many submits, before anything else is looked at',
    { ...budgets(['submits']), terms: undefined },
    { kind: 'excess' },
  ],
  ['a job that was never sent', { terms: undefined }, { kind: 'unknown_job' }],
  ['a template that is gone', { found: { state: 'unknown' } }, { kind: 'unknown_job' }],
  ['a template of another draw', { draw: 2 }, { kind: 'unknown_job' }],
  ['the nonces of another connection', { wrong: 26 }, { kind: 'wrong', code: 26 }],
  ['a nonce that came before', { known: 'again' }, { kind: 'again' }],
  ['more than can be remembered', { known: 'full' }, { kind: 'full' }],
  ['an expired job, which may still be a block', { found: expired }, { kind: 'hash', refusal: CODE.unknown_job }],
  ['no node, which may still be a block', { isReady: false }, { kind: 'hash', refusal: CODE.not_ready }],
  [
    'an expired job whose body had its block',
    { found: expired, terms: spent },
    { kind: 'late', code: CODE.unknown_job },
  ],
  ['a spent body on a good job is a share', { terms: spent }, { kind: 'hash', refusal: null }],
  ['too many late ones', { found: expired, ...budgets(['late']) }, { kind: 'late', code: CODE.unknown_job }],
  ['late and known: the answer is that of a repeat', { found: expired, known: 'again' }, { kind: 'again' }],
  ['more than is owed, while others leave room', budgets(['owed']), { kind: 'hash', isOwed: false }],
  ['owed, while others leave no room', { hasRoom: false }, { kind: 'hash', isOwed: true }],
  ['neither owed nor room', { ...budgets(['owed']), hasRoom: false }, { kind: 'busy', code: CODE.too_many_requests }],
  [
    'neither, and no node',
    { ...budgets(['owed']), hasRoom: false, isReady: false },
    { kind: 'busy', code: CODE.not_ready },
  ],
])('%s', (_what, facts, verdict) => {
  expect(judgeSubmit({ ...GOOD, ...facts })).toMatchObject(verdict);
});

test('a verdict takes from the budgets what it uses, and from no other', () => {
  const used = { tokens: 0, atMillis: 1_000 };
  expect(judgeSubmit(GOOD)).toMatchObject({
    budgets: { submits: used, owed: used, late: null },
  });
  expect(judgeSubmit({ ...GOOD, found: expired })).toMatchObject({
    budgets: { submits: used, owed: used, late: used },
  });
  expect(judgeSubmit({ ...GOOD, known: 'again' }).budgets).toEqual({ submits: used, owed: null, late: null });
  expect(judgeSubmit({ ...GOOD, ...budgets(['submits']) }).budgets).toEqual(budgets(['submits']).budgets);
});

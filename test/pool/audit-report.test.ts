/** The text of a public audit: what was not checked, why, and what helps. */
import { expect, test } from 'vitest';
import { type PublicReport, WITHOUT_A_NODE } from '../../pool/audit/public.ts';
import { publicReportText, toldProgress } from '../../pool/audit/report.ts';
import { NOT_CHECKED } from '../../protocol/books/books-verdict.ts';

const report: PublicReport = {
  verdict: 'unchecked',
  address: 'dsvc1',
  network: 'development',
  height: 9,
  slices: 1,
  lists: { proven: 0, unchecked: 1, false: 0 },
  missing: Object.fromEntries(NOT_CHECKED.map((part, i) => [part, i + 1])),
  commitments: 1,
  payments: 2,
  money: null,
  unpaid: null,
  uncredited: null,
  moved: null,
  ledger_height: null,
  not_checked: [],
  suspicions: [],
  differences: 0,
  findings: [],
};
const unchecked = (changes: Partial<PublicReport>) =>
  publicReportText({ ...report, ...changes })
    .split('\n')
    .filter((line) => line.startsWith('Not checked'));

test('each part of a list that could not be checked is named with the reason and what to do', () => {
  const [first, ...others] = unchecked({});
  expect(first).toBe('Not checked in 1 list: its fee and window: the pool did not tell its terms (audit again later)');
  expect(others).toHaveLength(NOT_CHECKED.length - 1);
  for (const line of others)
    expect(line).toMatch(/^Not checked in \d+ lists: .*(\(audit again later.*\)|only the pool and the finder know)$/);
});

test('what only a node can tell is said once where none is named, with the option that names one', () => {
  const lines = unchecked({ not_checked: [WITHOUT_A_NODE] });
  expect(lines.filter((line) => line.includes('the node d'))).toEqual([]);
  expect(lines.at(-1)).toMatch(/^Not checked: the ledger: .*commitments.*--node-api/);
});

test('one of a thing is not told in the plural', () => {
  expect(publicReportText(report)).toContain('1 slice, 1 commitment, 2 payments');
});

test('a long audit says every few seconds how far it is, and a short one nothing', () => {
  let nowMillis = 0;
  const told: unknown[] = [];
  const log = { info: (_message: string, fields?: object) => void told.push(fields) };
  const progress = toldProgress({ log, now: () => nowMillis });
  for (let done = 1; done <= 12; done++) {
    nowMillis += 1_000;
    progress('slices', done);
  }
  expect(told).toEqual([
    { what: 'slices', done: 5 },
    { what: 'slices', done: 10 },
  ]);
});

/**
 * The specification's tables, row by row: endpoints, page sizes, sockets, frames, topics, events, errors, limits, authentication. Each row of the
 * node's public API has a check here that runs against a real node; rows of other programs name the one test
 * that shows them. docs/conformance-tests.md is made from this list and what was found.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutResults } from '../../scripts/ready/named-tests.mjs';
import { DEFAULTS_ROWS } from './conformance-defaults.ts';
import { DOCUMENTS_ROWS } from './conformance-documents.ts';
import { ENDPOINTS_ROWS } from './conformance-endpoints.ts';
import { EVENTS_ROWS } from './conformance-events.ts';
import { LIMITS_ROWS } from './conformance-limits.ts';
import { type Row, subject, titlesIn } from './conformance-rows.ts';
import { SECTION_ROWS } from './conformance-sections.ts';

beforeAll(() => subject.open());
afterAll(() => subject.bed.close());

const ROWS: readonly Row[] = [
  ...ENDPOINTS_ROWS,
  ...EVENTS_ROWS,
  ...LIMITS_ROWS,
  ...DEFAULTS_ROWS,
  ...DOCUMENTS_ROWS,
  ...SECTION_ROWS,
];

/** State and place of each row. */
const found = new Map<Row, string>();
const cell = (text: string): string => text.replaceAll('|', '\\|');

describe.each([...new Set(ROWS.map(({ table }) => table))])('%s', (table) => {
  const rows = ROWS.flatMap((row) => (row.table === table ? [[row.row, row] as const] : []));
  test.each(rows)('%s', async (_, row) => {
    if (row.how === 'named') {
      const titles = titlesIn(row.file).filter(row.is);
      expect(titles, `one test of ${row.file}`).toHaveLength(1);
      found.set(row, `passed | ${cell(`${row.file}: ${titles[0]}`)}`);
      return;
    }
    await row.check();
    found.set(row, `kept | ${cell(row.note ?? 'test/api/conformance.test.ts')}`);
  });
});

test('every row is there once', () => {
  const names = ROWS.map(({ table, row }) => `${table}: ${row}`);
  expect(names.filter((name, i) => names.indexOf(name) < i)).toEqual([]);
});

const PAGE = '../../docs/conformance-tests.md';

test('docs/conformance-tests.md says what was found', async () => {
  const lines = [
    '# Conformance: rows that tests show',
    '',
    "Made from the specification's tables by test/api/conformance.test.ts, and from the results of the whole run at the end of `npm test`. `kept`: asked of a real node by test/api/conformance.test.ts. `passed`, `failed`, `not run`: what the test with this title did in",
    'that run; `npm test` ends with a failure unless each of them ran and passed. What running programs show is in [conformance](conformance.md).',
  ];
  for (const table of new Set(ROWS.map((row) => row.table))) {
    lines.push('', `## ${table}`, '', '| row | state | test |', '|---|---|---|');
    for (const row of ROWS.filter((entry) => entry.table === table))
      lines.push(`| ${cell(row.row)} | ${found.get(row) ?? 'differs | test/api/conformance.test.ts'} |`);
  }
  const made = `${lines.join('\n')}\n`;
  const page = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  // The results of named tests are those of the last whole run.
  if (withoutResults(page) !== withoutResults(made)) await expect(made).toMatchFileSnapshot(PAGE);
});

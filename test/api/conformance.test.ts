/**
 * The specification's tables, row by row: endpoints, page sizes, sockets, frames, topics, events, errors, limits, authentication. Each row of the
 * node's public API has a check here that runs against a real node; rows of other programs name the test that
 * shows them. docs/conformance.md is made from this list.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DOCUMENTS_ROWS } from './conformance-documents.ts';
import { ENDPOINTS_ROWS } from './conformance-endpoints.ts';
import { EVENTS_ROWS } from './conformance-events.ts';
import { LIMITS_ROWS } from './conformance-limits.ts';
import { type Row, subject } from './conformance-rows.ts';
import { SECTION_ROWS } from './conformance-sections.ts';

beforeAll(() => subject.open());
afterAll(() => subject.bed.close());

const ROWS: readonly Row[] = [...ENDPOINTS_ROWS, ...EVENTS_ROWS, ...LIMITS_ROWS, ...DOCUMENTS_ROWS, ...SECTION_ROWS];

describe.each([...new Set(ROWS.map(({ table }) => table))])('%s', (table) => {
  const rows = ROWS.filter((row) => row.table === table);
  test.each(rows.map((row) => [row.row, row] as const))('%s', async (_, row) => {
    await row.check();
  });
});

test('docs/conformance.md is made from these rows', async () => {
  const lines = [
    '# Conformance',
    '',
    "Made by test/api/conformance.test.ts from the specification's tables; the rows marked kept are checked by every run of the tests.",
    'Every section of the specification is here. A row of the public API is asked of a real node; another names the test that shows it, and that test is there under that title.',
  ];
  for (const table of new Set(ROWS.map((row) => row.table))) {
    lines.push('', `## ${table}`, '', '| row | state | test, or why |', '|---|---|---|');
    for (const row of ROWS.filter((entry) => entry.table === table)) {
      const where = row.note ?? 'test/api/conformance.test.ts';
      lines.push(`| ${row.row.replaceAll('|', '\\|')} | kept | ${where} |`);
    }
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('../../docs/conformance.md');
});

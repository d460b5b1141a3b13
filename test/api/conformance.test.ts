/**
 * The specification's tables, row by row: endpoints, page sizes, sockets, frames, topics, events, errors, limits, authentication. Each row of the
 * node's public API has a check here that runs against a real node; rows of other programs name the test that
 * shows them. docs/conformance-tests.md is made from this list and what was found.
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

const found = new Map<Row, string>();

describe.each([...new Set(ROWS.flatMap(({ table, how }) => (how === 'unchecked' ? [] : [table])))])('%s', (table) => {
  const rows = ROWS.flatMap((row) => (row.table === table && row.how !== 'unchecked' ? [[row.row, row] as const] : []));
  test.each(rows)('%s', async (_, row) => {
    found.set(row, 'differs');
    await row.check();
    found.set(row, row.how === 'asked' ? 'kept' : 'named');
  });
});

test('docs/conformance-tests.md says what was found', async () => {
  const lines = [
    '# Conformance: rows that tests show',
    '',
    "Made by test/api/conformance.test.ts from the specification's tables and what it found. `kept`: asked of a real node by that test. `named`: the test of this file with these words in its title shows it; that test is there, and its",
    'own run decides. `not checked`: the file is where it is shown, and nothing looks into it. What running programs show is in [conformance](conformance.md).',
  ];
  for (const table of new Set(ROWS.map((row) => row.table))) {
    lines.push('', `## ${table}`, '', '| row | state | test |', '|---|---|---|');
    for (const row of ROWS.filter((entry) => entry.table === table)) {
      const where = (row.note ?? 'test/api/conformance.test.ts').replaceAll('|', '\\|');
      lines.push(`| ${row.row.replaceAll('|', '\\|')} | ${found.get(row) ?? 'not checked'} | ${where} |`);
    }
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('../../docs/conformance-tests.md');
});

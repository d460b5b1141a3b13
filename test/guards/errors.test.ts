/**
 * Every error code is in docs/errors.md with its cause and remedy, and none there is dead.
 *
 * A table of codes in the code is an exported constant called `X_ERROR_CODES` or `X_ERRORS`: a list of codes, a list
 * of objects with `name` and `code` (a number), or an object from code to number. It belongs to the section of
 * docs/errors.md whose heading is X. Where there are numbers, the first cell shows them: `` `stale` (21) ``.
 */
import { expect, test } from 'vitest';
import { ROOT, read, SOURCES } from './project-files.ts';

const TABLE = /^export const ([A-Z][A-Z0-9_]*?)_(?:ERROR_CODES|ERRORS)\b/gm;

function codesOf(table: unknown): string[] {
  const shown = (code: string, number: unknown) =>
    typeof number === 'number' ? `\`${code}\` (${number})` : `\`${code}\``;
  if (Array.isArray(table))
    return table.map((entry) => (typeof entry === 'string' ? shown(entry, undefined) : shown(entry.name, entry.code)));
  return Object.entries(table as Record<string, unknown>).map(([code, number]) => shown(code, number));
}

/** A program may export both its table and the list of its keys: the richer of the two counts. */
async function tablesInCode(): Promise<Map<string, string[]>> {
  const tables = new Map<string, string[]>();
  for (const path of SOURCES) {
    if (path.endsWith('/main.ts')) continue;
    const names = [...read(path).matchAll(TABLE)];
    if (names.length === 0) continue;
    const module = (await import(/* @vite-ignore */ `${ROOT}${path}`)) as Record<string, unknown>;
    for (const [, prefix = ''] of names) {
      const found = module[`${prefix}_ERRORS`] ?? module[`${prefix}_ERROR_CODES`];
      tables.set(prefix, codesOf(found).sort());
    }
  }
  return tables;
}

interface Row {
  readonly code: string;
  readonly cause: string;
  readonly remedy: string;
}

function tablesInDocs(): Map<string, Row[]> {
  const tables = new Map<string, Row[]>();
  for (const section of read('docs/errors.md').split(/^## /m).slice(1)) {
    const heading = section.slice(0, section.indexOf('\n')).trim().toUpperCase().replace(/ /g, '_');
    const rows = [...section.matchAll(/^\| (`[^|]+?) \|([^|]*)\|([^|]*)\|$/gm)].map((match) => ({
      code: match[1] as string,
      cause: (match[2] as string).trim(),
      remedy: (match[3] as string).trim(),
    }));
    tables.set(heading, rows);
  }
  return tables;
}

test('docs/errors.md and the code have the same error codes', async () => {
  const inCode = await tablesInCode();
  const inDocs = new Map([...tablesInDocs()].map(([name, rows]) => [name, rows.map(({ code }) => code).sort()]));
  expect(inCode.size).toBeGreaterThanOrEqual(5);
  // Section by section, so that a difference is short to read.
  for (const name of new Set([...inCode.keys(), ...inDocs.keys()]))
    expect({ section: name, codes: inDocs.get(name) ?? [] }).toEqual({ section: name, codes: inCode.get(name) ?? [] });
});

test('every code has a cause and a remedy', () => {
  const empty = [...tablesInDocs()].flatMap(([name, rows]) =>
    rows.filter(({ cause, remedy }) => cause === '' || remedy === '').map(({ code }) => `${name} ${code}`),
  );
  expect(empty).toEqual([]);
});

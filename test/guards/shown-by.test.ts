/** Pages that promise something name the test that shows it: every test file they name is there, and no promise is without one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, ROOT, read } from './project-files.ts';

const PAGES = FILES.filter((path) => path.endsWith('.md'));
const TEST_FILE = /\btest\/[\w./-]+\.test\.ts\b/g;

test('every test file that a page names exists', () => {
  const wrong = PAGES.flatMap((page) =>
    (read(page).match(TEST_FILE) ?? [])
      .filter((file) => !existsSync(join(ROOT, file)))
      .map((file) => `${page}: ${file}`),
  );
  expect(wrong).toEqual([]);
});

test.each([
  ['docs/security.md', /\| shown by \|$/],
  ['docs/faults.md', /\| shown by \|$/],
])('%s: each row of a table with "shown by" names a test', (page, heading) => {
  const lines = read(page).split('\n');
  let rows = 0;
  const wrong: string[] = [];
  for (const [i, line] of lines.entries()) {
    if (!heading.test(line)) continue;
    for (let at = i + 2; lines[at]?.startsWith('|'); at++) {
      rows++;
      if ((lines[at] as string).match(TEST_FILE) === null) wrong.push(`${page}: ${lines[at]}`);
    }
  }
  expect(rows).toBeGreaterThan(10);
  expect(wrong).toEqual([]);
});

test('each promise of the README links to the test that shows it', () => {
  const [, promises = ''] = /\n\n((?:- \*\*[\s\S]*?)\n)\n## /.exec(read('README.md')) ?? [];
  const items = promises.split(/^(?=- \*\*)/m);
  expect(items.length).toBeGreaterThan(4);
  expect(items.filter((item) => !/\]\(test\/[\w./-]+\.test\.ts\)/.test(item))).toEqual([]);
});

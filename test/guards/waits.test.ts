/** What a page shows is brought about by another process: a single look passes on a quiet machine and fails on a busy one. */
import { expect, test } from 'vitest';
import { FILES, read } from './project-files.ts';

/** A look at a page: one of Playwright's own, or a function that is given the page. */
const LOOK =
  /\.(?:innerText|textContent|inputValue|count|is(?:Visible|Hidden|Disabled|Enabled|Checked)|getAttribute|title|all(?:Inner|Text)\w+|evaluate)\(|\(\w*[pP]age\b/;

const singleLooks = (code: string): string[] =>
  [...code.matchAll(/expect\(\s*await ([^;]*?)\)\s*\.(?:not\.)?to[A-Z]/g)]
    .map(([, looked = '']) => looked)
    .filter((looked) => !looked.startsWith('atOnce(') && LOOK.test(looked));

test('a test looks at a page until it shows what it must, or says why it may look once', () => {
  expect(singleLooks("expect(await page.locator('h1').count()).toBe(1)")).toHaveLength(1);
  expect(singleLooks('expect(await focused(page)).not.toBe(1)')).toHaveLength(1);
  expect(singleLooks('expect(await atOnce(focused(page))).toBe(1)')).toEqual([]);
  const found = FILES.filter(
    (path) => /^test\/(?!guards\/).*\.ts$/.test(path) && /playwright|browser\.ts|chromium\.ts/.test(read(path)),
  ).flatMap((path) => singleLooks(read(path)).map((look) => `${path}: ${look}`));
  expect(found).toEqual([]);
});

/** What README.md and docs/ tell the reader to run or to open exists. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { commandsOn, PAGES } from './page-commands.ts';
import { ROOT, read } from './project-files.ts';

const scripts: Record<string, string> = packageJson.scripts;

test('every npm command in the docs is a script of package.json', () => {
  const wrong = PAGES.flatMap((page) =>
    commandsOn(page).flatMap((line) => {
      const match = /^npm (?:run ([\w:-]+)|(start|test))\b/.exec(line);
      const name = match?.[1] ?? match?.[2];
      return name === undefined || name in scripts ? [] : [`${page}: ${line}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('every link inside the docs leads to a file', () => {
  const wrong = PAGES.flatMap((page) =>
    [
      ...read(page)
        .replace(/```[\s\S]*?```/g, '')
        .matchAll(/\]\(([^)\s]+)\)/g),
    ]
      .map((match) => (match[1] as string).split('#')[0] as string)
      .filter((link) => link !== '' && !/^[a-z]+:/.test(link))
      .filter((link) => !existsSync(join(ROOT, dirname(page), link)))
      .map((link) => `${page}: ${link}`),
  );
  expect(wrong).toEqual([]);
});

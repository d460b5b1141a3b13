/** What README.md and docs/ tell the reader to run or to open exists. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { FILES, ROOT, read } from './project-files.ts';

const PAGES = FILES.filter((path) => path.endsWith('.md'));
const scripts: Record<string, string> = packageJson.scripts;
const bins: Record<string, string> = packageJson.bin;
/** Packages that the docs name like programs. */
const PACKAGES = ['svc-wasm'];

/** Commands in code blocks and in `code`, with the page they stand on. */
function commandsOn(page: string): string[] {
  const text = read(page);
  const blocks = [...text.matchAll(/```[a-z]*\n([\s\S]*?)```/g)].flatMap((match) => (match[1] as string).split('\n'));
  const inline = [...text.replace(/```[\s\S]*?```/g, '').matchAll(/`([^`\n]+)`/g)].map((match) => match[1] as string);
  return [...blocks, ...inline].map((line) => line.replace(/^\s*\$\s+/, '').trim());
}

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

test('every svc command in the docs is a program, and its options are in its help', () => {
  const help = new Map<string, string>();
  const helpOf = (words: string[]): string => {
    const key = words.join(' ');
    const [name = '', ...rest] = words;
    if (!help.has(key))
      help.set(
        key,
        spawnSync(process.execPath, [join(ROOT, bins[name] ?? ''), ...rest, '--help'], { encoding: 'utf8' }).stdout,
      );
    return help.get(key) ?? '';
  };
  const wrong = PAGES.flatMap((page) =>
    commandsOn(page).flatMap((line) => {
      const match = /^(?:npx |\.?\/?bin\/)?(svcd|svc-[a-z]+)((?: .*)?)$/.exec(line);
      if (match === null) return [];
      const [, name = '', rest = ''] = match;
      if (PACKAGES.includes(name) && rest === '') return [];
      if (!(name in bins)) return [`${page}: ${line}`];
      const options = [...rest.matchAll(/(?<=\s)--([a-z][a-z-]*)/g)].map((found) => found[1] as string);
      if (options.length === 0) return [];
      // A command may be of two words; an operand behind it does not change its help.
      const words = /^(?: [a-z][a-z-]*(?= |$))*/.exec(rest)?.[0].trim().split(' ') ?? [];
      const text = helpOf([name, ...words.filter((word) => word !== '')]);
      return options
        .filter((option) => !text.includes(`--${option}`) && !text.includes(`]${option}`))
        .map((option) => `${page}: ${line}: --${option}`);
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

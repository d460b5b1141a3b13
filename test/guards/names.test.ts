/** What comments and docs name exists, and what a file exports is used. */
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, isCode, read, SOURCES, withoutComments } from './project-files.ts';

const KNOWN = new Set(FILES);
const NAMES = new Set(FILES.map((path) => posix.basename(path)));
const FOLDERS =
  'protocol|runtime|kernels|node|wallet|bridge|pool|miner|dashboard|module|test|stack|scripts|vectors|docs|deploy';
const PATH = new RegExp(`(?<![\\w./-])((?:${FOLDERS})/[\\w./-]+\\.(?:ts|tsx|mjs|md|wgsl|json))(?![\\w-])`, 'g');
const NAME = /(?<![\w./*-])([a-z][\w-]*(?:\.(?:slow|test|bench))*\.(?:ts|tsx|wgsl))(?![\w-])/g;
/** Placeholder for any benchmark. */
const PATTERNS = ['test/bench/NAME.bench.ts'];

const commentsOf = (path: string): string =>
  isCode(path)
    ? [...read(path).matchAll(/\/\*[\s\S]*?\*\/|(?<![:'"`\w])\/\/[^\n]*/g)].map(([comment]) => comment).join('\n')
    : read(path);

test('files named in comments and docs exist', () => {
  const wrong = FILES.filter((path) => (isCode(path) || path.endsWith('.md')) && path !== 'CHANGELOG.md').flatMap(
    (path) => {
      const text = commentsOf(path);
      const exists = (name: string) =>
        KNOWN.has(name) || KNOWN.has(posix.join(posix.dirname(path), name)) || PATTERNS.includes(name);
      const paths = [...text.matchAll(PATH)].map((match) => match[1] as string).filter((name) => !exists(name));
      const names = isCode(path)
        ? [...text.matchAll(NAME)].map((match) => match[1] as string).filter((name) => !NAMES.has(name))
        : [];
      return [...paths, ...names].map((name) => `${path} names ${name}`);
    },
  );
  expect(wrong).toEqual([]);
});

/** Names that a file gives to others, and which names others take from which file. */
const EXPORT = /^export\s+(?:async\s+)?(?:const|let|function\*?|(?:abstract )?class|type|interface)\s+([\w$]+)/gm;
const TAKEN = /(?:import|export)\s+(?:type\s+)?([^;'"]*?)\s*\bfrom\s*['"](\.[^'"]+)['"]/g;
const LOADED = /\bimport\(\s*['"](\.[^'"]+)['"]\s*\)/g;

/** Read by tests that load every file of the project (errors.test.ts). */
const isErrorTable = (name: string): boolean => /_(ERROR_CODES|ERRORS)$/.test(name);

/** AssemblyScript, compiled by itself. */
const isOtherLanguage = (path: string): boolean => /^(kernels\/cpu|module)\/assembly\//.test(path);

test('what is exported is imported somewhere, or at least used where it is', () => {
  const code = new Map(FILES.filter(isCode).map((path) => [path, withoutComments(read(path))]));
  const taken = new Set<string>();
  for (const [path, text] of code) {
    const target = (from: string) => posix.normalize(posix.join(posix.dirname(path), from));
    for (const [, names = '', from = ''] of text.matchAll(TAKEN)) {
      if (names.includes('*')) taken.add(`${target(from)} *`);
      for (const name of (/\{([\s\S]*)\}/.exec(names)?.[1] ?? '').split(','))
        taken.add(
          `${target(from)} ${
            name
              .trim()
              .replace(/^type\s+/, '')
              .split(/\s+as\s+/)[0]
          }`,
        );
    }
    for (const [, from = ''] of text.matchAll(LOADED)) taken.add(`${target(from)} *`);
  }
  const dead = SOURCES.filter((path) => !isOtherLanguage(path) && !taken.has(`${path} *`)).flatMap((path) => {
    const text = code.get(path) ?? '';
    return [...text.matchAll(EXPORT)]
      .map((match) => match[1] as string)
      .filter((name) => !taken.has(`${path} ${name}`) && !isErrorTable(name))
      .filter((name) => text.split(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`)).length === 2)
      .map((name) => `${path} exports ${name}`);
  });
  expect(dead).toEqual([]);
});

const DECLARATION = /^(?:export )?(?:declare )?(?:abstract )?(?:type (\w+)(?:<[^=]*>)? =|(?:interface|class) (\w+))/gm;

test('no type name means two things in one folder', () => {
  const places = Map.groupBy(
    SOURCES.flatMap((path) =>
      [...read(path).matchAll(DECLARATION)].map(([, type, other]) => ({ path, name: type ?? other })),
    ),
    ({ path, name }) => `${posix.dirname(path)} ${name}`,
  );
  const twice = [...places].filter(([, found]) => new Set(found.map(({ path }) => path)).size > 1);
  expect(
    twice.map(([place, found]) => `${place}: ${found.map(({ path }) => posix.basename(path)).join(', ')}`),
  ).toEqual([]);
});

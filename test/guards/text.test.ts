/** Rules of the text itself: headers, nothing unfinished, nothing switched off, nothing of one machine. */
import { expect, test } from 'vitest';
import { FILES, isCode, read, SOURCES, topFolder } from './project-files.ts';

const BINARY = /\.(wasm|png|webp|ico|woff2)$/;
const HERE = 'test/guards/text.test.ts';
const TEXTS = FILES.filter((path) => !BINARY.test(path) && path !== HERE && path !== 'package-lock.json');

function findings(paths: readonly string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim().slice(0, 120)}`] : [])),
  );
}

test('every source file says at its top what it is', () => {
  const own = FILES.filter((path) => isCode(path) && ['scripts', 'bin', 'vectors'].includes(topFolder(path)));
  const wrong = [...SOURCES, ...own].filter((path) => !/^(#![^\n]*\n)?\s*(\/\*|\/\/)/.test(read(path)));
  expect(wrong).toEqual([]);
});

test('nothing is left unfinished', () => {
  expect(findings(TEXTS, /\b(TODO|FIXME|XXX|HACK)\b/)).toEqual([]);
});

test('no test is switched off, and no check of types or lint is silenced without a reason', () => {
  const code = TEXTS.filter(isCode);
  expect(findings(code, /\b(test|it|describe|suite)\.(only|skip|todo|skipIf|runIf|fails)\b|\bctx\.skip\(/)).toEqual([]);
  expect(findings(code, /@ts-(ignore|nocheck|expect-error)|\bas any\b|: any\b/)).toEqual([]);
  // Short files share a process: the count has what an earlier file left (test/own-timers.ts counts its own).
  expect(findings(code, /\bgetTimerCount\b/)).toEqual([]);
  expect(findings(code, /biome-ignore [^:]*:\s*$|biome-ignore-all/)).toEqual([]);
});

test('nothing names a place of one machine', () => {
  expect(findings(TEXTS, /(^|[\s"'`(=])\/(work|home|Users|root)\/\w/)).toEqual([]);
});

test('packages come from the public registry', () => {
  const hosts = [...read('package-lock.json').matchAll(/"resolved": "([a-z+]+:\/\/[^/"]+)/g)].map((match) => match[1]);
  expect([...new Set(hosts)].filter((host) => host !== 'https://registry.npmjs.org')).toEqual([]);
});

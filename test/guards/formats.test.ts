/** docs/formats.md and the code name the same versions of formats; each row has a test or a fixture, and no migration that a release has run is edited. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { isVersion } from '../../scripts/release/version.ts';
import { FILES, isCode, ROOT, read, topFolder } from './project-files.ts';

const PAGE = read('docs/formats.md');
const RELEASES = readdirSync(join(ROOT, 'test/releases')).filter(isVersion);

/** Their values are no versions of a form. */
const OTHERS = new Set(['bridge/connection/handles.ts TESTED_VERSIONS', 'protocol/stratum/frame.ts V2_MAGIC']);
const CONSTANT = /^(?:export )?const ([A-Z0-9_]*(?:VERSIONS?|FORMATS?|MAGIC|PROTOCOL_V\d))\b[^=\n]*= (.*);$/gm;
const FOLDERS = ['bridge', 'dashboard', 'kernels', 'miner', 'module', 'node', 'pool', 'protocol', 'proxy', 'runtime'];

const versionIn = (code: string): string =>
  (/'([^']+)'/.exec(code)?.[1] ?? code.replace(/ as const$/, '')).replaceAll('`', '');

test('every version of a format in the code stands on the page, with its value, and no other', () => {
  const inCode = FILES.filter((path) => isCode(path) && [...FOLDERS, 'wallet'].includes(topFolder(path)))
    .flatMap((path) => [...read(path).matchAll(CONSTANT)].map(([, name = '', code = '']) => ({ path, name, code })))
    .filter(({ path, name, code }) => /\d/.test(code) && !OTHERS.has(`${path} ${name}`))
    .map(({ path, name, code }) => `${path} ${name} = ${versionIn(code)}`);
  const onPage = [...PAGE.matchAll(/`([a-z0-9/-]+\.ts)` `([A-Z0-9_]+)` = (\{[^}]*\}|[\w-]+)/g)].map(
    ([, path, name, value]) => `${path} ${name} = ${value}`,
  );
  expect(inCode.length).toBeGreaterThan(20);
  expect([...new Set(onPage)].sort()).toEqual(inCode.sort());
});

test('the tests and fixtures that the page names exist', () => {
  const rows = PAGE.split('\n').filter((line) => /^\| [a-z]/.test(line) && !line.startsWith('| what |'));
  const named = rows.flatMap((row) =>
    [...(row.split(' | ').at(-1) ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1]),
  );
  expect(named.length).toBeGreaterThan(20);
  const isThere = (name: string): boolean =>
    name.includes('/')
      ? existsSync(join(ROOT, name))
      : RELEASES.every((release) => existsSync(join(ROOT, 'test/releases', release, `${name}.tgz`)));
  expect(named.filter((name) => !isThere(name as string))).toEqual([]);
});

test.each(RELEASES)('no migration that %s ran was edited', (release) => {
  const archive = join(ROOT, 'test/releases', release, 'pool-database.tgz');
  const packed = execFileSync('tar', ['-xOzf', archive, 'files/books.sql.gz'], { maxBuffer: 16 * 1024 * 1024 });
  const dump = gunzipSync(packed).toString();
  const names = [...dump.matchAll(/^-- (\d{4}-[a-z-]+\.sql)$/gm)].map((match) => match[1] as string);
  expect(names.length).toBeGreaterThan(30);
  const migrations = join(ROOT, 'pool/database/migrations');
  const edited = names.filter((name) => !dump.includes(`-- ${name}\n${readFileSync(join(migrations, name), 'utf8')}`));
  expect(edited).toEqual([]);
});

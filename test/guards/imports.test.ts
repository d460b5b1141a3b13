/** docs/architecture.md, "Imports": folders import only what is below them, files make no circles, and protocol/ is pure. */
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, importsOf, isCode, read, SOURCES, topFolder, withoutComments } from './project-files.ts';

const BELOW: Record<string, readonly string[]> = {
  protocol: [],
  runtime: ['protocol'],
  kernels: ['protocol', 'runtime'],
  node: ['protocol', 'runtime', 'kernels'],
  wallet: ['protocol', 'runtime'],
  bridge: ['protocol', 'runtime', 'kernels', 'node'],
  pool: ['protocol', 'runtime', 'kernels', 'node', 'bridge'],
  miner: ['protocol', 'runtime', 'kernels'],
  proxy: ['protocol', 'runtime', 'kernels', 'bridge', 'miner'],
  dashboard: ['protocol', 'kernels', 'miner', 'module'],
  module: ['protocol'],
  scripts: [],
  stack: ['protocol', 'runtime', 'scripts'],
  bin: ['scripts'],
};

/** What may be imported for its types only. */
const TYPES_BELOW: Record<string, readonly string[]> = { dashboard: ['pool'] };

/** The pool speaks JSON-RPC with a wallet; only where it starts one of its own does it see the wallet's code. */
const EXCEPTIONS: Record<string, readonly string[]> = { 'pool/start/embedded-wallet.ts': ['wallet'] };

function wrongImports(path: string): string[] {
  const folder = topFolder(path);
  return importsOf(path).flatMap(({ from, typesOnly }) => {
    if (!from.startsWith('.')) return [];
    const target = topFolder(posix.normalize(posix.join(posix.dirname(path), from)));
    const allowed = [folder, ...(BELOW[folder] ?? []), ...(EXCEPTIONS[path] ?? [])];
    if (typesOnly) allowed.push(...(TYPES_BELOW[folder] ?? []));
    return target === '' || allowed.includes(target) ? [] : [`${path} imports ${from}`];
  });
}

test('imports only point the way docs/architecture.md says', () => {
  const guarded = FILES.filter((path) => isCode(path) && topFolder(path) in BELOW);
  expect(guarded.length).toBeGreaterThan(20);
  expect(guarded.flatMap(wrongImports)).toEqual([]);
});

/** docs/architecture.md: the rooms of node/consensus/, each with those before it that it may use. */
const CONSENSUS_ROOMS = ['engine', 'log', 'link', 'relays', 'reach', 'one-signer', 'driver'];

test('rooms of node/consensus import only the rooms before them', () => {
  const roomOf = (path: string) => CONSENSUS_ROOMS.indexOf(/^node\/consensus\/([^/]+)\//.exec(path)?.[1] ?? '');
  const files = FILES.filter((path) => path.startsWith('node/consensus/') && isCode(path));
  expect(files.filter((path) => roomOf(path) < 0)).toEqual([]);
  const wrong = files.flatMap((path) =>
    importsOf(path)
      .filter(({ from }) => from.startsWith('.'))
      .filter(({ from }) => roomOf(posix.normalize(posix.join(posix.dirname(path), from))) > roomOf(path))
      .map(({ from }) => `${path} imports ${from}`),
  );
  expect(wrong).toEqual([]);
});

test('no two files import each other, in a row of any length', () => {
  const code = FILES.filter(isCode);
  const known = new Set(code);
  const imports = new Map(
    code.map((path) => [
      path,
      importsOf(path)
        .filter(({ from, isModule }) => isModule && from.startsWith('.'))
        .map(({ from }) => posix.normalize(posix.join(posix.dirname(path), from)))
        .filter((target) => known.has(target)),
    ]),
  );
  expect(circlesIn(imports)).toEqual([]);
});

test('circlesIn finds the circle and nothing beside it', () => {
  const imports = new Map([
    ['a', ['b', 'd']],
    ['b', ['c']],
    ['c', ['a']],
    ['d', []],
  ]);
  expect(circlesIn(imports)).toEqual(['a > b > c > a']);
});

/** One circle for each import that closes one, found by a search in depth. */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' > '));
    if (way.includes(path) || done.has(path)) return;
    for (const target of imports.get(path) ?? []) visit(target, [...way, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return circles;
}

test('protocol/ imports nothing but itself and portable packages', () => {
  const portable = /^(\.|@noble\/|@scure\/)/;
  const wrong = SOURCES.filter((path) => topFolder(path) === 'protocol').flatMap((path) =>
    importsOf(path)
      .filter(({ from }) => !portable.test(from))
      .map(({ from }) => `${path} imports ${from}`),
  );
  expect(wrong).toEqual([]);
});

test('protocol/ has no clock, no randomness, no input or output', () => {
  const impure =
    /(?<![.\w])(Date\.now|new Date\(\)|Math\.random|performance\.|getRandomValues|randomUUID|process\.|console\.|setTimeout|setInterval|setImmediate|fetch\(|Buffer\.|globalThis|WebSocket\()/;
  const wrong = SOURCES.filter((path) => topFolder(path) === 'protocol').flatMap((path) =>
    withoutComments(read(path))
      .split('\n')
      .filter((line) => impure.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(wrong).toEqual([]);
});

test('who a client is, is decided in one place, and nothing that is read is turned into objects by V8', () => {
  const HOMES = ['runtime/clients/client-address.ts', 'runtime/clients/same-machine.ts'];
  const wrong = SOURCES.filter((path) => topFolder(path) !== 'test').flatMap((path) => {
    const code = withoutComments(read(path));
    return [
      ...(/::ffff|startsWith\('127\./i.test(code) && !HOMES.includes(path)
        ? [`${path} reads addresses by itself`]
        : []),
      ...(/\bdeserialize\b[^;]*from 'node:v8'/.test(code) ? [`${path} uses v8.deserialize`] : []),
    ];
  });
  expect(wrong).toEqual([]);
});

/** docs/architecture.md, "Imports": folders import only what stands below them, and protocol/ is pure. */
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, isCode, read, SOURCES, topFolder, withoutComments } from './project-files.ts';

const BELOW: Record<string, readonly string[]> = {
  protocol: [],
  runtime: ['protocol'],
  kernels: ['protocol', 'runtime'],
  node: ['protocol', 'runtime', 'kernels'],
  wallet: ['protocol', 'runtime'],
  bridge: ['protocol', 'runtime', 'kernels', 'node'],
  pool: ['protocol', 'runtime', 'kernels', 'node', 'bridge'],
  miner: ['protocol', 'runtime', 'kernels'],
  dashboard: ['protocol', 'kernels', 'miner'],
  scripts: [],
  stack: ['protocol', 'runtime', 'scripts'],
  bin: ['scripts'],
};

/** What may be imported for its types only. */
const TYPES_BELOW: Record<string, readonly string[]> = { dashboard: ['pool'] };

/** The pool speaks JSON-RPC with a wallet; only where it starts one of its own does it see the wallet's code. */
const EXCEPTIONS: Record<string, readonly string[]> = { 'pool/embedded-wallet.ts': ['wallet'] };

interface Import {
  readonly from: string;
  readonly typesOnly: boolean;
}

function importsOf(path: string): Import[] {
  const code = withoutComments(read(path));
  const pattern =
    /^\s*(?:import|export)\s+(type\s)?[^;'"]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|new URL\(\s*['"](\.[^'"]+\.(?:ts|tsx|mjs|wgsl))['"]/gm;
  return [...code.matchAll(pattern)].map((match) => ({
    from: (match[2] ?? match[3] ?? match[4] ?? match[5]) as string,
    typesOnly: match[1] !== undefined,
  }));
}

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
  const HOMES = ['runtime/client-address.ts', 'runtime/same-machine.ts'];
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

/** The files of the project, for the guards: everything but what is installed, built or kept at run time. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = new URL('../../', import.meta.url).pathname;

const LEFT_OUT = new Set(['.git', 'node_modules', '.data', '.gpu', '.ready', 'dist', 'build', 'coverage']);

function walk(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (LEFT_OUT.has(entry.name)) return [];
    return entry.isDirectory() ? walk(path) : entry.isFile() ? [path] : [];
  });
}

export const FILES: readonly string[] = walk('').sort();

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

export const topFolder = (path: string): string => (path.includes('/') ? (path.split('/')[0] as string) : '');

export const SOURCE_FOLDERS = [
  'protocol',
  'runtime',
  'kernels',
  'node',
  'wallet',
  'bridge',
  'pool',
  'miner',
  'dashboard',
  'module',
] as const;

export const isCode = (path: string): boolean => /\.(ts|tsx|mjs)$/.test(path);

export const SOURCES = FILES.filter(
  (path) => isCode(path) && (SOURCE_FOLDERS as readonly string[]).includes(topFolder(path)),
);

/** The code without comments, and without the contents of plain texts: what is left is what runs. */
export function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\/|(?<![:'"`\w])\/\/[^\n]*/g, '');
}

export interface Import {
  readonly from: string;
  readonly typesOnly: boolean;
  /** An import, in contrast to the URL of a file that a worker or a page is started from. */
  readonly isModule: boolean;
}

/** What a file imports, as it is written there. */
export function importsOf(path: string): Import[] {
  const code = withoutComments(read(path));
  const pattern =
    /^\s*(?:import|export)\s+(type\s)?[^;'"]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|new URL\(\s*['"](\.[^'"]+\.(?:ts|tsx|mjs|wgsl))['"]/gm;
  return [...code.matchAll(pattern)].map((match) => ({
    from: (match[2] ?? match[3] ?? match[4] ?? match[5]) as string,
    typesOnly: match[1] !== undefined,
    isModule: match[5] === undefined,
  }));
}

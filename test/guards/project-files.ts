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

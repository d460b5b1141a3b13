/**
 * The npm package: all programs, on the Node of the machine that it is installed on. Node runs TypeScript everywhere but in
 * node_modules, so the sources go in with their types taken out. npm-shrinkwrap.json names the version of every package below it: what
 * is installed is what was tested.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { NODE_MAJOR } from '../ready/carried-node.mjs';

/** Nothing else goes in. */
const PACKED = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'bin',
  'bridge',
  'build/dashboard',
  'build/kernels',
  'build/svc-wasm',
  'docs',
  'kernels',
  'miner',
  'node',
  'pool',
  'protocol',
  'proxy',
  'runtime',
  'scripts/ready/carried-node.mjs',
  'scripts/ready/parent.mjs',
  'vectors/pow.json',
  'wallet',
];
/** What is compiled or bundled into build/, and so is in there already. */
const LEFT_OUT = ['kernels/cpu/assembly', 'miner/browser', 'docs/images', 'docs/lab'];

type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
};
type LockEntry = { readonly dev?: boolean; readonly optional?: boolean };
type Lock = { readonly packages: Readonly<Record<string, LockEntry>> };

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
const writeJson = (path: string, value: unknown): void => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);

export const readManifest = (root: string): Manifest => readJson(join(root, 'package.json')) as Manifest;

function* filesBelow(root: string, path: string): Generator<string> {
  if (LEFT_OUT.includes(path)) return;
  if (!statSync(join(root, path)).isDirectory()) yield path;
  else for (const name of readdirSync(join(root, path)).sort()) yield* filesBelow(root, join(path, name));
}

const SOURCE = /\.ts$/;
const CODE = /\.(ts|mjs)$/;

/** A text in quotes that ends with the name of a source: in imports, and where a thread or a process is started. */
const NAMED_SOURCE = /(['"])([^'"\n]*)\.ts\1/g;

/** Types become blanks: lines and columns stay those of the sources. */
const compiled = (path: string, text: string): string =>
  (SOURCE.test(path) ? stripTypeScriptTypes(text) : text).replaceAll(NAMED_SOURCE, '$1$2.js$1');

function packFile(root: string, path: string, target: string): void {
  const to = join(target, path.startsWith('build/') ? path : path.replace(SOURCE, '.js'));
  mkdirSync(dirname(to), { recursive: true });
  if (!CODE.test(path) || path.startsWith('build/')) copyFileSync(join(root, path), to);
  else writeFileSync(to, compiled(path, readFileSync(join(root, path), 'utf8')));
}

/** Relative names of other files in the package's code that lead nowhere. */
export function brokenReferences(folder: string): string[] {
  return [...filesBelow(folder, '.')]
    .filter((path) => /\.m?js$/.test(path) && !path.startsWith('build/'))
    .flatMap((path) =>
      [...readFileSync(join(folder, path), 'utf8').matchAll(/(?:from |import\(|new URL\()'(\.\.?\/[^']+)'/g)]
        .map((match) => match[1] as string)
        .filter((name) => !existsSync(join(folder, dirname(path), name)))
        // The cache of compiled code appears by itself.
        .filter((name) => !name.endsWith('build/compile-cache'))
        .map((name) => `${path}: ${name}`),
    );
}

const isOwnNode = (name: string): boolean => name.startsWith('node-linux-');

/** Packages that the programs need where they run; the Node that a checkout carries is not among them. */
function lockedPackages(lock: Lock): Record<string, LockEntry> {
  return Object.fromEntries(
    Object.entries(lock.packages).filter(
      ([path, entry]) => path !== '' && entry.dev !== true && !isOwnNode(path.replace('node_modules/', '')),
    ),
  );
}

/** Writes the folder `package` of the archive. Built files must be there. */
export function stageNpmPackage(root: string, folder: string, version = readManifest(root).version): void {
  for (const path of PACKED) for (const file of filesBelow(root, path)) packFile(root, file, folder);
  const { name, version: _, description, license, bin, dependencies, ...manifest } = readManifest(root);
  const optionalDependencies = Object.fromEntries(
    Object.entries(manifest.optionalDependencies).filter(([optional]) => !isOwnNode(optional)),
  );
  for (const file of Object.values(bin)) chmodSync(join(folder, file), 0o755);
  const about = {
    name,
    version,
    description,
    license,
    type: 'module',
    engines: { node: `>=${NODE_MAJOR}` },
    bin,
    dependencies,
    optionalDependencies,
  };
  writeJson(join(folder, 'package.json'), about);
  const lock = readJson(join(root, 'package-lock.json')) as Lock;
  writeJson(join(folder, 'npm-shrinkwrap.json'), {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name, version, license, dependencies, optionalDependencies, bin, engines: about.engines },
      ...lockedPackages(lock),
    },
  });
  const broken = brokenReferences(folder);
  if (broken.length > 0) throw new Error(`the package names files that are not in it: ${broken.join(', ')}`);
}

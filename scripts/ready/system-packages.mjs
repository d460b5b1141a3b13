/**
 * The Debian packages that tests need and npm does not carry: a browser (also the source of a software Vulkan driver),
 * a Redis server, the Vulkan loader, promtool, nginx, jq, curl. Nothing is installed without a yes: from the person at the terminal, from
 * SVC_INSTALL=yes, or from a machine that says it is for continuous integration (CI=true). Else they are named, with the command.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readSync, writeSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { NotReady, say } from './say.mjs';

/**
 * @typedef {object} Package
 * @property {string} name
 * @property {string} why
 * @property {(look: Look) => boolean} present
 *
 * @typedef {object} Look
 * @property {(command: string) => boolean} command
 * @property {(file: string) => boolean} library
 */

/** @type {readonly Package[]} */
export const TEST_PACKAGES = [
  { name: 'chromium', why: 'dashboard, browser miner and WebGPU tests', present: (look) => look.command('chromium') },
  { name: 'redis-server', why: 'tests of several pool instances', present: (look) => look.command('redis-server') },
  { name: 'libvulkan1', why: 'WebGPU tests in Node', present: (look) => look.library('libvulkan.so.1') },
  { name: 'prometheus', why: 'tests of the alert rules', present: (look) => look.command('promtool') },
  { name: 'nginx-light', why: 'tests of the site in deploy/nginx', present: (look) => look.command('nginx') },
  { name: 'jq', why: 'tests of the scripts for HiveOS', present: (look) => look.command('jq') },
  { name: 'curl', why: 'tests of the scripts for HiveOS', present: (look) => look.command('curl') },
];

const LIBRARY_HOMES = ['/usr/lib', '/usr/lib64', '/usr/local/lib', '/lib'];

/** @type {(env: NodeJS.ProcessEnv) => Look} */
export const lookAround = (env) => ({
  command: (name) =>
    [...(env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/sbin'].some((home) => existsSync(join(home, name))),
  library: (name) =>
    LIBRARY_HOMES.some((home) => existsSync(join(home, name))) ||
    (existsSync('/usr/lib') &&
      readdirSync('/usr/lib').some((entry) => entry.includes('-linux-') && existsSync(join('/usr/lib', entry, name)))),
});

/**
 * @typedef {object} System
 * @property {Look} look
 * @property {NodeJS.ProcessEnv} env
 * @property {boolean} isRoot
 * @property {(text: string) => void} say
 * @property {(question: string) => boolean | undefined} ask undefined where there is nobody to ask
 * @property {(command: string, args: string[]) => number | null} run exit status, or null when it could not be started
 */

/** @type {System['ask']} */
function ask(question) {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const terminal = openSync('/dev/tty', 'r+');
  try {
    writeSync(terminal, `${question} [y/N] `);
    const answer = Buffer.alloc(256);
    return /^\s*y(es)?\s*$/i.test(answer.toString('utf8', 0, readSync(terminal, answer)));
  } finally {
    closeSync(terminal);
  }
}

/** @type {() => System} */
export const thisSystem = () => ({
  look: lookAround(process.env),
  env: process.env,
  isRoot: process.getuid?.() === 0,
  say,
  ask,
  run: (command, args) =>
    spawnSync(command, args, {
      stdio: ['ignore', 2, 2],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status,
});

/**
 * Whether anything had to be done.
 * @param {System} system
 */
export function bringSystemPackages(system, packages = TEST_PACKAGES) {
  const missing = packages.filter((entry) => !entry.present(system.look));
  if (missing.length === 0) return false;
  const names = missing.map((entry) => entry.name);
  const list = missing.map((entry) => `${entry.name} (${entry.why})`).join(', ');
  const command = `apt-get install -y --no-install-recommends ${names.join(' ')}`;
  const byHand = `install them yourself: ${system.isRoot ? '' : 'sudo '}${command}`;
  const refuse = (/** @type {string} */ why) => new NotReady(`the tests need ${list}; ${why}; ${byHand}`);

  const { SVC_INSTALL: wish = '', CI: isCi = '' } = system.env;
  if (!['', 'yes', 'no'].includes(wish)) throw new NotReady(`SVC_INSTALL is '${wish}'; use yes or no`);
  if (wish === 'no') throw refuse('SVC_INSTALL=no forbids to install them');
  if (!system.look.command('apt-get')) throw refuse('there is no apt-get here');
  if (wish !== 'yes' && isCi !== 'true') {
    const answer = system.ask(`The tests need ${list}.\nRun '${system.isRoot ? '' : 'sudo '}${command}' now?`);
    if (answer === undefined) throw refuse('nothing is installed without a yes (SVC_INSTALL=yes says it)');
    if (!answer) throw refuse('you said no');
  }
  const prefix = system.isRoot ? [] : ['sudo', '-n'];
  if (!system.isRoot && (!system.look.command('sudo') || system.run('sudo', ['-n', 'true']) !== 0))
    throw refuse('this user may not install packages');

  system.say(`installing ${list}`);
  const run = (/** @type {string} */ line) => {
    const [first, ...rest] = [...prefix, ...line.split(' ')];
    return system.run(/** @type {string} */ (first), rest);
  };
  run('apt-get update -q');
  if (run(command) !== 0) throw refuse('apt-get failed (its reasons are above)');
  const still = missing.filter((entry) => !entry.present(system.look));
  if (still.length > 0) throw refuse(`apt-get did not bring ${still.map((entry) => entry.name).join(', ')}`);
  return true;
}

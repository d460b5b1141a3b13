/**
 * What `npm start`, `npm test` and `npm run bench` call. Runs on any Node >= 20 without a single package: it brings
 * what is missing (packages from npm, Debian packages for the tests, built files), saying what it does, and then hands
 * over to the Node 24 that the project carries. A run that needs nothing new gets there at once, without network.
 */
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUILD_ENVIRONMENT, bringBuilds } from './ready/build-steps.mjs';
import { FORWARDED, findNode, noNodeMessage, runChild } from './ready/carried-node.mjs';
import { boundCompileCaches } from './ready/compile-cache.mjs';
import { bringNodeModules } from './ready/node-modules.mjs';
import { NotReady, say } from './ready/say.mjs';
import { bringSystemPackages, thisSystem } from './ready/system-packages.mjs';
import { runTests } from './ready/tests.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
// The tools below look for their settings where they are started.
process.chdir(root);

/** The end was asked for while something was brought. */
const asked = new AbortController();
const ask = () => asked.abort();

/** @type {Record<string, (words: string[]) => Promise<number>>} */
const tasks = {
  async start(words) {
    const node = await bring();
    const code = await runChild(root, node, [join(root, 'stack/main.ts'), ...words], {}, true);
    // A signal may come before the stack handles it; npm would print an error about that.
    return code === 128 + constants.signals.SIGINT || code === 128 + constants.signals.SIGTERM ? 0 : code;
  },
  async build() {
    await bring();
    return 0;
  },
  test: (words) => test('full', words),
  'test:quick': (words) => test('quick', words),
  'test:deep': (words) => test('deep', words),
  async 'pack:gpu'(words) {
    const node = await bring();
    return runChild(root, node, [join(root, 'scripts/pack-gpu.ts'), ...words]);
  },
  async 'pack:miner'(words) {
    const node = await bring();
    return runChild(root, node, [join(root, 'scripts/pack-miner.ts'), ...words]);
  },
  async release(words) {
    const node = await bring();
    return runChild(root, node, [join(root, 'scripts/release/release.ts'), ...words]);
  },
  async screenshots(words) {
    bringSystemPackages(thisSystem());
    const node = await bring();
    return runChild(root, node, [join(root, 'test/dashboard/screenshots.ts'), ...words]);
  },
  async mutate(words) {
    const node = await bring();
    return runChild(root, node, [join(root, 'test/mutation/run.ts'), ...words]);
  },
  async conformance(words) {
    const node = await bring();
    return runChild(root, node, [join(root, 'test/conformance/run.ts'), ...words]);
  },
  async bench(words) {
    const node = await bring();
    return runChild(root, node, [join(root, 'test/bench/run.ts'), ...words]);
  },
};

/**
 * @param {'quick' | 'full' | 'deep'} level
 * @param {string[]} words
 */
async function test(level, words) {
  bringSystemPackages(thisSystem());
  await bring();
  return runTests(root, level, words);
}

/** Everything but the Debian packages. Returns the Node to run with. */
async function bring() {
  for (const signal of FORWARDED) process.on(signal, ask);
  await bringNodeModules(root, asked.signal);
  boundCompileCaches(root);
  const node = findNode(root);
  if (node === undefined) throw new NotReady(noNodeMessage(root));
  await bringBuilds(root, (command) => runChild(root, node, command, BUILD_ENVIRONMENT));
  asked.signal.throwIfAborted();
  for (const signal of FORWARDED) process.off(signal, ask);
  return node;
}

const [name = '', ...words] = process.argv.slice(2);
const task = tasks[name];
try {
  if (task === undefined) throw new NotReady(`there is no task '${name}'; tasks are ${Object.keys(tasks).join(', ')}`);
  process.exitCode = await task(words);
} catch (error) {
  if (asked.signal.aborted) {
    // What was cut short is no failure: `npm start` ends with 0, as when the stack was stopped.
    say('stopped');
    process.exitCode = name === 'start' ? 0 : 130;
  } else {
    if (!(error instanceof NotReady)) throw error;
    say(error.message);
    process.exitCode = 1;
  }
}

/**
 * Starts a program of this project on a Node that can run it: in this process when it is new enough, else on the Node
 * that the project carries, passing on signals and the exit code. A program that is started by another one ends with it, even when that
 * one is killed.
 */
import { existsSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { findNode, NODE_MAJOR, noNodeMessage, runChild } from '../scripts/ready/carried-node.mjs';
import { endThisProcess, watchParent } from '../scripts/ready/parent.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * @param {string} name as typed by the user
 * @param {string} folder the folder whose main.ts is the program
 */
export async function launch(name, folder) {
  const main = join(root, folder, 'main.ts');
  const fail = (/** @type {string} */ text, /** @type {number} */ code) => {
    process.stderr.write(`${name}: ${text}\n`);
    process.exitCode = code;
  };
  if (!existsSync(main)) return fail('this program is not built yet (see CHANGELOG.md)', 2);
  watchParent(endThisProcess);
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR) {
    // Compiled code is kept beside the sources, where only those can write who could change the sources too. This halves the start time; without write permission nothing is kept.
    module.enableCompileCache?.(join(root, 'build', 'compile-cache'));
    process.argv[1] = main;
    await import(pathToFileURL(main).href);
    return;
  }
  const node = findNode(root);
  if (node === undefined) return fail(noNodeMessage(root), 1);
  // Through this launcher once more, which watches over its parent there.
  process.exitCode = await runChild(root, node, [join(root, 'bin', name), ...process.argv.slice(2)], {}, true);
}

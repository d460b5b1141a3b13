/** Modules of node_modules that a packed folder takes along. */
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The modules with all that they need; npm puts each of them side by side. */
function withDependencies(root: string, names: readonly string[]): Set<string> {
  const all = new Set<string>();
  const add = (name: string): void => {
    const folder = join(root, 'node_modules', name);
    if (all.has(name) || !existsSync(folder)) return;
    all.add(name);
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>;
    };
    for (const needed of Object.keys(dependencies)) add(needed);
  };
  for (const name of names) add(name);
  return all;
}

export function packModules(root: string, names: readonly string[], target: string): void {
  for (const name of withDependencies(root, names))
    cpSync(join(root, 'node_modules', name), join(target, 'node_modules', name), { recursive: true });
}

/** Files and folders of the project, as they are: Node runs the sources. */
export function packSources(root: string, paths: readonly string[], target: string): void {
  for (const path of paths)
    if (existsSync(join(root, path))) cpSync(join(root, path), join(target, path), { recursive: true });
}

/**
 * Prints the help of many commands as JSON: `print-help.ts '[["svcd","run"],["svc-wallet","send"]]'`. One process for all of them, because most of a
 * start is the import of what the programs share; a query makes each import of a main file a new one.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from './project-files.ts';

const MAINS: Readonly<Record<string, string>> = {
  svcd: 'node',
  'svc-wallet': 'wallet',
  'svc-bridge': 'bridge',
  'svc-proxy': 'proxy',
  'svc-pool': 'pool',
  'svc-miner': 'miner',
};

const asked = JSON.parse(process.argv[2] ?? '[]') as [string, ...string[]][];
// Each main file adds a listener for its defects.
process.setMaxListeners(0);
const print = process.stdout.write.bind(process.stdout);
const texts: string[] = [];
for (const [i, [name, ...words]] of asked.entries()) {
  const main = join(ROOT, MAINS[name] as string, 'main.ts');
  let text = '';
  process.argv = [process.execPath, main, ...words, '--help'];
  process.stdout.write = ((chunk: string) => {
    text += chunk;
    return true;
  }) as typeof process.stdout.write;
  await import(`${pathToFileURL(main).href}?${i}`);
  texts.push(text);
}
print(JSON.stringify(texts));

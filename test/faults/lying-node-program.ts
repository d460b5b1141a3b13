/**
 * A lying node to try a bridge, a pool or a wallet by hand, in front of a real one. It prints where it listens and takes the name of
 * another lie from each line of its input; an address after the name is whom the lie favours:
 *
 *   node test/faults/lying-node-program.ts http://127.0.0.1:28701 amounts
 */
import { createInterface } from 'node:readline';
import { LIES } from './lies.ts';
import { LyingNode } from './lying-node.ts';

const [target, ...first] = process.argv.slice(2);
const names = Object.keys(LIES).join(', ');
if (target === undefined || LIES[first[0] ?? 'truth'] === undefined) {
  console.error(`usage: lying-node-program.ts URL [LIE [ADDRESS]], where LIE is one of ${names}`);
  process.exit(2);
}
const node = await LyingNode.start(target);
const tell = (name = 'truth', address = ''): void => {
  const lie = LIES[name];
  if (lie === undefined) {
    console.error(`no lie is called '${name}'; there are ${names}`);
    return;
  }
  node.lie = lie(address);
  // Listeners reconnect and get the current lie.
  node.dropReaders();
  console.log(`says ${name}`);
};
console.log(`listens ${node.url}`);
tell(...first);
createInterface({ input: process.stdin })
  .on('line', (line) => tell(...line.trim().split(/\s+/)))
  .on('close', () => void node.close());

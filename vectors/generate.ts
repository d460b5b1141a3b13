/**
 * Writes every vector file of this folder that is made here: `npm run vectors`. `npm run vectors -- --check` writes
 * nothing and exits 1 when a file differs from what would be written. Inputs are fixed, so the output is always the same.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { vectorFiles } from './generate/files.ts';

const check = process.argv.includes('--check');
let stale = 0;
for (const [name, make] of Object.entries(vectorFiles)) {
  const path = new URL(name, import.meta.url);
  const text = `${JSON.stringify(make(), null, 1)}\n`;
  if (!check) {
    writeFileSync(path, text);
    console.log(`wrote vectors/${name}`);
  } else if (readFileSync(path, 'utf8') !== text) {
    console.error(`vectors/${name} differs from what the code makes; run: npm run vectors`);
    stale++;
  }
}
process.exitCode = stale === 0 ? 0 : 1;

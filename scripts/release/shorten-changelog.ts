/**
 * `node scripts/release/shorten-changelog.ts SHORT`: the unreleased section of CHANGELOG.md becomes the one of the file SHORT, and what stood there
 * goes to the top of the history in docs/lab. For a release whose list has grown too long to be read.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shortened } from './version.ts';

const root = join(import.meta.dirname, '../..');
const [changelog, history] = ['CHANGELOG.md', 'docs/lab/changelog.md'].map((name) => join(root, name)) as [
  string,
  string,
];
const [short] = process.argv.slice(2);
if (short === undefined || !existsSync(short)) {
  process.stderr.write('usage: node scripts/release/shorten-changelog.ts SHORT (a file with an unreleased section)\n');
  process.exit(2);
}
const told = existsSync(history) ? readFileSync(history, 'utf8') : undefined;
const made = shortened(readFileSync(changelog, 'utf8'), readFileSync(short, 'utf8'), told);
if (made === undefined) {
  process.stderr.write('shorten-changelog: one of both has no unreleased section\n');
  process.exit(1);
}
writeFileSync(changelog, made.changelog);
writeFileSync(history, made.history);

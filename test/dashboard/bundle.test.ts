/** What a visitor downloads at the first look, and that nothing of it comes from elsewhere. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { BUILT_PAGE } from './served-page.ts';

const FIRST_LOAD = 120 * 1024;
const page = readFileSync(join(BUILT_PAGE, 'index.html'), 'utf8');
const named = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);

/** A script with all that it loads at once. */
const partsOf = (name: string, found = new Set<string>()): Set<string> => {
  if (found.has(name)) return found;
  found.add(name);
  const text = readFileSync(join(BUILT_PAGE, 'assets', name), 'utf8');
  for (const [, part] of text.matchAll(/from\s*[`"']\.\/([\w.-]+\.js)[`"']/g)) partsOf(part as string, found);
  return found;
};
const scriptOf = (start: string): string =>
  readdirSync(join(BUILT_PAGE, 'assets')).find((file) => file.startsWith(start) && file.endsWith('.js')) as string;

test('the first figures need less than a fifth of it: charts, lists and all other pages come later', () => {
  const files = named.filter((name) => name.endsWith('.js'));
  const size = files.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILT_PAGE, name))).length, 0);
  expect(size).toBeLessThan(FIRST_LOAD / 5);
});

test('the first load is at most 120 KB compressed, and the miner is not part of it', () => {
  expect(named.length).toBeGreaterThanOrEqual(3);
  const later = [...partsOf(scriptOf('pool-details-')), scriptOf('english-pages-')].map((name) => `./assets/${name}`);
  const files = [...new Set(['./index.html', ...named, ...later])].map((name) => readFileSync(join(BUILT_PAGE, name)));
  const size = files.reduce((sum, file) => sum + gzipSync(file).length, 0);
  expect(size).toBeLessThan(FIRST_LOAD);
  expect([...named, ...later].filter((name) => /mine-page|\.wasm|\.wgsl|worker/.test(name))).toEqual([]);
});

/** In texts for people and names of formats: the page asks none of them, and its policy would not let it. */
const WRITTEN = new Set(['www.w3.org', '127.0.0.1', 'discord.com', 'api.telegram.org', 'ntfy.sh']);

test('everything is addressed relative to the page: no other host, any path prefix', () => {
  for (const name of named) expect(name).toMatch(/^\.\//);
  for (const name of readdirSync(join(BUILT_PAGE, 'assets')).filter((file) => /\.(js|css)$/.test(file))) {
    const text = readFileSync(join(BUILT_PAGE, 'assets', name), 'utf8');
    const hosts = [...text.matchAll(/https?:\/\/([a-z0-9.-]+)/gi)].map((match) => match[1]);
    expect(
      hosts.filter((host) => !WRITTEN.has(host as string)),
      name,
    ).toEqual([]);
  }
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|style=/);
});

/** What a visitor downloads at the first look, and that nothing of it comes from elsewhere. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { BUILT_PAGE } from './served-page.ts';

const FIRST_LOAD = 120 * 1024;
const page = readFileSync(join(BUILT_PAGE, 'index.html'), 'utf8');
const named = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);

test('the first load is at most 120 KB compressed, and the miner is not part of it', () => {
  expect(named.length).toBeGreaterThanOrEqual(3);
  const files = ['index.html', ...named.filter((name) => !name.startsWith('./api/'))].map((name) =>
    readFileSync(join(BUILT_PAGE, name)),
  );
  const size = files.reduce((sum, file) => sum + gzipSync(file).length, 0);
  expect(size).toBeLessThan(FIRST_LOAD);
  expect(named.filter((name) => /mine-page|\.wasm|\.wgsl|worker/.test(name))).toEqual([]);
});

test('everything is addressed relative to the page: no other host, any path prefix', () => {
  for (const name of named) expect(name).toMatch(/^\.\//);
  for (const name of readdirSync(join(BUILT_PAGE, 'assets')).filter((file) => /\.(js|css)$/.test(file))) {
    const text = readFileSync(join(BUILT_PAGE, 'assets', name), 'utf8');
    const hosts = [...text.matchAll(/https?:\/\/([a-z0-9.-]+)/gi)].map((match) => match[1]);
    expect(
      hosts.filter((host) => host !== 'www.w3.org' && host !== '127.0.0.1'),
      name,
    ).toEqual([]);
  }
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|style=/);
});

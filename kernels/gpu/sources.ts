/**
 * Loads the .wgsl files beside this one: from the disk in Node, over HTTP in a page. The URLs are literal so that a
 * bundler finds the files. Loads in browsers.
 */
import type { Sources } from './assemble.ts';

const FILES = {
  blake3: new URL('./blake3.wgsl', import.meta.url),
  dataset: new URL('./dataset.wgsl', import.meta.url),
  job: new URL('./job.wgsl', import.meta.url),
  pages: new URL('./pages.wgsl', import.meta.url),
  'search-shuffle': new URL('./search-shuffle.wgsl', import.meta.url),
  'search-stream': new URL('./search-stream.wgsl', import.meta.url),
  'search-workgroup': new URL('./search-workgroup.wgsl', import.meta.url),
  'shuffle-fold': new URL('./shuffle-fold.wgsl', import.meta.url),
  'shuffle-rounds': new URL('./shuffle-rounds.wgsl', import.meta.url),
  stash: new URL('./stash.wgsl', import.meta.url),
} as const;

async function text(url: URL): Promise<string> {
  if (url.protocol === 'file:') return process.getBuiltinModule('node:fs').readFileSync(url, 'utf8');
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url.href} answered ${response.status}`);
  return response.text();
}

export async function loadSources(): Promise<Sources> {
  const entries = await Promise.all(Object.entries(FILES).map(async ([name, url]) => [name, await text(url)] as const));
  return Object.fromEntries(entries);
}

/** The WebAssembly backend in a real browser: bundled, in an isolated page with threads, and in an ordinary one without. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { bigintToBytesBE, toHex } from '../../protocol/bytes.ts';
import { launch, serveBuilt, UNLIMITED } from '../chromium.ts';
import type { PageSearch } from './page/page.ts';
import { noiseHeader, referenceHasher, TINY } from './tiny-network.ts';

const directory = mkdtempSync(join(tmpdir(), 'svc-test-'));

beforeAll(async () => {
  const root = new URL('./page', import.meta.url).pathname;
  await build({ root, logLevel: 'error', build: { outDir: directory, target: 'esnext' }, worker: { format: 'es' } });
});
afterAll(() => rmSync(directory, { recursive: true }));

const header = noiseHeader(3);
const target = bigintToBytesBE((1n << 256n) / 20n, 32);
const NONCES = 2_000;

function expectedHits(): string[] {
  const reference = referenceHasher(TINY, 0);
  const tried = new Uint8Array(header);
  const found: string[] = [];
  for (let nonce = 0; nonce < NONCES; nonce++) {
    tried.set(bigintToBytesBE(BigInt(nonce), 6).reverse(), 304);
    const hash = toHex(reference(tried));
    if (hash <= toHex(target)) found.push(`${toHex(tried.slice(304))} ${hash}`);
  }
  return found.sort();
}

test.each([
  ['an isolated page, threads over shared memory', true, 'CPU, 2 threads'],
  ['an ordinary page, one thread', false, 'CPU, 1 thread'],
])('%s', async (_, isolated, name) => {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(UNLIMITED);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(await serveBuilt(directory, isolated));
  const expected = expectedHits();
  for (const mode of ['full', 'light'] as const) {
    const what: PageSearch = { network: TINY, mode, header: toHex(header), target: toHex(target), nonces: NONCES };
    const result = await page.evaluate((search) => window.search(search), what);
    expect(result.isolated).toBe(isolated);
    expect(result.name).toBe(mode === 'light' ? `${name}, light` : name);
    expect(result.hits).toEqual(expected);
  }
  expect(errors).toEqual([]);
});

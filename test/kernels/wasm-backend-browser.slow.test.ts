/** The WebAssembly backend in a real browser: bundled, in an isolated page with threads, and in an ordinary one without. */

import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { chromium } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { bigintToBytesBE, toHex } from '../../protocol/bytes.ts';
import type { PageSearch } from './page/page.ts';
import { noiseHeader, referenceHasher, TINY } from './tiny-network.ts';

const directory = mkdtempSync(join(tmpdir(), 'svc-test-'));
const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };

beforeAll(async () => {
  const root = new URL('./page', import.meta.url).pathname;
  await build({ root, logLevel: 'error', build: { outDir: directory, target: 'esnext' }, worker: { format: 'es' } });
}, 120_000);
afterAll(() => rmSync(directory, { recursive: true }));

async function serve(isolated: boolean): Promise<string> {
  const headers = isolated
    ? { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' }
    : {};
  const server: Server = createServer(async (request, response) => {
    const path = request.url === '/' ? '/index.html' : (request.url ?? '');
    response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain', ...headers });
    response.end(await readFile(join(directory, path)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

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
])('%s', { timeout: 120_000 }, async (_, isolated, name) => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(await serve(isolated));
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

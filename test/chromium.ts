/** Debian's Chromium, headless, with WebGPU on whatever card there is or on its software one, and pages served to it. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { watchPages } from './watch/pages.ts';
import { watch } from './watch/watch.ts';

/** Chromium takes the last list of several, so what Playwright leaves out is named here again (test/guards/chromium-features.test.ts). */
export const LEFT_OUT = [
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
  // Every context is a window. Two pages of its own for the suggestions below its address bar, and a process for a page to come, took more than half of what a small test takes.
  'SpareRendererForSitePerProcess',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'WebUIOmniboxPopup',
];

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--enable-unsafe-webgpu',
  // Small shared-memory file systems, as containers have them, crash pages otherwise.
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--disable-features=${LEFT_OUT.join(',')}`,
];

/** Playwright's own limits count on the clock, which says how busy the machine is: the watch ends what does not move. */
export const UNLIMITED = 0;

export async function launch(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS, timeout: UNLIMITED });
  watchPages(browser, watch);
  return browser;
}

const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
  '.wgsl': 'text/plain',
};
const ISOLATION = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

/** Serves a built page until the test ends; only an isolated page may share memory with its workers. */
export async function serveBuilt(folder: string, isIsolated: boolean): Promise<string> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://page');
    const path = join(folder, pathname === '/' ? 'index.html' : pathname);
    if (!existsSync(path)) return response.writeHead(404).end();
    const type = { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' };
    return response.writeHead(200, { ...type, ...(isIsolated ? ISOLATION : {}) }).end(readFileSync(path));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

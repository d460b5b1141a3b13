/**
 * `node scripts/screenshots.ts [URL] [DIR]`: pictures of every page of a running pool (`npm start`), on a desktop and on a phone, light and dark: PAGE-desktop-light.png and so on.
 * Those of docs/images are made with it.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const [url = 'http://127.0.0.1:28740', folder = 'build/screenshots'] = process.argv.slice(2);
const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 360, height: 780 } } as const;
const THEMES = ['light', 'dark'] as const;
/** Charts and tables are drawn after the figures came. */
const SETTLED_MILLIS = 1_500;

async function json<T>(path: string): Promise<T> {
  return (await (await fetch(`${url}/api/v1/${path}`)).json()) as T;
}

async function places(): Promise<[string, string][]> {
  const { miners } = await json<{ miners: { address: string }[] }>('miners?limit=1');
  const { blocks } = await json<{ blocks: { block_id: string; anchor_height: number }[] }>('blocks?limit=1&state=paid');
  const [miner, block] = [miners[0], blocks[0]];
  if (miner === undefined || block === undefined) throw new Error('no block is paid yet: try again in a minute');
  return [
    ['pool', '#/pool'],
    ['miners', '#/miner'],
    ['miner', `#/miner/${miner.address}`],
    ['blocks', '#/blocks'],
    ['block', `#/blocks/${block.block_id}`],
    ['payments', '#/payments'],
    ['explorer', '#/explorer'],
    ['explorer-cut', `#/explorer/cut/${block.anchor_height}`],
    ['explorer-supply', '#/explorer/supply'],
    ['staking', '#/staking'],
    ['connect', '#/connect'],
    ['mine', '#/mine'],
    ['operator', '#/operator'],
  ];
}

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-dev-shm-usage'],
});
try {
  for (const [name, hash] of await places())
    for (const [size, viewport] of Object.entries(SIZES))
      for (const colorScheme of THEMES) {
        const page = await browser.newPage({ viewport, colorScheme });
        await page.goto(`${url}/${hash}`, { waitUntil: 'load' });
        await page.locator('h1').first().waitFor({ state: 'attached' });
        await sleep(SETTLED_MILLIS);
        await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`), fullPage: true });
        await page.close();
      }
} finally {
  await browser.close();
}

/**
 * The browser miner in Chromium at a real pool process: nothing mines before consent; WebAssembly and WebGPU (SwiftShader
 * where there is no card) get shares accepted and the miner's page shows them; one tab at a time; a hidden tab rests; and
 * plain words for what a browser refuses. The pool begins empty, so its empty pages are looked at first.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WorkersDocument } from '../../pool/api/documents.ts';
import { MINER_ADDRESS } from '../miner/pool-fixture.ts';
import { readJson, type StackFixture, startStack } from '../stack/stack-fixture.ts';
import { atOnce, newContext, open, seriousFaults, watch, withBrowser } from './browser.ts';

withBrowser();

let stack: StackFixture;
beforeAll(async () => {
  // No payout is waited for, so cuts need not be quick. A first share takes the slowest device a second or two, not a minute.
  stack = await startStack({ pace: { cutMillis: 600 }, poolWords: ['--start-work', '2000'] });
});
afterAll(() => stack?.stop());

test('every page while there is nothing to show', async () => {
  const { page, complaints } = await open(`${stack.webUrl}/`);
  const empty: [string, RegExp][] = [
    ['#/pool', /begins with the first share[\s\S]*No blocks found yet/],
    ['#/miner', /Nobody is mining here yet/],
    ['#/blocks', /No blocks found yet/],
    [`#/blocks/${'0'.repeat(96)}`, /found no such block/],
    ['#/payments', /No payments yet/],
    ['#/nothing-of-this-name', /No blocks found yet/],
  ];
  for (const [place, text] of empty) {
    await page.goto(`${stack.webUrl}/${place}`);
    await expect.poll(() => page.locator('main').innerText(), { message: place }).toMatch(text);
    await expect.poll(() => seriousFaults(page), { message: place }).toEqual([]);
  }
  // The browser reports the 404 of the block by itself.
  expect(complaints.filter((line) => !/404/.test(line))).toEqual([]);
});

type Wish = { readonly device: string; readonly worker: string };

async function fill(page: Page, wish: Wish): Promise<void> {
  await page.goto(`${stack.webUrl}/#/mine`);
  await page.getByLabel('Your payout address').fill(MINER_ADDRESS);
  await page.getByLabel('Worker name').fill(wish.worker);
  await page.getByLabel('Device').selectOption(wish.device);
  // Few hashes are enough, and other tests want the processor.
  await page.getByLabel(/Time spent mining/).fill(wish.device === 'wasm' ? '0.05' : '0.3');
}

async function start(page: Page, wish: Wish): Promise<void> {
  await fill(page, wish);
  await page.getByLabel(/I agree/).check();
  await page.getByRole('button', { name: 'Start mining' }).click();
}

/** A software adapter compiles for a while before the first share, on a busy machine for minutes. */

const accepted = async (page: Page) => Number((await page.getByTestId('accepted').innerText()).replaceAll(',', ''));
const stop = (page: Page) => page.getByRole('button', { name: 'Stop mining' }).click();

test('nothing mines before consent', async () => {
  const { page } = await open(`${stack.webUrl}/`);
  const sockets: string[] = [];
  page.on('websocket', (socket) => sockets.push(socket.url()));
  await fill(page, { device: 'wasm', worker: 'shy' });
  await expect.poll(() => page.getByRole('button', { name: 'Start mining' }).isDisabled()).toBe(true);
  await page.keyboard.press('Enter');
  await sleep(500);
  expect(sockets.filter((url) => url.includes('stratum'))).toEqual([]);
});

test.each(['wasm', 'light', 'webgpu'])('shares of %s are accepted and shown', async (device) => {
  const { page, complaints } = await open(`${stack.webUrl}/`);
  await start(page, { device, worker: `tab-${device}` });
  try {
    await expect.poll(() => accepted(page)).toBeGreaterThan(2);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${await page.locator('main').innerText()}`);
  }
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  const worker = async () => {
    const { workers } = await readJson<WorkersDocument>(`${stack.webUrl}/api/v1/miners/${MINER_ADDRESS}/workers`);
    return workers.find(({ name }) => name === `tab-${device}`)?.accepted ?? 0;
  };
  await expect.poll(() => worker().catch(() => 0)).toBeGreaterThan(2);
  await stop(page);
  await page.getByRole('button', { name: 'Start mining' }).waitFor();
  await page.goto(`${stack.webUrl}/#/miner/${MINER_ADDRESS}/workers`);
  const row = page.locator('tr', { hasText: `tab-${device}` });
  await expect.poll(() => row.innerText()).toMatch(/PPLNS\s+online/);
  // The browser reports by itself the 404 of an account that has no share in the books yet.
  expect(complaints.filter((line) => !/404/.test(line))).toEqual([]);
});

test('a pool that publishes another address than its jobs pay is reported', async () => {
  const { page } = await open(`${stack.webUrl}/`);
  await page.route('**/api/v1/terms', async (route) => {
    const response = await route.fetch();
    const terms = (await response.json()) as object;
    await route.fulfill({ response, json: { ...terms, address: MINER_ADDRESS } });
  });
  await start(page, { device: 'wasm', worker: 'watchful' });
  await page.getByText('the pool publishes another address than its jobs pay').waitFor();
  await stop(page);
});

test('a second tab is refused in words, and may mine when the first has stopped', async () => {
  const context = await newContext();
  const [first, second] = [await context.newPage(), await context.newPage()];
  const complaints = [watch(first), watch(second)];
  await fill(first, { device: 'wasm', worker: 'one' });
  await first.getByLabel(/I agree/).check();
  // Pressed twice at once: the second press must not lose the slot that the first one gets.
  await first.getByRole('button', { name: 'Start mining' }).evaluate((button) => {
    for (let press = 0; press < 2; press++) (button as HTMLButtonElement).click();
  });
  await first.getByTestId('accepted').waitFor();
  expect(await atOnce(first.getByText('Another tab').count())).toBe(0);
  await start(second, { device: 'wasm', worker: 'two' });
  await second.getByText('Another tab of this page is mining').waitFor();
  await stop(first);
  await first.getByRole('button', { name: 'Start mining' }).waitFor();
  await second.getByRole('button', { name: 'Start mining' }).click();
  await second.getByTestId('accepted').waitFor();
  await expect.poll(() => second.getByText('Another tab').count()).toBe(0);
  // The miner goes on while another page of the site is open, and can be stopped from there.
  await second.getByRole('link', { name: 'Payments' }).click();
  const bar = second.getByRole('complementary', { name: 'Miner of this tab' });
  const shares = async () => Number(/(\d+) shares/.exec(await bar.innerText())?.[1]);
  // The bar says in words when there is no work.
  await expect.poll(shares).toBeGreaterThanOrEqual(0);
  const before = await shares();
  await expect.poll(shares).toBeGreaterThan(before);
  await second.getByRole('link', { name: 'Open the miner' }).click();
  await second.getByRole('button', { name: 'Stop mining' }).waitFor();
  await expect.poll(() => accepted(second)).toBeGreaterThan(before);
  await second.getByRole('link', { name: 'Payments' }).click();
  await bar.getByRole('button', { name: 'Stop mining' }).click();
  await bar.waitFor({ state: 'detached' });
  await second.getByRole('link', { name: 'Mine here' }).click();
  await second.getByText(/^Mined for .* shares accepted/).waitFor();
  await first.getByRole('button', { name: 'Start mining' }).click();
  await first.getByRole('button', { name: 'Stop mining' }).waitFor();
  await stop(first);
  // The browser reports by itself the 404 of an account that has no share in the books yet.
  expect(complaints.map((lines) => lines.filter((line) => !/404/.test(line)))).toEqual([[], []]);
});

/** Chromium without a screen shows every tab; the page is told otherwise. */
const hide = (page: Page, hidden: boolean) =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

test('a hidden tab rests, unless told otherwise', async () => {
  const { page } = await open(`${stack.webUrl}/`);
  await start(page, { device: 'wasm', worker: 'sleeper' });
  await expect.poll(() => accepted(page)).toBeGreaterThan(0);
  await hide(page, true);
  await page.getByText('Paused: the tab is hidden.').waitFor();
  // Shares on their way are still answered; then nothing comes any more.
  const growth = async () => {
    const before = await accepted(page);
    await sleep(1500);
    return (await accepted(page)) - before;
  };
  await expect.poll(growth).toBe(0);
  const resting = await accepted(page);
  await page.getByLabel(/keep mining while the tab is hidden/).check();
  await expect.poll(() => accepted(page)).toBeGreaterThan(resting);
  await page.getByLabel(/keep mining while the tab is hidden/).uncheck();
  await page.getByText('Paused: the tab is hidden.').waitFor();
  await hide(page, false);
  await expect.poll(() => page.getByText('Paused: the tab is hidden.').count()).toBe(0);
  await stop(page);
});

test('a wrong address, a refused WebSocket, no WebGPU and no memory are said in words', async () => {
  const { page, context } = await open(`${stack.webUrl}/#/mine`);
  await page.getByLabel('Your payout address').fill('dsvc1nonsense');
  await page.getByLabel(/I agree/).check();
  await page.getByRole('button', { name: 'Start mining' }).click();
  await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/address/);

  await page.routeWebSocket(/\/stratum\//, (socket) => socket.close());
  await start(page, { device: 'wasm', worker: 'refused' });
  await expect.poll(() => page.locator('main').innerText()).toMatch(/not connected/);
  await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/pool/);
  await stop(page);

  const bare = await context.newPage();
  await bare.addInitScript(() => {
    Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined });
    Object.defineProperty(WebAssembly, 'Memory', {
      value: class {
        constructor() {
          throw new RangeError('could not allocate memory');
        }
      },
    });
  });
  await start(bare, { device: 'webgpu', worker: 'bare' });
  await expect.poll(() => bare.locator('main').innerText()).toMatch(/does not support WebGPU/);
  await bare.reload();
  await start(bare, { device: 'wasm', worker: 'bare' });
  await expect.poll(() => bare.getByRole('alert').innerText()).toMatch(/memory/i);
});

/**
 * The miner of the page in Chromium, at a stratum server of the test: nothing mines before consent; shares are accepted; one tab at a time; a hidden tab rests; and plain words for what a browser
 * refuses. With WebGPU: test/miner/page-miner.slow.test.ts; at a real pool: pages.slow.test.ts, and on every device mining.deep.slow.test.ts.
 */
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { MINER_ADDRESS, POOL_ADDRESS, PoolFixture } from '../miner/pool-fixture.ts';
import { atOnce, newContext, open, seriousFaults, watch } from './browser.ts';
import { answers, CONNECT, POOL } from './made-up-pool.ts';
import { servePage } from './served-page.ts';

/** A pool that has found nothing yet, whose port for pages is a server of the test. */
async function setUp() {
  const pool = await new PoolFixture({
    shareWork: 500n,
    pool: { address: POOL_ADDRESS, name: 'A pool' },
    // Whether hits verify: test/miner/page-miner.slow.test.ts.
    takeShares: true,
  }).listen();
  onTestFinished(() => pool.close());
  const give = answers(0);
  const given: Record<string, object> = { pool: { ...POOL, pool_address: POOL_ADDRESS }, connect: CONNECT };
  const url = await servePage((path, query) => given[path] ?? give(path, query), undefined, {
    stratumPort: pool.webSocketPort,
  });
  return { pool, url };
}

type Wish = { readonly device: string; readonly worker: string };

async function fill(page: Page, url: string, wish: Wish): Promise<void> {
  await page.goto(`${url}#/mine`);
  await page.getByLabel('Your payout address').fill(MINER_ADDRESS);
  await page.getByLabel('Worker name').fill(wish.worker);
  await page.getByLabel('Device').selectOption(wish.device);
  // Few hashes are enough, and other tests want the processor.
  await page.getByLabel(/Time spent mining/).fill(wish.device === 'wasm' ? '0.05' : '0.3');
}

async function start(page: Page, url: string, wish: Wish): Promise<void> {
  await fill(page, url, wish);
  await page.getByLabel(/I agree/).check();
  await page.getByRole('button', { name: 'Start mining' }).click();
}

const accepted = async (page: Page) => Number((await page.getByTestId('accepted').innerText()).replaceAll(',', ''));
const stop = (page: Page) => page.getByRole('button', { name: 'Stop mining' }).click();

test('every page while there is nothing to show', async () => {
  const { url } = await setUp();
  const { page, complaints } = await open(url);
  const empty: [string, RegExp][] = [
    ['#/pool', /No blocks found yet/],
    ['#/miner', /Nobody is mining here yet/],
    ['#/blocks', /No blocks found yet/],
    ['#/payments', /No payments yet/],
    ['#/nothing-of-this-name', /No blocks found yet/],
  ];
  for (const [place, text] of empty) {
    await page.goto(`${url}${place}`);
    await expect.poll(() => page.locator('main').innerText(), { message: place }).toMatch(text);
    await expect.poll(() => seriousFaults(page), { message: place }).toEqual([]);
  }
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('nothing mines before consent; then there is one connection, and its shares are accepted and shown, with the rate that they are worth', async () => {
  const { pool, url } = await setUp();
  const { page, complaints } = await open(url);
  const sockets: string[] = [];
  page.on('websocket', (socket) => {
    if (socket.url().includes('stratum')) sockets.push(socket.url());
  });
  await fill(page, url, { device: 'light', worker: 'shy' });
  await expect.poll(() => page.getByRole('button', { name: 'Start mining' }).isDisabled()).toBe(true);
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByRole('button', { name: 'Start mining' }).isDisabled()).toBe(true);
  expect([sockets, pool.connections]).toEqual([[], 0]);
  await page.getByLabel(/I agree/).check();
  await page.getByRole('button', { name: 'Start mining' }).click();
  await expect.poll(() => accepted(page)).toBeGreaterThan(2);
  expect([sockets.length, pool.connections]).toEqual([1, 1]);
  expect([...pool.clients][0]?.username).toBe(`${MINER_ADDRESS}.shy`);
  // Sixteen accepted shares, or a minute.
  const byPool = page.locator('dl.figure', { hasText: 'Measured by the pool' });
  await expect.poll(() => byPool.innerText()).toMatch(/\d.*H\/s[\s\S]*from your shares/);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await stop(page);
  await page.getByRole('button', { name: 'Start mining' }).waitFor();
  await expect.poll(() => pool.clients.size).toBe(0);
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('a second tab is refused in words, and may mine when the first has stopped', async () => {
  const { url } = await setUp();
  const context = await newContext();
  const [first, second] = [await context.newPage(), await context.newPage()];
  const complaints = [watch(first), watch(second)];
  await fill(first, url, { device: 'light', worker: 'one' });
  await first.getByLabel(/I agree/).check();
  // Pressed twice at once: the second press must not lose the slot that the first one gets.
  await first.getByRole('button', { name: 'Start mining' }).evaluate((button) => {
    for (let press = 0; press < 2; press++) (button as HTMLButtonElement).click();
  });
  await first.getByTestId('accepted').waitFor();
  expect(await atOnce(first.getByText('Another tab').count())).toBe(0);
  await start(second, url, { device: 'light', worker: 'two' });
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
  expect(complaints.map((lines) => lines.filter((line) => !/503/.test(line)))).toEqual([[], []]);
});

/** Chromium without a screen shows every tab; the page is told otherwise. */
const hide = (page: Page, hidden: boolean) =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

test('a hidden tab rests, unless told otherwise', async () => {
  const { url } = await setUp();
  const { page } = await open(url);
  await start(page, url, { device: 'light', worker: 'sleeper' });
  await expect.poll(() => accepted(page)).toBeGreaterThan(0);
  await hide(page, true);
  await page.getByText('Paused: the tab is hidden.').waitFor();
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
  const { url } = await setUp();
  const { page, context } = await open(`${url}#/mine`);
  await page.getByLabel('Your payout address').fill('dsvc1nonsense');
  await page.getByLabel(/I agree/).check();
  await page.getByRole('button', { name: 'Start mining' }).click();
  await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/address/);

  await page.routeWebSocket(/\/stratum\//, (socket) => socket.close());
  await start(page, url, { device: 'wasm', worker: 'refused' });
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
  await start(bare, url, { device: 'webgpu', worker: 'bare' });
  await expect.poll(() => bare.locator('main').innerText()).toMatch(/does not support WebGPU/);
  await bare.reload();
  await start(bare, url, { device: 'wasm', worker: 'bare' });
  await expect.poll(() => bare.getByRole('alert').innerText()).toMatch(/memory/i);
});

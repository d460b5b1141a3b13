/**
 * The dashboard against a real stack: how soon a page shows the pool's figures, what a thousand open pages cost the pool, and
 * the browser miner's rate beside the Node miner's, in turns, on one thread of WebAssembly each.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { WebSocket } from 'ws';
import { launch } from '../chromium.ts';
import { readJson, type StackFixture, startStack } from '../stack/stack-fixture.ts';
import { bench, median } from './harness.ts';

const LOADS = 9;
const PAGES = 1_000;
const CLIENTS = 200;
const WATCH_MILLIS = 20_000;
const ROUNDS = 2;
/** Longer than the window of the miners' short rate. */
const MINE_MILLIS = 15_000;

async function loadMillis(browser: Browser, url: string): Promise<number> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const began = performance.now();
    await page.goto(url, { waitUntil: 'commit' });
    await page.locator('.figure').first().waitFor();
    return performance.now() - began;
  } finally {
    await context.close();
  }
}

async function poolCpuSeconds(stack: StackFixture): Promise<number> {
  const text = await (await fetch(`${stack.webUrl}/metrics`)).text();
  return Number(/^svc_pool_process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
}

async function coreShare(stack: StackFixture): Promise<number> {
  const [before, began] = [await poolCpuSeconds(stack), performance.now()];
  await sleep(WATCH_MILLIS);
  return ((await poolCpuSeconds(stack)) - before) / ((performance.now() - began) / 1000);
}

async function openPages(stack: StackFixture): Promise<{ frames: () => number; close(): void }> {
  let frames = 0;
  const url = `${stack.webUrl.replace('http', 'ws')}/api/v1/live`;
  // Of many addresses: one client may hold only so many.
  const sockets = Array.from(
    { length: PAGES },
    (_, i) => new WebSocket(url, { localAddress: `127.0.1.${1 + (i % CLIENTS)}` }),
  );
  for (const socket of sockets)
    socket.on('message', () => {
      frames++;
    });
  await Promise.all(
    sockets.map((socket) => new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))),
  );
  return { frames: () => frames, close: () => sockets.forEach((socket) => void socket.terminate()) };
}

const UNITS: Readonly<Record<string, number>> = { 'H/s': 1, 'kH/s': 1e3, 'MH/s': 1e6, 'GH/s': 1e9 };

async function browserRate(browser: Browser, stack: StackFixture, address: string): Promise<number> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`${stack.webUrl}/#/mine`);
    await page.getByLabel('Your payout address').fill(address);
    await page.getByLabel('Device').selectOption('wasm');
    await page.getByLabel('Threads').fill('1');
    await page.getByLabel(/Time spent mining/).fill('1');
    await page.getByLabel(/I agree/).check();
    await page.getByRole('button', { name: 'Start mining' }).click();
    const rate = page.getByTestId('rate');
    await rate.waitFor();
    while ((await rate.innerText()).startsWith('0 ')) await sleep(200);
    await sleep(MINE_MILLIS);
    if ((await rate.count()) === 0)
      throw new Error(`the browser stopped mining: ${await page.locator('main').innerText()}`);
    const [value = '0', unit = 'H/s'] = (await rate.innerText()).split(' ');
    return Number(value) * (UNITS[unit] ?? 1);
  } finally {
    await context.close();
  }
}

async function nodeRate(stack: StackFixture): Promise<number> {
  await stack.startMiner();
  const stats = `http://127.0.0.1:${stack.ports.minerApi}/v1/stats`;
  const read = async () => (await readJson<{ hash_rate: { '10s': number | null } }>(stats)).hash_rate['10s'] ?? 0;
  try {
    while ((await read()) === 0) await sleep(200);
    await sleep(MINE_MILLIS);
    return await read();
  } finally {
    await stack.stopPart('miner');
  }
}

export default bench('the page: first figures, cost of open pages, browser miner beside the Node miner', async (b) => {
  const stack = await startStack({ minerWords: [], pace: { cutMillis: 500, sliceCuts: 24, payoutInterval: '5s' } });
  let browser: Browser | undefined;
  try {
    browser = await launch();
    const loads: number[] = [];
    await loadMillis(browser, stack.webUrl);
    for (let i = 0; i < LOADS; i++) loads.push(await loadMillis(browser, stack.webUrl));
    b.note(`loads: ${loads.map((millis) => millis.toFixed(0)).join(', ')} ms`);
    b.figure('first figures on screen', median(loads), 'ms');

    const idle = await coreShare(stack);
    const pages = await openPages(stack);
    const before = pages.frames();
    const busy = await coreShare(stack);
    b.note(
      `${PAGES} pages got ${((pages.frames() - before) / PAGES / (WATCH_MILLIS / 1000)).toFixed(2)} frames a second each`,
    );
    b.note(
      `processor time of the pool: ${(idle * 100).toFixed(1)} % of a core without them, ${(busy * 100).toFixed(1)} % with them`,
    );
    pages.close();
    b.figure(`${PAGES} open pages`, Math.max(0, busy - idle) * 100, '% of a core');

    const address = await stack.minerAddress();
    const rates: { browser: number[]; node: number[] } = { browser: [], node: [] };
    for (let round = 0; round < ROUNDS; round++) {
      rates.node.push(await nodeRate(stack));
      rates.browser.push(await browserRate(browser, stack, address));
    }
    b.note(
      `rounds: Node ${rates.node.map(Math.round).join(', ')}; browser ${rates.browser.map(Math.round).join(', ')} H/s`,
    );
    const [inBrowser, inNode] = [median(rates.browser), median(rates.node)];
    b.figure('Node miner, 1 thread', inNode, 'H/s');
    b.figure('browser miner, 1 thread', inBrowser, 'H/s', { ratio: inBrowser / inNode, yardstick: 'the Node miner' });
  } finally {
    await browser?.close();
    await stack.stop();
  }
});

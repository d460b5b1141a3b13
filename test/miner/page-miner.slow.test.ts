/**
 * The miner in a real browser: the bundle of the test page, in Chromium, against a real WebSocket server that judges every
 * share with the reference. With WebGPU (SwiftShader where there is no card) and with WebAssembly, isolated and not.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { PageMinerOptions } from '../../miner/browser/page-miner.ts';
import { launch, serveBuilt, UNLIMITED } from '../chromium.ts';
import { count } from '../level.ts';
import { until } from '../until.ts';
import { type FixtureOptions, MINER_ADDRESS, PoolFixture, THIEF_ADDRESS } from './pool-fixture.ts';

let browser: Browser;
let bundle: string;

beforeAll(async () => {
  bundle = join(fileURLToPath(new URL('../..', import.meta.url)), 'build', 'miner-test-page');
  await build({
    root: fileURLToPath(new URL('./page', import.meta.url)),
    base: './',
    logLevel: 'error',
    build: { outDir: bundle, emptyOutDir: true, target: 'esnext', assetsInlineLimit: 0 },
    worker: { format: 'es' },
  });
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
});

async function open(isolated: boolean): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(UNLIMITED);
  page.on('crash', () => console.log('page crashed'));
  page.on('pageerror', (error) => console.log('page error', error.message));
  page.on('console', (message) => message.type() === 'error' && console.log('console', message.text()));
  onTestFinished(() => page.close());
  await page.goto(await serveBuilt(bundle, isolated));
  return page;
}

async function fixture(options: FixtureOptions): Promise<PoolFixture> {
  const pool = await new PoolFixture(options).listen();
  onTestFinished(() => pool.close());
  return pool;
}

const start = (page: Page, options: PageMinerOptions) => page.evaluate((given) => window.miner.start(given), options);
const shown = (page: Page): Promise<string> => page.locator('#stats').innerText();
const told = async (page: Page): Promise<Record<string, unknown>> => JSON.parse(await shown(page));
/** The page tells its figures once a second. */
const lookAgain = { interval: 250 };

/** Each device, each form of the wire, each kind of page; all of them together at the deep level. */
const WAYS = [
  ['wasm', true, 2, 20_000n],
  ['wasm', false, 1, 20_000n],
  ['webgpu', true, 2, 2_000n],
  ['wasm', true, 1, 20_000n],
  ['webgpu', false, 1, 2_000n],
] as const;

test.each(WAYS.slice(0, count({ full: 3, deep: WAYS.length })))(
  'mines with %s, isolated %s, protocol v%i, and its hits verify',
  async (device, isolated, version, shareWork) => {
    const pool = await fixture({ shareWork });
    const page = await open(isolated);
    const url = `ws://127.0.0.1:${pool.webSocketPort}/?protocol=v${version}`;
    await start(page, { url, address: MINER_ADDRESS, worker: 'tab', device, threads: 2 });
    try {
      await until(() => pool.accepted >= 3);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await shown(page)}`);
    }
    // Three are enough. The reference takes 10 ms a share, and a page finds more of them than a busy machine can judge.
    pool.options.shareWork = 1_000_000n;
    pool.notify(true);
    expect(pool.judged.filter(({ code }) => code !== 0)).toEqual([]);
    expect([...pool.clients][0]).toMatchObject({ version, username: `${MINER_ADDRESS}.tab` });
    // The page tells its figures once a second.
    await expect
      .poll(() => told(page), lookAgain)
      .toMatchObject({
        state: 'searching',
        kind: device,
        connected: true,
        ...(device === 'wasm' && { threads: isolated ? 'shared' : 'single' }),
      });
    await page.evaluate(() => window.miner.pause());
    // What is under way comes to its end, then nothing moves.
    let hashes = -1;
    await until(async () => {
      const before = hashes;
      await page.waitForTimeout(700);
      hashes = await page.evaluate(() => window.miner.stats.hashes);
      return hashes === before;
    });
    await page.evaluate(() => window.miner.resume());
    await until(async () => (await page.evaluate(() => window.miner.stats.hashes)) > hashes);
    await page.evaluate(() => window.miner.stop());
    await until(() => pool.clients.size === 0);
    await until(async () => (JSON.parse(await shown(page)) as { state: string }).state === 'off');
  },
);

test('a thief is refused in words, and a wrong address at once', async () => {
  const pool = await fixture({ payTo: THIEF_ADDRESS });
  const page = await open(true);
  const url = `ws://127.0.0.1:${pool.webSocketPort}/`;
  await start(page, { url, address: MINER_ADDRESS, device: 'wasm', threads: 1, throttle: 0.5 });
  await until(async () => (await shown(page)).includes('does not pay your address'));
  expect(pool.judged).toEqual([]);
  await expect(start(page, { url, address: 'nonsense' })).rejects.toThrow(/not an address/);
  await expect(start(page, { url: 'stratum+tcp://x:1', address: MINER_ADDRESS })).rejects.toThrow(/only ws/);
});

test('left to choose, a page with nothing but an imitated card uses the processor, and says so', async () => {
  const pool = await fixture({ shareWork: 20_000n });
  const page = await open(true);
  await start(page, { url: `ws://127.0.0.1:${pool.webSocketPort}/`, address: MINER_ADDRESS, threads: 1 });
  await until(() => pool.accepted >= 1);
  await expect
    .poll(() => told(page), lookAgain)
    .toMatchObject({
      kind: 'wasm',
      notice: expect.stringMatching(/^The processor is used: /),
    });
  await expect.poll(async () => (await told(page)).problem).toBeUndefined();
});

test('a card that was chosen and fails is replaced by the processor', async () => {
  const pool = await fixture({ shareWork: 20_000n });
  const page = await browser.newPage();
  page.setDefaultTimeout(UNLIMITED);
  onTestFinished(() => page.close());
  // A card as the page sees it; the worker that opens it gets none.
  await page.addInitScript(() => {
    const limits = { maxStorageBufferBindingSize: 2 ** 40, maxBufferSize: 2 ** 40, maxStorageBuffersPerShaderStage: 8 };
    const info = { isFallbackAdapter: false, device: '', description: 'A card' };
    Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: async () => ({ info, limits }) } });
    const Plain = Worker;
    const broken = `self.onmessage = (event) => {
      if (event.data.kind === 'open')
        self.postMessage({ kind: 'refused', error: { name: 'GpuError', code: 'gpu_no_adapter', message: 'no adapter' } });
    };`;
    window.Worker = class extends Plain {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(
          options?.name === 'gpu' ? URL.createObjectURL(new Blob([broken], { type: 'text/javascript' })) : url,
          options,
        );
      }
    };
  });
  await page.goto(await serveBuilt(bundle, true));
  await start(page, {
    url: `ws://127.0.0.1:${pool.webSocketPort}/`,
    address: MINER_ADDRESS,
    threads: 1,
    throttle: 0.9,
  });
  await until(() => pool.accepted >= 1);
  await expect.poll(async () => Number((await told(page)).accepted) > 0, lookAgain).toBe(true);
  await expect
    .poll(() => told(page), lookAgain)
    .toMatchObject({
      kind: 'wasm',
      state: 'searching',
      notice: 'The processor is used: no adapter.',
    });
});

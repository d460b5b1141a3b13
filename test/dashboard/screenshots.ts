/**
 * `npm run screenshots -- [DIR]`: pictures of every page of the dashboard and of the status page, at the sizes of a desktop and of a phone, light and dark, as PAGE-SIZE-COLOURS.webp into docs/images.
 * A whole stack of its own is started and mined at by three miners with fixed addresses until the pool has paid; the page is Debian's Chromium. Rates and times are measured, so
 * they differ a little between runs.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { developmentKey } from '../../node/genesis/development.ts';
import type { BlocksDocument, PaymentsDocument, PoolDocument } from '../../pool/api/documents.ts';
import { formatAddress } from '../../protocol/address.ts';
import { freePort } from '../../runtime/free-port.ts';
import { files, minerPart } from '../../stack/parts.ts';
import { RunningPart } from '../../stack/process.ts';
import { launch } from '../chromium.ts';
import { readJson, type StackFixture, startStack } from '../stack/stack-fixture.ts';
import { until } from '../until.ts';

const FOLDER = resolve(process.argv[2] ?? 'docs/images');
const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } } as const;
const COLOURS = ['light', 'dark'] as const;
/** The page's own pictures of what it just read: charts, live frames, sparks of a block. */
const SETTLED_MILLIS = 500;
/** Long lists need not be shown to their ends. */
const MOST_HEIGHT = { desktop: 1300, phone: 1600 } as const;
/** Of WebP. */
const QUALITY = 0.4;
const ENOUGH = { blocks: 8, payments: 3 };
/** Hashes: a block every two seconds or so of miners with a twentieth of a core each, and several shares for each block; on a busy machine every ten seconds. */
const BLOCK_WORK = 30_000;
const SHARE_WORK = 2_000;
const PAID_MILLIS = 1_800_000;
/** Asked more often, the pool answers an address that it has had enough. */
const ASKED_MILLIS = 1_000;

/** A page of the dashboard by its hash, or another one by its path. */
type Visit = {
  readonly name: string;
  readonly hash?: string;
  readonly path?: string;
  readonly shows: RegExp;
  act?(page: Page): Promise<void>;
};

const minerAddress = (name: string): string => formatAddress(developmentKey(name).address, 'development');

async function startMiner(stack: StackFixture, wish: { address: string; rig: string; solo: boolean }) {
  const data = join(stack.data, wish.rig);
  mkdirSync(files(data).logs, { recursive: true });
  const ports = {
    ...stack.ports,
    minerApi: await freePort(),
    pplns: wish.solo ? stack.ports.solo : stack.ports.pplns,
  };
  const { words, ...part } = minerPart(data, ports, wish.address, false);
  const named = words.map((word) => (word.startsWith(wish.address) ? `${wish.address}.${wish.rig}` : word));
  const miner = new RunningPart({ ...part, words: [...named, '--throttle', '5', '-p', `d=${SHARE_WORK}`] });
  await miner.ready(new AbortController().signal);
  return miner;
}

const tokenOf = (stack: StackFixture): string => readFileSync(join(stack.files.pool, 'operator.token'), 'utf8').trim();

async function edit(stack: StackFixture, name: string, value: string): Promise<void> {
  const answer = await fetch(`${stack.webUrl}/api/v1/operator/settings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokenOf(stack)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, value }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

async function visits(stack: StackFixture, address: string): Promise<Visit[]> {
  const read = <T>(path: string) => readJson<T>(`${stack.webUrl}/api/v1/${path}`);
  const [block] = (await read<BlocksDocument>('blocks?state=paid&limit=1')).blocks;
  const payments = (await read<PaymentsDocument>(`payments?address=${address}`)).payments;
  const payment = payments.find(({ state }) => state === 'finalized');
  const { validators } = await readJson<{ validators: { validator_id: string }[] }>(
    `${stack.apiUrl}/v1/staking/validators`,
  );
  if (block === undefined || payment?.transaction_id == null || validators[0] === undefined)
    throw new Error('nothing was paid');
  const typeToken = async (page: Page) => {
    await page.getByLabel(/Operator token/).fill(tokenOf(stack));
    await page.getByRole('button', { name: 'Enter' }).click();
    await page.getByText('Notice to everybody').waitFor();
  };
  const makeAddress = async (page: Page) => {
    await page.getByRole('button', { name: 'Make an address' }).click();
    await page.locator('.words').waitFor();
  };
  const startMining = async (page: Page) => {
    await page.getByLabel('Your payout address').fill(address);
    await page.getByLabel('Worker name').fill('browser');
    await page.getByLabel('Device').selectOption('wasm');
    await page.getByLabel('Threads').fill('1');
    await page.getByLabel(/Time spent mining/).fill('0.1');
    await page.getByLabel(/I agree/).check();
    await page.getByRole('button', { name: 'Start mining' }).click();
    await until(async () => /^[1-9]/.test(await page.getByTestId('accepted').innerText()));
  };
  return [
    { name: 'pool', hash: 'pool', shows: /Newest blocks[\s\S]*In a day/ },
    { name: 'miners', hash: 'miner', shows: /Best shares/ },
    { name: 'miner', hash: `miner/${address}`, shows: /coins a day/ },
    { name: 'blocks', hash: 'blocks', shows: /paid/ },
    { name: 'block', hash: `blocks/${block.block_id}`, shows: /Reward/ },
    { name: 'payments', hash: 'payments', shows: /finalized/ },
    { name: 'explorer', hash: 'explorer', shows: /cut/i },
    { name: 'explorer-cut', hash: `explorer/cut/${block.anchor_height}`, shows: /Cut/ },
    { name: 'explorer-block', hash: `explorer/block/${block.block_id}`, shows: /Work block/ },
    {
      name: 'explorer-transaction',
      hash: `explorer/transaction/${payment.transaction_id}`,
      shows: /finalized/,
    },
    { name: 'explorer-address', hash: `explorer/address/${address}`, shows: /History[\s\S]*received/ },
    { name: 'explorer-validator', hash: `explorer/validator/${validators[0].validator_id}`, shows: /committee/ },
    { name: 'explorer-supply', hash: 'explorer/supply', shows: /coins/ },
    { name: 'staking', hash: `staking/${address}`, shows: /Node to read from/ },
    { name: 'connect', hash: 'connect', shows: /stratum\+tcp/ },
    { name: 'status', path: 'status', shows: /database/i },
    { name: 'mine', hash: 'mine', shows: /I agree/ },
    { name: 'make-address', hash: 'mine', shows: /I agree/, act: makeAddress },
    { name: 'mining', hash: 'mine', shows: /I agree/, act: startMining },
    { name: 'operator', hash: 'operator', shows: /Operator token/, act: typeToken },
  ];
}

/** Chromium's own pictures are three times as large as what its canvas writes: another page makes them small. */
async function picture(page: Page, smaller: Page, most: number): Promise<Buffer> {
  const { width, height } = await page.evaluate(() => ({
    width: document.documentElement.clientWidth,
    height: document.documentElement.scrollHeight,
  }));
  const clip = { x: 0, y: 0, width, height: Math.min(height, most) };
  const whole = await page.screenshot({ clip, fullPage: true });
  const data = await smaller.evaluate(
    async ({ png, quality }) => {
      const image = new Image();
      image.src = `data:image/png;base64,${png}`;
      await image.decode();
      const canvas = document.createElement('canvas');
      canvas.width = image.width;
      canvas.height = image.height;
      canvas.getContext('2d')?.drawImage(image, 0, 0);
      return canvas.toDataURL('image/webp', quality).split(',')[1] as string;
    },
    { png: whole.toString('base64'), quality: QUALITY },
  );
  return Buffer.from(data, 'base64');
}

async function takePictures(stack: StackFixture, address: string): Promise<void> {
  const browser = await launch();
  try {
    const smaller = await browser.newPage();
    for (const { name, hash, path = `#/${hash}`, shows, act } of await visits(stack, address)) {
      const page = await browser.newPage({ viewport: SIZES.desktop, reducedMotion: 'reduce' });
      await page.goto(`${stack.webUrl}/${path}`);
      await until(async () => shows.test(await page.locator('body').innerText()));
      await act?.(page);
      // The news of a block would lie over the page for some seconds. The page's policy admits no other sheet of style.
      await page.evaluate(() => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync('.celebration { display: none } .name .words-of-name { display: inline !important }');
        document.adoptedStyleSheets = [sheet];
      });
      for (const [size, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        for (const colours of COLOURS) {
          await page.emulateMedia({ colorScheme: colours });
          await sleep(SETTLED_MILLIS);
          const image = await picture(page, smaller, MOST_HEIGHT[size as keyof typeof SIZES]);
          const file = `${name}-${size}-${colours}.webp`;
          writeFileSync(join(FOLDER, file), image);
          process.stdout.write(`${file}  ${Math.ceil(image.length / 1000)} kB\n`);
        }
      }
      await page.close();
    }
  } finally {
    await browser.close();
  }
}

mkdirSync(FOLDER, { recursive: true });
const stack = await startStack({
  blockWork: BLOCK_WORK,
  pace: { cutMillis: 400 },
  poolWords: ['--start-work', String(SHARE_WORK)],
});
const miners: RunningPart[] = [];
try {
  await edit(stack, 'pool_name', 'Example pool');
  const address = minerAddress('first miner');
  for (const wish of [
    { address, rig: 'rig1', solo: false },
    { address, rig: 'rig2', solo: false },
    { address: minerAddress('second miner'), rig: 'rig3', solo: true },
  ])
    miners.push(await startMiner(stack, wish));
  await until(
    async () => {
      await sleep(ASKED_MILLIS);
      const pool = await readJson<PoolDocument>(`${stack.webUrl}/api/v1/pool`);
      const { payments } = await readJson<PaymentsDocument>(`${stack.webUrl}/api/v1/payments?address=${address}`);
      const paid = payments.filter(({ state }) => state === 'finalized').length;
      return paid >= ENOUGH.payments && pool.services.every(({ blocks_paid: blocks }) => blocks >= ENOUGH.blocks);
    },
    { millis: PAID_MILLIS },
  );
  await takePictures(stack, address);
} finally {
  for (const miner of miners) await miner.stop();
  await stack.stop();
}

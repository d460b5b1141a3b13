/**
 * The page in Chromium against a real pool that is being mined at: every page with data, in light and dark, without a
 * fault that axe-core calls serious, without a word in the console; the check of a proof; the pool gone and back again;
 * and all of it under a path prefix behind a proxy.
 */
import { readFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { BlocksDocument, MinerDocument, PoolDocument } from '../../pool/api/documents.ts';
import { count, level } from '../level.ts';
import { MINED_BLOCK, readJson, type StackFixture, startStack } from '../stack/stack-fixture.ts';
import { until } from '../until.ts';
import { atOnce, open, seriousFaults, widerThanScreen, withBrowser } from './browser.ts';

withBrowser();

let stack: StackFixture;
let address: string;
let paidBlock: string;

beforeAll(async () => {
  stack = await startStack({
    blockWork: MINED_BLOCK,
    pace: { cutMillis: 200 },
    poolWords: ['--start-work', '8000'],
  });
  address = await stack.startMiner();
  const paid = async () => {
    const { blocks } = await readJson<BlocksDocument>(`${stack.webUrl}/api/v1/blocks?state=paid&limit=1`);
    const miner = await readJson<MinerDocument>(`${stack.webUrl}/api/v1/miners/${address}`).catch(() => undefined);
    return miner !== undefined && miner.paid !== '0' ? blocks[0]?.block_id : undefined;
  };
  paidBlock = await until(paid, { everyMillis: 250 });
  // The pages have what they show; mining on would only take the processor from them.
  await stack.stopPart('miner');
  // Every open page is drawn again at each cut.
  await stack.nodeAt(2_000);
  const figures = async () => (await readJson<PoolDocument>(`${stack.webUrl}/api/v1/pool`)).network_figures;
  const { height } = await figures();
  const goesOn = async () => {
    const now = await figures();
    return now.synced && now.height > height;
  };
  await until(goesOn, { everyMillis: 250 });
});
afterAll(() => stack?.stop());

/** Each page with a text that only its data brings. */
const pages = (): [string, RegExp][] => [
  ['#/pool', /Newest blocks[\s\S]*…[0-9a-f]{6}[\s\S]*Window, PPLNS[\s\S]*Minimum payout[\s\S]*In a day/],
  [`#/miner/${address}`, /coins a day[\s\S]*Best share\s*[1-9]/],
  [`#/miner/${address}/workers`, /Last share[\s\S]*ago/],
  [`#/miner/${address}/payments`, /finalized/],
  [`#/miner/${address}/credits`, /Check my share/],
  [`#/miner/${address}/settings`, /Minimum payout, in coins/],
  [
    '#/miner',
    /Miners of this pool[\s\S]*…[0-9a-z]{6}[\s\S]*Most blocks in the last day[\s\S]*…[0-9a-z]{6}[\s\S]*Best shares[\s\S]*…[0-9a-z]{6}/,
  ],
  ['#/blocks', /paid/],
  [`#/blocks/${paidBlock}`, /Reward\s*[\d.,]+ coins/],
  ['#/payments', /finalized/],
  ['#/connect', new RegExp(`stratum\\+tcp://127\\.0\\.0\\.1:${stack.ports.pplns}`)],
  ['#/staking', /Node to read from/],
  ['#/mine', /I agree that this page may mine/],
  ['#/operator', /Operator token/],
];

async function show(page: Page, url: string, text: RegExp): Promise<void> {
  await page.goto(url);
  await expect.poll(() => page.locator('body').innerText()).toMatch(text);
}

const SCREENS = [
  ['a phone', 360, '100%'],
  ['a desktop at twice the size', 640, '100%'],
  ['a desktop with letters twice the size', 1280, '200%'],
] as const;
const DESKTOP = { width: 1280, height: 720 };

async function showsAt(page: Page, width: number, letters: string): Promise<void> {
  await page.setViewportSize({ width, height: 740 });
  await page.evaluate((size) => {
    document.documentElement.style.fontSize = size;
  }, letters);
}

test('every page with data: without a fault in light and dark, and nowhere wider than a phone, twice the size, or letters twice the size', async () => {
  const { page, complaints } = await open(`${stack.webUrl}/`, { colorScheme: 'light', viewport: DESKTOP });
  for (const [place, text] of pages()) {
    await show(page, `${stack.webUrl}/${place}`, text);
    await expect.poll(() => seriousFaults(page), { message: place }).toEqual([]);
    // The same elements in other colours.
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(() => seriousFaults(page, ['color-contrast']), { message: `${place}, dark` }).toEqual([]);
    await page.emulateMedia({ colorScheme: 'light' });
    for (const [screen, width, letters] of SCREENS) {
      await showsAt(page, width, letters);
      await expect.poll(() => widerThanScreen(page), { message: `${place}, ${screen}` }).toBe(0);
    }
    await showsAt(page, DESKTOP.width, '100%');
  }
  expect(complaints).toEqual([]);
});

test('a page that is opened in the dark is dark, and one that is opened on a phone is no wider', async () => {
  const options = { colorScheme: 'dark', viewport: { width: 360, height: 740 } } as const;
  const { page, complaints } = await open(`${stack.webUrl}/`, options);
  const [place, text] = pages()[0] as [string, RegExp];
  await show(page, `${stack.webUrl}/${place}`, text);
  await expect.poll(() => widerThanScreen(page)).toBe(0);
  await expect.poll(() => seriousFaults(page, ['color-contrast'])).toEqual([]);
  expect(complaints).toEqual([]);
});

test('the calculator follows what is typed, and the colours what is chosen', async () => {
  const { page, complaints } = await open(`${stack.webUrl}/#/pool`, { colorScheme: 'light' });
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'What would I earn?' }) });
  await expect.poll(() => card.innerText()).toMatch(/In a day\s+about [\d.,]+ coins/);
  await card.getByLabel('Hash rate').fill('nothing');
  await expect.poll(() => card.innerText()).toMatch(/Enter a hash rate/);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByLabel('Colours').selectOption('dark');
  await expect.poll(ground).not.toBe(light);
  const dark = await ground();
  await page.reload();
  await expect.poll(ground).toBe(dark);
  expect(complaints).toEqual([]);
});

test('the chart shows what is chosen, and a worker has its own', async () => {
  const { page, complaints } = await open(`${stack.webUrl}/#/pool`);
  // Minutes old: the last hour is shown, and what was measured is said.
  await expect.poll(() => page.getByLabel('Range').inputValue()).toBe('1');
  await expect.poll(() => page.locator('main').innerText()).toMatch(/since the start \d+ (s|min|h) ago/);
  await page.getByLabel('Range').selectOption('24');
  for (const [what, text] of [
    ['Workers', /Workers of the pool: .*\d/],
    ['Luck', /Luck of the pool: .*\d %/],
    ['Payments, coins', /Payments, coins of the pool: .*\d/],
    ['Network difficulty', /Network difficulty of the pool: .*\d \w?H/],
  ] as const) {
    await page.getByLabel('Show').selectOption(what);
    await expect.poll(() => page.locator('figcaption').textContent()).toMatch(text);
  }
  await page.goto(`${stack.webUrl}/#/miner/${address}/workers`);
  const workers = page.locator('section.card', { has: page.getByRole('heading', { name: 'Workers', exact: true }) });
  await workers.locator('button.link').first().click();
  await expect.poll(() => workers.locator('figcaption').textContent()).toMatch(/Hash rate of .*: .*H\/s/);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test('figures move without a reload', async () => {
  const { page } = await open(`${stack.webUrl}/#/pool`);
  const network = page.locator('dl', { hasText: 'Network' });
  const height = async () => /height [\d,]+/.exec(await network.innerText())?.[0];
  await expect.poll(height).toBeDefined();
  const first = await height();
  await expect.poll(height).not.toBe(first);
});

test('a proof is verified in the page, and one with a changed byte is refused', async () => {
  const { page, complaints } = await open(`${stack.webUrl}/#/miner/${address}/credits`);
  const line = page.locator('td', { has: page.getByRole('button', { name: /Check my share/ }) }).first();
  await line.getByRole('button').click();
  await expect.poll(() => line.innerText()).toMatch(/not proven: .*rewards were not compared with a node/);
  await page.getByLabel('Node to compare with').fill(stack.apiUrl);
  await line.getByRole('button').click();
  await expect.poll(() => line.innerText()).toMatch(/Proven: [\d.,]+ of [\d.,]+ coins/);

  await page.route('**/api/v1/proofs/**', async (route) => {
    const answer = await route.fetch();
    const text = await answer.text();
    // One hex digit of the root that everything is proven against.
    const forged = text.replace(/("credit_root":")(.)/, (_, name, digit) => `${name}${digit === '0' ? '1' : '0'}`);
    expect(forged).not.toBe(text);
    await route.fulfill({ response: answer, body: forged });
  });
  await line.getByRole('button').click();
  await expect.poll(() => line.innerText()).toMatch(/does not hold/);
  expect(complaints).toEqual([]);
});

test('an address nobody mined to is answered in words', async () => {
  const stranger = (await readJson<{ pool_address: string }>(`${stack.webUrl}/api/v1/pool`)).pool_address;
  const { page } = await open(`${stack.webUrl}/#/miner/${stranger}`);
  await expect.poll(() => page.locator('main').innerText()).toMatch(/never received a share from that address/);
  await page.goto(`${stack.webUrl}/#/miner/${encodeURIComponent('<b>nobody</b>')}`);
  // The form beside it says 'address' too: only the refusal says that this is none.
  await expect.poll(() => page.locator('main').innerText()).toMatch(/not an address: expected/);
  expect(await atOnce(page.locator('main b').count())).toBe(0);
});

test('the operator pauses payouts, bans and lifts, and finds it in the log', async () => {
  const { page, complaints } = await open(`${stack.webUrl}/#/operator`);
  await page.getByLabel(/Operator token/).fill('wrong');
  await page.getByRole('button', { name: 'Enter' }).click();
  await expect.poll(() => page.locator('main').innerText()).toMatch(/Wrong operator token/);
  await page.getByRole('button', { name: 'Another token' }).click();
  await page.getByLabel(/Operator token/).fill(readFileSync(`${stack.files.pool}/operator.token`, 'utf8').trim());
  await page.getByRole('button', { name: 'Enter' }).click();
  // For this tab it is kept.
  await page.reload();
  // The miner was stopped before.
  await page.getByText('0 of 0 connections of this instance').waitFor();
  await page.getByRole('button', { name: 'Pause payouts' }).click();
  await page.getByRole('button', { name: 'Resume payouts' }).click();
  await page.getByRole('button', { name: 'Pause payouts' }).waitFor();
  const said = 'Back at noon <b>sharp</b>';
  const notice = page.locator('[data-setting=notice]');
  await notice.getByRole('textbox').fill(said);
  await notice.getByRole('button', { name: 'Change' }).click();
  const visitor = (await open(`${stack.webUrl}/`)).page;
  await expect
    .poll(async () => {
      await visitor.reload();
      return visitor.locator('main').innerText();
    })
    .toContain(said);
  await notice.getByRole('button', { name: /Remove/ }).click();
  const fee = page.locator('[data-setting=fee_solo]');
  await fee.getByRole('textbox').fill('2.5');
  await fee.getByRole('button', { name: 'Change' }).click();
  await expect.poll(() => fee.innerText()).toMatch(/Announced: 2\.5 from slice .*Changed here; the options say/);
  await fee.getByRole('button', { name: /Undo/ }).click();
  await expect.poll(() => fee.innerText()).not.toMatch(/Announced|Changed here/);
  await expect.poll(() => page.getByRole('heading', { name: 'Options' }).count()).toBe(1);
  await page.getByLabel(/mining address to ban/).fill('192.0.2.7');
  await page.getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByRole('button', { name: 'Lift' }).click();
  await expect
    .poll(() => page.locator('main').innerText())
    .toMatch(/Nobody is banned[\s\S]*Operator log[\s\S]*192\.0\.2\.7[\s\S]*fee_solo: from .* to .2\.5. from slice/);
  await expect.poll(() => page.locator('tr', { hasText: 'Difference' }).innerText()).toMatch(/0\.00/);
  // Noted by the accountant of this pool.
  await expect
    .poll(() => page.locator('.charts figcaption').allTextContents())
    .toEqual([
      expect.stringMatching(/^Refused shares: /),
      expect.stringMatching(/^Books’ lag, in cuts: .* \d+(;|$)/),
      expect.stringMatching(/^Payouts under way: .* \d+(;|$)/),
      expect.stringMatching(/^Wallet, in coins: .* [\d,]+\.\d+(;|$)/),
      expect.stringMatching(/^Connections: .* \d+(;|$)/),
    ]);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  // The wrong token is the one thing the browser itself reports.
  expect(complaints.filter((line) => !/401/.test(line))).toEqual([]);
});

/** At full speed a page finds so many blocks that every program is busy with them. */
async function mineLittle(page: Page): Promise<void> {
  await page.getByLabel('Device').selectOption('wasm');
  await page.getByLabel(/Time spent mining/).fill('0.05');
}

/** Strips nothing and adds nothing but what a proxy must: the prefix is the pool's own option. */
async function proxyBelow(prefix: string): Promise<string> {
  const target = { host: '127.0.0.1', port: stack.ports.web };
  const below = (path: string | undefined) => (path ?? '').slice(prefix.length) || '/';
  const proxy = createServer((request, response) => {
    if (!request.url?.startsWith(`${prefix}/`)) {
      response.writeHead(404).end();
      return;
    }
    const onward = forward({ ...target, method: request.method, path: below(request.url), headers: request.headers });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.writeHead(502).end());
    request.pipe(onward);
  });
  proxy.on('upgrade', (request, socket, head) => {
    const onward = connect(target, () => {
      const lines = request.rawHeaders.flatMap((name, i) =>
        i % 2 === 0 ? [`${name}: ${request.rawHeaders[i + 1]}`] : [],
      );
      onward.write(`GET ${below(request.url)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${prefix}/`;
}

test('works under a path prefix behind a proxy: pages, live figures, miner', async () => {
  const url = await proxyBelow('/mining/pool');
  const { page, complaints } = await open(url);
  for (const [place, text] of pages().slice(0, count({ full: 3, deep: 100 }))) await show(page, `${url}${place}`, text);
  await expect.poll(() => page.locator('.banner').count()).toBe(0);
  await page.goto(`${url}#/mine`);
  await page.getByLabel('Your payout address').fill(address);
  await page.getByLabel('Worker name').fill('behind-a-proxy');
  await mineLittle(page);
  await page.getByLabel(/I agree/).check();
  await page.getByRole('button', { name: 'Start mining' }).click();
  await expect.poll(async () => Number(await page.getByTestId('accepted').innerText())).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Stop mining' }).click();
  expect(complaints).toEqual([]);
});

// What a share brings is in test/stack/whole-path.slow.test.ts, the words in pages-in-process.slow.test.ts, the miner above.
if (level === 'deep')
  test('a person with a browser and nothing else makes an address, mines, sees earnings and is paid', async () => {
    const { page, complaints } = await open(`${stack.webUrl}/#/mine`);
    await page.getByRole('button', { name: 'Make an address' }).click();
    await page.locator('ol.words').waitFor();
    const words = await page.locator('ol.words li').allInnerTexts();
    await page.getByRole('button', { name: 'I have written them down' }).click();
    const asked = page.getByLabel(/^Word \d+$/);
    await asked.first().waitFor();
    for (const [i, text] of (await page.locator('label', { hasText: /^Word \d+$/ }).allInnerTexts()).entries())
      await asked.nth(i).fill(words[Number(/\d+/.exec(text)?.[0]) - 1] as string);
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('Your address is ready').waitFor();
    const typed = () => page.getByLabel('Your payout address').inputValue();
    await expect.poll(typed).toMatch(/^dsvc1/);
    const own = await typed();
    await mineLittle(page);
    await page.getByLabel(/I agree/).check();
    await page.getByRole('button', { name: 'Start mining' }).click();
    await expect.poll(() => page.getByTestId('accepted').innerText()).toMatch(/[1-9]/);
    // The miner goes on while its own page is looked at.
    await page.evaluate((whose) => {
      location.hash = `#/miner/${whose}`;
    }, own);
    await expect.poll(() => page.locator('main').innerText()).toMatch(/coins a day/);
    await page.getByRole('navigation', { name: 'Parts of this page' }).getByRole('link', { name: 'Payments' }).click();
    // As long as the first payment of all may take.
    await expect.poll(() => page.locator('main').innerText()).toMatch(/Payments[\s\S]*finalized/);
    const paid = async () => (await readJson<MinerDocument>(`${stack.webUrl}/api/v1/miners/${own}`)).paid;
    await expect.poll(paid).toMatch(/^[1-9]\d*$/);
    expect(complaints.filter((line) => !/404/.test(line))).toEqual([]);
  });

test('the pool goes away and comes back: a banner, no blank page, and live again', async () => {
  const { page } = await open(`${stack.webUrl}/#/pool`);
  await expect.poll(() => page.locator('main').innerText()).toMatch(/Newest blocks/);
  // The code of the small pages is there before it is wanted.
  await page.waitForFunction(() =>
    performance.getEntriesByType('resource').some(({ name }) => name.includes('payments-page')),
  );
  await stack.stopPart('pool');
  await page.locator('.banner').waitFor();
  expect(await atOnce(page.locator('main').innerText())).toMatch(/Newest blocks/);
  // Pages that were never loaded say it too, instead of staying empty.
  await page.evaluate(() => {
    location.hash = '#/payments';
  });
  await expect.poll(() => page.locator('main').innerText()).toMatch(/not responding[\s\S]*Payments/);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await stack.startPool();
  await page.locator('.banner').waitFor({ state: 'detached' });
  await expect.poll(() => page.locator('main').innerText()).toMatch(/finalized/);
});

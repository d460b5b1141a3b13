/** The page for people who use a keyboard, a screen reader or large letters; with a made-up pool behind it. What a tool can find by itself is in pages.slow.test.ts. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { MinersDocument, PoolDocument } from '../../pool/api/documents.ts';
import { atOnce, open, passTime, seriousFaults, withClock } from './browser.ts';
import { operatorAnswers } from './made-up-operator.ts';
import { address, answers, CONNECT, POOL } from './made-up-pool.ts';
import { servePage } from './served-page.ts';

/** What has the focus: its text, its label or its name. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    return element?.getAttribute('aria-label') ?? (element?.textContent || element?.id || element?.tagName) ?? '';
  });

test('paging keeps the focus on its buttons', async () => {
  const give = answers(3);
  const url = await servePage((path, query) => {
    if (path !== 'blocks' || query.get('cursor') === null) return give(path, query);
    return { ...give(path, query), next_cursor: undefined };
  });
  const { page } = await open(`${url}#/blocks`);
  const older = page.getByRole('button', { name: 'Older' });
  await older.focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => older.isDisabled()).toBe(true);
  await page.locator('tbody tr').first().waitFor();
  await expect.poll(() => focused(page)).toBe('Older');
  await page.getByRole('button', { name: 'Newest' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => older.isDisabled()).toBe(false);
  await expect.poll(() => focused(page)).toBe('Newest');
  await expect.poll(() => page.locator('.pager').innerText()).toContain('Page 1');
});

test('a row that goes leaves the focus with its list', async () => {
  let gone = false;
  const give = answers(3);
  const url = await servePage((path, query) => {
    if (path !== 'miners') return give(path, query);
    const { miners } = give(path, query) as MinersDocument;
    return { api_version: 1, miners: gone ? miners.slice(0, 2) : miners } satisfies MinersDocument;
  });
  const tab = await open('about:blank');
  const { page } = tab;
  await withClock(tab);
  await page.goto(`${url}#/miner`);
  const last = page.locator(`a[title="${address(2)}"]`).first();
  await last.focus();
  gone = true;
  // The list is read again every ten seconds.
  await passTime(tab, 10_000);
  await last.waitFor({ state: 'detached' });
  const row = page.locator('section.scroll', { has: page.locator(`a[title="${address(1)}"]`) });
  await expect.poll(() => row.evaluate((element) => element === document.activeElement)).toBe(true);
});

test('the operator’s page: the focus stays near, and what was refused stays said and typed', async () => {
  const bans = ['192.0.2.1', '192.0.2.2'];
  const operator = operatorAnswers(bans);
  const give = answers(3);
  let reads = 0;
  const url = await servePage((path, query, method) => {
    if (path === 'operator/status') reads++;
    return operator(path, query, method) ?? give(path, query);
  });
  const tab = await open('about:blank');
  const { page } = tab;
  await withClock(tab);
  await page.goto(`${url}#/operator`);
  await page.getByLabel(/Operator token/).fill('token');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Bans' }).waitFor();
  await expect.poll(() => focused(page)).toBe('Operator');

  for (const [key, where] of [
    ['192.0.2.1', 'Banned'],
    ['192.0.2.2', 'Bans'],
  ] as const) {
    await page.getByRole('button', { name: `Lift: ${key}` }).focus();
    await page.keyboard.press('Enter');
    await page.getByText(key).waitFor({ state: 'detached' });
    await expect.poll(() => focused(page)).toBe(where);
  }

  const fee = page.getByLabel('Solo fee, in percent', { exact: true });
  await fee.fill('nonsense');
  await page.getByRole('button', { name: 'Change: Solo fee, in percent' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('alert').filter({ hasText: 'that is refused' }).waitFor();
  for (const before of [reads, reads + 1]) {
    await passTime(tab, 10_000);
    await expect.poll(() => reads).toBeGreaterThan(before);
  }
  expect(await atOnce(page.getByRole('alert').innerText())).toBe('that is refused');
  expect(await atOnce(fee.inputValue())).toBe('nonsense');
  expect(await atOnce(focused(page))).toBe('Change: Solo fee, in percent');
  await page.getByLabel(/mining address to ban/).fill('192.0.2.9');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByLabel(/mining address to ban/).inputValue()).toBe('192.0.2.9');
  await expect.poll(() => seriousFaults(page)).toEqual([]);
});

test('each step of making an address begins at its heading', async () => {
  const give = answers(3);
  const url = await servePage((path, query) => (path === 'connect' ? CONNECT : give(path, query)));
  const { page } = await open(`${url}#/mine`);
  await page.getByRole('button', { name: 'Make an address' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('.words').waitFor();
  await expect.poll(() => focused(page)).toBe('Your 24 words');
  await page.getByRole('button', { name: 'Discard them' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => focused(page)).toBe('No address yet?');
});

test('a new page is named, in its title and where the focus goes', async () => {
  const url = await servePage(answers(3));
  const { page } = await open(`${url}#/blocks`);
  await page.locator('tbody tr a').nth(1).focus();
  for (const [place, name] of [
    [`#/blocks/${'ab'.repeat(48)}`, 'Block ababababab…ababab'],
    ['#/explorer/cut/762', 'Cut 762'],
    ['#/connect', 'Connect'],
  ] as const) {
    await page.evaluate((hash) => {
      location.hash = hash;
    }, place);
    await expect.poll(() => focused(page)).toBe(name);
    await expect.poll(() => page.title()).toMatch(new RegExp(`^${name} – `));
    await expect.poll(() => page.locator('main h1').count()).toBe(1);
  }
});

test('leaving a field enters nothing', async () => {
  const url = await servePage(answers(3));
  const { page } = await open(`${url}#/staking`);
  const field = page.getByRole('searchbox', { name: 'Address of a staker' });
  await field.fill(address(1));
  await page.keyboard.press('Tab');
  expect(page.url()).toMatch(/#\/staking$/);
  await expect.poll(() => focused(page)).toBe('Show: Address of a staker');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toContain(`#/staking/${address(1)}`);
});

test('a copy is said, and so is that it was refused', async () => {
  const url = await servePage(answers(3));
  const { page, context } = await open(`${url}#/miner`);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const button = page.getByRole('button', { name: /^Copy dsvc1/ }).first();
  await button.click();
  await expect.poll(() => page.locator('#said').textContent()).toBe('Copied');
  await page.evaluate(() => {
    Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined });
    document.execCommand = () => false;
  });
  await button.click();
  await expect.poll(() => page.locator('#said').textContent()).toMatch(/^Not copied/);
});

test('paused figures stand still, and go on when they are let', async () => {
  const pool: { -readonly [K in keyof PoolDocument]: PoolDocument[K] } = { ...POOL, name: 'One' };
  const url = await servePage(answers(3), { type: 'pool', data: pool });
  const { page } = await open('about:blank');
  let frames = 0;
  page.on('websocket', (socket) => socket.on('framereceived', () => frames++));
  await page.goto(url);
  const heading = () => page.locator('main h1').textContent();
  const pause = page.getByRole('button', { name: 'Pause live figures' });
  await expect.poll(heading).toBe('One');
  await page.getByRole('heading', { name: 'Terms' }).waitFor();
  // What was asked for before the pause is still shown.
  await page.waitForLoadState('networkidle');
  await pause.click();
  await expect.poll(() => pause.getAttribute('aria-pressed')).toBe('true');
  const texts = await page.locator('main').innerText();
  pool.name = 'Two';
  const before = frames;
  await expect.poll(() => frames).toBeGreaterThan(before + 4);
  expect(await atOnce(page.locator('main').innerText())).toBe(texts);
  await pause.click();
  await expect.poll(heading).toBe('Two');
});

test('the calculator is read aloud for what is entered, not for each new pace', async () => {
  const give = answers(3);
  let reads = 0;
  const url = await servePage((path, query) => {
    if (path === 'node/v1/economics/emission') return { work_half: '100000000' };
    if (path !== 'node/v1/chain/rates') return give(path, query);
    reads++;
    return { hashrate: String(reads * 1_000_000_000), cut_millis: 2500 };
  });
  const { page } = await open(url);
  const card = page.locator('section.card', { hasText: 'What would I earn?' });
  await expect.poll(() => card.getByRole('status').innerText()).toMatch(/about/);
  const first = await card.getByRole('status').innerText();
  // Figures that go on are read again at once.
  const before = reads;
  for (let i = 0; i < 4; i++) await page.getByRole('button', { name: 'Pause live figures' }).click();
  await expect.poll(() => reads).toBeGreaterThan(before + 1);
  expect(await atOnce(card.getByRole('status').innerText())).toBe(first);
  await card.getByLabel('Hash rate').fill('10.0');
  await expect.poll(() => card.getByRole('status').innerText()).not.toBe(first);
});

test('a narrow screen shows all columns when asked, and grows no wider', async () => {
  const url = await servePage(answers(3));
  const { page } = await open(`${url}#/miner/${address(1)}/workers`, { viewport: { width: 640, height: 900 } });
  const rejected = page.getByRole('columnheader', { name: 'Rejected', includeHidden: true });
  await rejected.waitFor({ state: 'attached' });
  await expect.poll(() => rejected.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'All columns: Workers' }).click();
  await rejected.waitFor();
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(640);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 900 });
  await expect.poll(() => page.getByRole('button', { name: 'All columns: Workers' }).count()).toBe(0);
});

test('a tablet leaves columns out too, and shows them when asked', async () => {
  const url = await servePage(answers(3));
  const { page } = await open(`${url}#/blocks`, { viewport: { width: 900, height: 900 } });
  const anchor = page.getByRole('columnheader', { name: 'Anchor', includeHidden: true });
  await anchor.waitFor({ state: 'attached' });
  await expect.poll(() => anchor.isVisible()).toBe(false);
  await page.getByRole('button', { name: /^All columns: / }).click();
  await anchor.waitFor();
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(900);
});

/** Lists at the size of a large pool, and texts that others chose, through made-up answers of the API; and answers that come late. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { count, shortId } from '../../dashboard/format.ts';
import type { MinersDocument, PaymentsDocument, PoolBlock } from '../../pool/api/documents.ts';
import { count as times } from '../level.ts';
import { atOnce, open, passTime, seriousFaults, withClock } from './browser.ts';
import { address, answers, block, CONNECT, chainAnswers, MARKUP, POOL, rates } from './made-up-pool.ts';
import { servePage } from './served-page.ts';

test('thousands of miners, workers, blocks and payments in one answer each', async () => {
  const rows = times({ full: 2_000, deep: 10_000 });
  const url = await servePage(answers(rows), { type: 'pool', data: POOL });
  const { page, complaints } = await open(url);
  for (const place of ['#/miner', `#/miner/${address(1)}/workers`, '#/blocks', '#/payments']) {
    await page.goto(`${url}${place}`);
    await page
      .getByText(`${count(rows - 200)} more rows are not shown.`)
      .first()
      .waitFor();
    // The page still answers: a click is handled while the list is shown.
    await page.getByRole('link', { name: 'Connect' }).click();
  }
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('thousands of miners, page by page', async () => {
  const PAGE = 50;
  const miners = times({ full: 150, deep: 10_000 });
  const url = await servePage(
    (path, query) => {
      if (path !== 'miners') return path === 'pool' ? POOL : undefined;
      const from = Number(query.get('cursor') ?? 0);
      const shown = Array.from({ length: PAGE }, (_, i) => ({
        address: address(from + i),
        workers: from + i,
        hash_rate: rates(1e6),
        last_share_millis: null,
      }));
      return { api_version: 1, miners: shown, ...(from + PAGE < miners ? { next_cursor: String(from + PAGE) } : {}) };
    },
    { type: 'pool', data: POOL },
  );
  const { page } = await open(`${url}#/miner`);
  const more = page.getByRole('button', { name: 'More' });
  for (let shown = 0; shown < miners; shown += PAGE) {
    await page
      .locator(`a[title="${address(shown)}"]`)
      .first()
      .waitFor();
    if (shown + PAGE < miners) await more.click();
  }
  await expect.poll(() => more.isDisabled()).toBe(true);
});

test('an address of a table is copied whole', async () => {
  const url = await servePage(answers(3), { type: 'pool', data: POOL });
  const { page, context } = await open(url);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  for (const place of ['#/miner', '#/payments']) {
    await page.goto(`${url}${place}`);
    await page.evaluate(() => navigator.clipboard.writeText('nothing'));
    await page
      .getByRole('button', { name: /^Copy dsvc1/ })
      .nth(1)
      .click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(address(1));
  }
});

test('an address is copied on a page of plain http too, where the browser has no clipboard for it', async () => {
  const url = await servePage(answers(3), { type: 'pool', data: POOL });
  const { page, context } = await open(url);
  await context.addInitScript(() => {
    Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined });
    document.addEventListener('copy', () => {
      document.documentElement.dataset.copied = String(document.getSelection());
    });
  });
  await page.reload();
  await page.goto(`${url}#/miner`);
  const button = page.getByRole('button', { name: /^Copy dsvc1/ }).nth(1);
  await button.click();
  await expect.poll(() => page.evaluate(() => document.documentElement.dataset.copied)).toBe(address(1));
  await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true);
});

test('names with markup are text, wherever they are shown', async () => {
  const url = await servePage(answers(20), { type: 'pool', data: POOL });
  const { page, complaints } = await open(url);
  page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  for (const place of ['#/pool', '#/blocks', `#/miner/${address(1)}/workers`]) {
    await page.goto(`${url}${place}`);
    await expect.poll(() => page.locator('main').innerText()).toContain(MARKUP);
    expect(await atOnce(page.locator('main img').count())).toBe(0);
    await expect.poll(() => seriousFaults(page), { message: place }).toEqual([]);
  }
  await expect.poll(() => page.title()).toBe(`Miner ${shortId(address(1))}, workers – ${MARKUP}`);
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('by keyboard: the skip link stays on the page, and a row that moves keeps the focus', async () => {
  let isReversed = false;
  const first = answers(3);
  const url = await servePage(
    (path, query) => {
      if (path !== 'miners') return first(path, query);
      const all = (first(path, query) as MinersDocument).miners;
      return { api_version: 1, miners: isReversed ? [...all].reverse() : all } satisfies MinersDocument;
    },
    { type: 'pool', data: POOL },
  );
  const tab = await open('about:blank');
  const { page } = tab;
  await withClock(tab);
  await page.goto(`${url}#/payments`);
  await page.locator('tbody tr').first().waitFor();
  await page.locator('button.skip').focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('main');
  expect(page.url()).toContain('#/payments');
  await page.goto(`${url}#/miner`);
  const names = () =>
    page
      .locator('tbody')
      .first()
      .locator('tr td:first-child a')
      .evaluateAll((all) => all.map((each) => each.getAttribute('title')));
  await expect.poll(names).toEqual([0, 1, 2].map(address));
  await page
    .locator(`a[title="${address(2)}"]`)
    .first()
    .focus();
  // The list is read again every ten seconds.
  isReversed = true;
  await passTime(tab, 10_000);
  await expect.poll(names).toEqual([2, 1, 0].map(address));
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('title'))).toBe(address(2));
});

test('a miner’s page has parts: the keyboard stays on the chosen one, and a list is saved as a file of all its pages', async () => {
  const give = answers(3);
  const url = await servePage(
    (path, query) => {
      const given = give(path, query) as PaymentsDocument;
      // Two pages of three.
      const next = query.get('cursor') === null ? { next_cursor: 'next' } : {};
      return path === 'payments' ? { ...given, ...next } : given;
    },
    { type: 'pool', data: POOL },
  );
  const { page, complaints } = await open(`${url}#/miner/${address(1)}`);
  const parts = page.getByRole('navigation', { name: 'Parts of this page' });
  for (const [name, text] of [
    ['Workers', 'Last share'],
    ['Credits', 'No credits yet'],
    ['Settings', 'Minimum payout, in coins'],
    ['Payments', 'Transaction'],
  ] as const) {
    await parts.getByRole('link', { name }).focus();
    await page.keyboard.press('Enter');
    await page.getByText(text).first().waitFor();
    await expect.poll(() => page.title()).toContain(`, ${name.toLowerCase()}`);
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(name);
    await expect.poll(() => seriousFaults(page), { message: name }).toEqual([]);
  }
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: /^CSV: payments/ }).click(),
  ]);
  const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
  expect(lines[0]).toBe('"created","address","amount_coins","state","transaction","final_cut"');
  expect(lines).toHaveLength(7);
  await page.getByText('6 rows').waitFor();
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('a miner that asks for it is notified of a payment', async () => {
  const payment = (answers(2)('payments', new URLSearchParams()) as PaymentsDocument).payments[1];
  const url = await servePage(answers(2), { type: 'payment', data: payment as NonNullable<typeof payment> });
  const { page, context, complaints } = await open('about:blank');
  await context.grantPermissions(['notifications'], { origin: new URL(url).origin });
  await page.addInitScript(() => {
    const shown: string[] = [];
    const Told = class {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title: string, { body }: { body: string }) {
        shown.push(`${title}: ${body}`);
      }
    };
    Object.assign(globalThis, { shown, Notification: Told });
  });
  const shown = () => page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown);
  await page.goto(`${url}#/miner/${address(1)}/settings`);
  await page.getByLabel(/Notify me about payments/).waitFor();
  expect(await shown()).toEqual([]);
  await page.getByLabel(/Notify me about payments/).check();
  await expect.poll(shown).toEqual(['Payment received: 0.000001 coins']);
  // It is remembered, and each payment is told once.
  await page.reload();
  await expect.poll(shown).toEqual(['Payment received: 0.000001 coins']);
  await page.getByLabel(/Notify me about payments/).uncheck();
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

/** For how long news of a block is shown. */
const NEWS_MILLIS = 6_000;

test('a block is celebrated once, quietly, and without motion where that is wished', async () => {
  const found: PoolBlock = { ...block(1), state: 'found', reward: null, credited: false, found_millis: Date.now() };
  const url = await servePage(answers(3), { type: 'block', data: found });
  for (const [reducedMotion, display] of [
    ['no-preference', 'block'],
    ['reduce', 'none'],
  ] as const) {
    const tab = await open('about:blank', { reducedMotion });
    const { page, context, complaints } = tab;
    await withClock(tab);
    // The effect lasts some seconds, which a slow test could miss: the page itself notes each one.
    await context.addInitScript(() => {
      const seen = new Map<Element, string>();
      Object.assign(globalThis, { seen });
      new MutationObserver(() => {
        const sparks = document.querySelector('.sparks');
        if (sparks !== null && !seen.has(sparks)) seen.set(sparks, getComputedStyle(sparks).display);
      }).observe(document, { subtree: true, childList: true });
    });
    const seen = () =>
      page.evaluate(() => [...(globalThis as unknown as { seen: Map<Element, string> }).seen.values()]);
    let frames = 0;
    page.on('websocket', (socket) => socket.on('framereceived', () => frames++));
    await page.goto(url);
    const words = page.locator('[data-block]');
    await expect.poll(() => words.textContent()).toBe('Block found with 100 % effort');
    // In the head of the page, where it covers nothing.
    expect(await atOnce(words.evaluate((one) => one.closest('header') !== null))).toBe(true);
    await passTime(tab, NEWS_MILLIS);
    await page.locator('[data-block].hidden-text').waitFor({ state: 'attached' });
    // The same block comes again and again, as its state changes.
    const before = frames;
    await expect.poll(() => frames).toBeGreaterThan(before + 2);
    expect(await seen()).toEqual([display]);
    expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
  }
});

test('news of a block is read whole in the longest languages, and nothing moves for it', async () => {
  for (const locale of ['de-DE', 'es-ES'])
    for (const width of [1280, 360]) {
      // Of an unlucky block: its effort is long.
      const data = { ...block(1), state: 'found', reward: null, credited: false, found_millis: Date.now(), effort: 12 };
      const url = await servePage(answers(3), { type: 'block', data: data as PoolBlock });
      const tab = await open('about:blank', { locale, viewport: { width, height: 800 }, reducedMotion: 'reduce' });
      const { page, context } = tab;
      await withClock(tab);
      await context.addInitScript(() => {
        const seen: { cut?: number; height?: number } = {};
        Object.assign(globalThis, { seen });
        new MutationObserver(() => {
          const news = document.querySelector('.celebration');
          if (news === null || seen.cut !== undefined) return;
          seen.cut = Math.max(news.scrollWidth - news.clientWidth, news.scrollHeight - news.clientHeight);
          seen.height = document.querySelector('header.top')?.clientHeight ?? 0;
        }).observe(document, { subtree: true, childList: true });
      });
      await page.goto(url);
      await page.locator('[data-block]').waitFor({ state: 'attached' });
      await passTime(tab, NEWS_MILLIS);
      await page.locator('[data-block].hidden-text').waitFor({ state: 'attached' });
      const seen = await atOnce(
        page.evaluate(() => ({
          ...(globalThis as unknown as { seen: { cut?: number; height?: number } }).seen,
          after: document.querySelector('header.top')?.clientHeight,
        })),
      );
      expect(seen, `${locale}, ${width}`).toEqual({ cut: 0, height: seen.after, after: seen.after });
    }
});

test('the fields of a form stand apart, and luck is told in numbers that people write', async () => {
  const give = answers(3);
  const luck = [{ service: 'pplns', expected: 1_703.2, found: 505, probability: 1e-40 }];
  const url = await servePage(
    (path, query) => {
      const given = give(path, query);
      return path === `miners/${address(1)}` ? { ...(given as object), luck } : given;
    },
    { type: 'pool', data: POOL },
  );
  const { page } = await open(`${url}#/miner/${address(1)}`);
  await page.getByText('505 blocks found, 1,703 expected').waitFor();
  await page.getByText('off by this much in less than 0.01 % of cases').waitFor();
  await page.getByRole('navigation', { name: 'Parts of this page' }).getByRole('link', { name: 'Settings' }).click();
  const notices = page.locator('section.card', { has: page.getByRole('heading', { name: 'Notices' }) });
  await notices.getByText('Sign on this page').click();
  await notices.getByRole('button', { name: 'Sign and change' }).waitFor();
  const gaps = () =>
    notices.evaluate((card) => {
      const fields = [...card.querySelectorAll('form > label, form > fieldset, details[open] > :is(label, button)')];
      const places = fields.map((field) => field.getBoundingClientRect());
      return places.slice(1).map((place, i) => Math.round(place.top - (places[i]?.bottom ?? 0)));
    });
  await expect.poll(async () => Math.min(...(await gaps()))).toBeGreaterThanOrEqual(8);
});

test('‘Lowest effort’ and its explanation are shown together, or on a phone neither, and nothing is clipped', async () => {
  const give = answers(3);
  const leaders = [{ address: address(1), blocks: 12_345, reward: '1234567890123', luckiest: 0.0003 }];
  const url = await servePage((path, query) => (path === 'leaders' ? { api_version: 1, leaders } : give(path, query)), {
    type: 'pool',
    data: POOL,
  });
  const { page } = await open(`${url}#/miner`);
  const section = page.locator('section.card', { hasText: 'Most blocks in the last day' });
  const column = section.getByRole('columnheader', { name: 'Lowest effort', includeHidden: true });
  const words = section.getByText('‘Lowest effort’ is that of');
  await column.waitFor();
  await expect.poll(() => words.isVisible()).toBe(true);
  await page.setViewportSize({ width: 360, height: 740 });
  await column.waitFor({ state: 'hidden' });
  await expect.poll(() => words.isVisible()).toBe(false);
  await expect.poll(() => section.getByText('With PPLNS everybody shares').isVisible()).toBe(true);
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
});

test('the network’s hash rate says over which time it is, and an estimate claims no hour of it', async () => {
  const give = answers(3);
  const url = await servePage((path, query) => chainAnswers(100)[path] ?? give(path, query));
  const { page } = await open(url);
  await page.getByText('Network hash rate, 4 min').waitFor();
  await page.goto(`${url}#/explorer`);
  await page.getByText('over 96 cuts, about 2 min').waitFor();
  await page.goto(`${url}#/miner/${address(1)}`);
  await page.getByText('at the network’s present pace').waitFor();
});

test('the state of a block and when it is paid are never cut off', async () => {
  const found = { ...block(1), worker: 'rig-1', state: 'found' as const, reward: null, anchor_height: 12_345_670 };
  const blocks = [
    { ...found, reward: '27343967090' },
    { ...found, block_id: 'ab'.repeat(48), state: 'registered' as const, found_millis: Date.now() - 720_000 },
  ];
  const given: Record<string, object> = { pool: POOL, blocks: { api_version: 1, blocks }, ...chainAnswers(100) };
  const url = await servePage((path) => given[path]);
  const { page } = await open(`${url}#/blocks`);
  await page
    .getByText(/reward in about/)
    .first()
    .waitFor();
  for (const width of [1280, 1152, 1024, 768, 390, 360]) {
    await page.setViewportSize({ width, height: 800 });
    const over = () => page.locator('section.scroll').evaluate((one) => one.scrollWidth - one.clientWidth);
    await expect.poll(over, { message: `${width} px` }).toBe(0);
  }
});

test('the picture of blocks shows the newest and stays there; its blocks are in the table too', async () => {
  let cuts = 200;
  const url = await servePage((path) => chainAnswers(cuts)[path]);
  const { page } = await open(`${url}#/explorer`);
  const left = () =>
    page.locator('.graph').evaluate((one) => Math.round(one.scrollWidth - one.clientWidth - one.scrollLeft));
  const newest = page.locator('.graph .anchor').last();
  await expect.poll(() => newest.textContent()).toBe('200');
  await expect.poll(left).toBeLessThanOrEqual(1);
  cuts = 230;
  await expect.poll(() => newest.textContent()).toBe('230');
  await expect.poll(left).toBeLessThanOrEqual(1);
  const rows = page.locator('table', { hasText: 'Newest work blocks' }).locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(10);
  await page.getByRole('button', { name: 'Show all 80 blocks' }).press('Enter');
  await expect.poll(() => rows.count()).toBe(80);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
});

test('pages go on where the answer ended, and a search begins anew', async () => {
  const asked: string[] = [];
  const give = answers(50);
  const url = await servePage(
    (path, query) => {
      if (path === 'blocks') asked.push(query.toString());
      return give(path, query);
    },
    { type: 'pool', data: POOL },
  );
  const { page } = await open(`${url}#/blocks`);
  await page.getByRole('button', { name: 'Older' }).click();
  await page.getByRole('button', { name: 'Newest' }).waitFor();
  await expect.poll(() => asked.at(-1)).toContain('cursor=next');
  await page.getByLabel('State').selectOption('paid');
  await expect.poll(() => asked.at(-1)).toBe('state=paid&limit=50');
  await page.getByRole('searchbox', { name: /Finder’s address/ }).fill('ab'.repeat(48));
  await page.keyboard.press('Enter');
  await expect.poll(() => page.url()).toContain(`#/blocks/${'ab'.repeat(48)}`);
});

test('an API that answers with nonsense or nothing leaves words, never a blank page', async () => {
  const url = await servePage(() => undefined);
  const { page, complaints } = await open(url);
  for (const place of ['#/pool', `#/miner/${address(1)}`, '#/blocks', '#/payments', '#/connect', '#/mine']) {
    await page.goto(`${url}${place}`);
    await expect.poll(() => page.locator('main').innerText(), { message: place }).toMatch(/being gathered/);
  }
  await page.route('**/api/v1/**', (route) => route.fulfill({ body: '<html>', contentType: 'text/html' }));
  await page.goto(`${url}#/blocks`);
  await page.reload();
  await expect.poll(() => page.locator('main').innerText()).toMatch(/status 200/);
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('an address that changes while the page is being drawn is followed', async () => {
  const url = await servePage((path) => (path === 'connect' ? CONNECT : undefined));
  const { page } = await open('about:blank');
  // The earliest moment at which a visitor could click: the links are there, nothing else has run.
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (document.querySelector('nav a') === null) return;
      observer.disconnect();
      location.hash = '#/mine';
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(url);
  await page.getByLabel('Your payout address').waitFor();
});

test('what failed once is asked for again soon, however seldom it changes', async () => {
  let asked = 0;
  const url = await servePage((path) => {
    if (path !== 'connect') return undefined;
    asked += 1;
    return asked > 2 ? CONNECT : undefined;
  });
  const { page } = await open(`${url}#/mine`);
  await page.getByLabel('Your payout address').waitFor();
  expect(asked).toBe(3);
});

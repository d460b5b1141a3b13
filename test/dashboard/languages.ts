/** The page in another language, in Chromium: nothing of it is left in English, nothing is cut off, and it can be chosen at the foot of the page. */
import { expect, test } from 'vitest';
import { ENGLISH } from '../../dashboard/words/english.ts';
import { PAGE_WORDS } from '../../dashboard/words/english-pages.ts';
import { level } from '../level.ts';
import { open, seriousFaults, widerThanScreen } from './browser.ts';
import { operatorAnswers } from './made-up-operator.ts';
import { address, answers, CONNECT, chainAnswers, POOL } from './made-up-pool.ts';
import { servePage } from './served-page.ts';

/** Long enough to be English and nothing else. */
const PHRASES = Object.values({ ...ENGLISH, ...PAGE_WORDS }).filter(
  (text) => /[a-z]+ [a-z]+ [a-z]+/.test(text) && !text.includes('{'),
);

const PLACES = [
  '#/pool',
  '#/miner',
  ...['', '/workers', '/payments', '/credits', '/settings'].map((tab) => `#/miner/${address(1)}${tab}`),
  '#/blocks',
  '#/payments',
  '#/explorer',
  '#/staking',
  '#/connect',
  '#/mine',
  '#/operator',
];

const LANGUAGES = [
  { locale: 'de-DE', title: 'Blöcke', number: '14.400.000' },
  { locale: 'es-ES', title: 'Bloques', number: '14.400.000' },
  { locale: 'zh-CN', title: '区块', number: '14,400,000' },
];

test.each(LANGUAGES.map((language, turn) => ({ ...language, turn })))(
  '$locale: every page, on a phone',
  async ({ locale, title, number, turn }) => {
    const [give, chain, operator] = [answers(3), chainAnswers(100), operatorAnswers(['192.0.2.1'])];
    const pool = { ...POOL, network_figures: { ...POOL.network_figures, height: 14_400_000 } };
    const url = await servePage(
      (path, query, method) =>
        path === 'pool'
          ? pool
          : path === 'connect'
            ? CONNECT
            : (chain[path] ?? operator(path, query, method) ?? give(path, query)),
      { type: 'pool', data: pool },
    );
    const { page, complaints } = await open('about:blank', { locale, viewport: { width: 360, height: 800 } });
    await page.addInitScript(() => sessionStorage.setItem('svc-operator-token', 'token'));
    await page.goto(url);
    const shown = () => page.locator('body').innerText();
    await page.getByRole('link', { name: title, exact: true }).waitFor();
    await expect.poll(shown).toContain(number);
    for (const [i, place] of PLACES.entries()) {
      await page.goto(`${url}${place}`);
      await page.locator('main h1, main h2').first().waitFor();
      await page.waitForFunction(() => document.querySelector('.loading-part') === null);
      if (place === '#/operator') {
        await page.locator('.charts').waitFor();
        // The words of the balance sheet leave room for its amounts.
        const sheet = page.locator('section.scroll', { hasText: /1.350.123/ });
        await expect.poll(() => sheet.evaluate((table) => table.scrollWidth - table.clientWidth)).toBe(0);
      }
      const english = async () => {
        const text = await shown();
        return PHRASES.filter((phrase) => text.includes(phrase));
      };
      await expect.poll(english, { message: place }).toEqual([]);
      // The elements are the same in each language, and in English each page is looked at too.
      if (level === 'deep' || i % LANGUAGES.length === turn)
        await expect.poll(() => seriousFaults(page), { message: place }).toEqual([]);
      await expect.poll(() => widerThanScreen(page), { message: place }).toBe(0);
    }
    expect(complaints.filter((line) => !/404|503/.test(line))).toEqual([]);
  },
);

test('a language that is chosen holds for the next visit', async () => {
  const url = await servePage(answers(3), { type: 'pool', data: POOL });
  const { page } = await open(`${url}#/mine`);
  await page.getByRole('combobox', { name: 'Language' }).selectOption('de');
  await page.getByRole('heading', { name: 'In diesem Browser minen' }).waitFor();
  await page.goto(`${url}#/payments`);
  await page.reload();
  await page.getByRole('heading', { name: 'Zahlungen', level: 1 }).waitFor();
});

/** An address made in the page, in Chromium: it is the one that svc-wallet makes of the words, and no word leaves the page or stays in it. */
import { expect, test } from 'vitest';
import { isAnswered, questionsFor } from '../../dashboard/address/new-address.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { Keyring } from '../../wallet/keys/keyring.ts';
import { openPoolApiBed } from '../attack/pool-api-bed.ts';
import { newContext, seriousFaults, watch } from './browser.ts';
import { BUILT_PAGE } from './served-page.ts';

test('a person without a wallet gets an address and the words for it', async () => {
  const bed = await openPoolApiBed({ page: BUILT_PAGE });
  const context = await newContext();
  const page = await context.newPage();
  const complaints = watch(page);
  const sent: string[] = [];
  context.on('request', (request) => void sent.push(`${request.url()}\n${request.postData() ?? ''}`));
  await page.goto(`http://127.0.0.1:${bed.port}/#/mine`);

  const words = async () => await page.locator('ol.words li').allInnerTexts();
  await page.getByRole('button', { name: 'Make an address' }).click();
  await page.locator('ol.words').waitFor();
  const thrown = await words();
  await page.getByRole('button', { name: 'Discard them' }).click();
  await page.getByRole('button', { name: 'Make an address' }).click();
  await page.locator('ol.words').waitFor();
  const list = await words();
  expect(list).toHaveLength(24);
  expect(list).not.toEqual(thrown);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.emulateMedia({ media: 'print' });
  await expect.poll(() => page.getByLabel('Your payout address').isVisible()).toBe(false);
  await expect.poll(() => page.locator('ol.words').isVisible()).toBe(true);
  await page.emulateMedia({ media: 'screen' });

  await page.getByRole('button', { name: 'I have written them down' }).click();
  const asked = page.getByLabel(/^Word \d+$/);
  await asked.first().waitFor();
  await expect.poll(() => page.locator('ol.words').count()).toBe(0);
  for (let i = 0; i < 3; i++) await asked.nth(i).fill('zebra');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.locator('main').getByText('These words do not match').waitFor();
  const places = (await page.locator('label', { hasText: /^Word \d+$/ }).allInnerTexts()).map(
    (text) => Number(/\d+/.exec(text)?.[0]) - 1,
  );
  for (const [i, place] of places.entries()) await asked.nth(i).fill(list[place] as string);
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('Your address is ready').waitFor();

  const keyring = new Keyring(new WalletRoot(list.join(' '), '', 'development'));
  const { address } = keyring.addressRecord('receive', 0, 0);
  await expect.poll(() => page.getByLabel('Your payout address').inputValue()).toBe(address);
  // The page's own text has words of the list, and now and then two in a row: three in a row are the phrase.
  const between = '(\\W|%20|\\+|\\\\n)*';
  const parts = list.slice(2).map((_, i) => new RegExp(list.slice(i, i + 3).join(between), 'i'));
  const kept = await page.evaluate(() =>
    JSON.stringify({ ...localStorage, ...sessionStorage, url: location.href, body: document.body.innerText }),
  );
  for (const text of [...sent.filter((one) => !one.includes('/assets/')), kept])
    for (const part of parts) expect(text).not.toMatch(part);
  expect(complaints).toEqual([]);
});

test('three words are asked for, each another one', () => {
  expect(questionsFor(24, () => 0)).toEqual([0, 1, 2]);
  expect(questionsFor(24, () => 0.999)).toEqual([21, 22, 23]);
  for (let i = 0; i < 100; i++) expect(new Set(questionsFor(24)).size).toBe(3);
  expect(isAnswered(['a', 'b', 'c'], [0, 2], [' A ', 'c'])).toBe(true);
  expect(isAnswered(['a', 'b', 'c'], [0, 2], ['a', 'b'])).toBe(false);
  expect(isAnswered(['a', 'b', 'c'], [0, 2], ['a'])).toBe(false);
});

/** What the first page begins with, and what a miner’s page has of each day, through made-up answers of the API. */
import { expect, test } from 'vitest';
import { atOnce, open, seriousFaults, widerThanScreen } from './browser.ts';
import { address, answers, CONNECT, POOL } from './made-up-pool.ts';
import { servePage } from './served-page.ts';

test('the first page begins with the address and three steps, whose line has this pool’s port and the typed address', async () => {
  const give = answers(3);
  const url = await servePage((path, query) => (path === 'connect' ? CONNECT : give(path, query)), {
    type: 'pool',
    data: POOL,
  });
  const { page, context, complaints } = await open(url);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByText('Get a wallet').waitFor();
  const top = (name: string) => page.getByText(name).evaluate((one) => one.getBoundingClientRect().top);
  expect(await top('Start mining in three steps')).toBeLessThan(await top('Hash rate, 10 min'));
  await page.getByText('svc-miner -o stratum+tcp://127.0.0.1:1 -u ADDRESS.rig1').waitFor();
  await page.getByLabel('Your address').fill(address(1));
  await page.getByRole('button', { name: 'Copy: line to run' }).click();
  await expect
    .poll(() => page.evaluate(() => navigator.clipboard.readText()))
    .toBe(`svc-miner -o stratum+tcp://127.0.0.1:1 -u ${address(1)}.rig1`);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  for (const width of [360, 640, 1280]) {
    await page.setViewportSize({ width, height: 740 });
    await expect.poll(() => widerThanScreen(page), { message: `${width} px` }).toBe(0);
  }
  // Who has looked at a miner before finds its address, and the steps folded.
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('Earns about').waitFor();
  await page.goto(`${url}#/pool`);
  await page.getByText('Start mining in three steps').waitFor();
  expect(await atOnce(page.getByText('Get a wallet').isVisible())).toBe(false);
  await expect.poll(() => page.getByLabel('Your address').inputValue()).toBe(address(1));
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

test('a pool with no port for miners offers the browser alone', async () => {
  const give = answers(3);
  const services = CONNECT.services.map((one) => ({ ...one, port: null }));
  const url = await servePage((path, query) => (path === 'connect' ? { ...CONNECT, services } : give(path, query)));
  const { page } = await open(url);
  await page.getByRole('link', { name: 'mine here', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Copy: line to run' }).waitFor({ state: 'detached' });
});

test('a miner’s page has a bar for each day, and says what the last days brought', async () => {
  const url = await servePage(answers(3), { type: 'pool', data: POOL });
  const { page, complaints } = await open(`${url}#/miner/${address(1)}`);
  const card = page.locator('section.card', { has: page.getByRole('heading', { name: 'Daily earnings, coins' }) });
  await expect.poll(() => card.locator('figcaption').textContent()).toMatch(/ 28\.00; .* 29\.00; .* 30\.00$/);
  await expect.poll(() => card.locator('canvas').count()).toBe(1);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await expect.poll(() => widerThanScreen(page)).toBe(0);
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

/**
 * The explorer in Chromium, at the pool's own web listener with a real node behind it: search by anything, cuts, blocks, transactions, addresses,
 * validators and supply are those of the node, in light and dark and on a phone.
 */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { coins, count, shortId } from '../../dashboard/format.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { nodeRoutes } from '../../pool/api/public/node-routes.ts';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { ApiBed, addressOf } from '../api/api-bed.ts';
import { webBed } from '../pool/web-bed.ts';
import { atOnce, open, seriousFaults, widerThanScreen } from './browser.ts';
import { BUILT_PAGE, servePage } from './served-page.ts';

async function setUp(status: Partial<RouteAnswer<'nodeStatus'>> = {}) {
  const node = await ApiBed.forTest();
  const { bed, client } = node;
  const miner = developmentKey('miner').address;
  const paid = await node.pay(0, 'receiver', 1_234_567n);
  await bed.mine(miner, 100);
  await bed.seal();
  // The second block of a cut has the first as its parent.
  for (let i = 0; i < 3; i++) {
    await bed.mine(miner, 100, 2 * i);
    await bed.mine(miner, 100, 2 * i + 1);
    await bed.seal();
  }
  await bed.seal(3);
  const port = await webBed(
    [],
    {
      live: (_, socket) => socket.destroy(),
      routes: nodeRoutes({ ...client, nodeStatus: async () => ({ ...(await client.nodeStatus()), ...status }) }),
    },
    { dashboard: BUILT_PAGE },
  );
  return { node, client, paid, url: `http://127.0.0.1:${port}/` };
}

const textOf = (page: Page) => page.locator('main').innerText();

async function search(page: Page, text: string): Promise<void> {
  await page.getByRole('searchbox').fill(text);
  await page.getByRole('button', { name: 'Search' }).click();
}

test('everything on the chain is found by what it is called', async () => {
  const { node, client, paid, url } = await setUp();
  const { page, complaints } = await open(`${url}explorer`);
  const { blocks } = await client.recentBlocks({});
  expect(blocks.length).toBeGreaterThan(3);
  const { finalized_height: head } = await client.chainHead();
  await expect.poll(() => textOf(page)).toContain(shortId(paid));
  for (const { block_id: id } of blocks) await expect.poll(() => textOf(page)).toContain(shortId(id));
  await expect.poll(() => page.locator('.graph circle').count()).toBe(blocks.length);
  const parents = blocks.reduce((sum, block) => sum + block.parents.length, 0);
  await expect.poll(() => page.locator('.graph line').count()).toBe(parents);
  await expect.poll(() => seriousFaults(page)).toEqual([]);

  // A cut by its height, as people write numbers.
  await search(page, count(head - 1));
  const cut = (await client.cuts({ before: head, limit: 1 })).cuts[0];
  await expect.poll(() => textOf(page)).toContain(cut?.cut_id);
  await expect.poll(() => page.url()).toContain(`#/explorer/cut/${head - 1}`);
  await page.getByRole('link', { name: 'Next' }).click();
  await expect.poll(() => page.getByRole('heading', { level: 2 }).first().innerText()).toBe(`Cut ${count(head)}`);
  await search(page, String(head + 1000));
  await expect.poll(() => textOf(page)).toContain('does not exist yet');

  // A transaction by its id: through its life to what it made.
  await search(page, paid.toUpperCase());
  await expect.poll(() => textOf(page)).toContain(coins('1234567'));
  await expect.poll(() => page.url()).toContain(`#/explorer/transaction/${paid}`);
  await expect.poll(() => page.locator('.steps .done').count()).toBe(4);
  await expect.poll(() => seriousFaults(page)).toEqual([]);

  // The address it paid, by its link, and its history.
  const receiver = addressOf('receiver');
  await page.getByRole('link', { name: shortId(receiver) }).click();
  await expect.poll(() => textOf(page)).toContain(`+${coins('1234567')}`);
  await expect.poll(() => textOf(page)).toMatch(/payment\s+\+/);
  await search(page, receiver);
  await expect.poll(() => textOf(page)).toContain('in 1 outputs');

  // A block by its id, and its parent by its link.
  const child = blocks.find((block) => block.parents.length > 0);
  await search(page, child?.block_id as string);
  await expect.poll(() => textOf(page)).toContain('Registration window closes');
  const parent = child?.parents[0] as string;
  await page.getByRole('link', { name: shortId(parent) }).click();
  await expect.poll(() => page.url()).toContain(`#/explorer/block/${parent}`);

  // A validator, and what is nothing at all.
  const { validators } = await client.stakingValidators({});
  await search(page, validators[0]?.validator_id as string);
  await expect.poll(() => textOf(page)).toContain(coins(validators[0]?.stake as string));
  await search(page, 'ab'.repeat(48));
  await expect.poll(() => textOf(page)).toContain('knows no block, transaction or validator');
  await search(page, '<b>nothing</b>');
  await expect.poll(() => textOf(page)).toContain('Not recognised. Enter a cut height');
  expect(await atOnce(page.locator('main b').count())).toBe(0);

  // Supply: to the atom.
  await page.goto(`${url}#/explorer/supply`);
  const supply = await client.supply();
  for (const atoms of [supply.total_supply, supply.bonded, supply.work_reserve])
    await expect.poll(() => textOf(page)).toContain(coins(atoms));
  await expect.poll(() => page.locator('.curve polyline').count()).toBe(1);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  // On a phone the curve is as high as elsewhere, and its letters are as large.
  const sizes = () =>
    page.locator('.curve, .curve text').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
  const onDesktop = await atOnce(sizes());
  expect(onDesktop).toHaveLength(5);
  await page.setViewportSize({ width: 360, height: 740 });
  await expect.poll(sizes).toEqual(onDesktop);
  await expect.poll(() => widerThanScreen(page)).toBe(0);

  // New cuts come by themselves.
  await page.goto(`${url}#/explorer`);
  await expect.poll(() => textOf(page)).toContain(`Newest cuts`);
  await node.bed.seal(2);
  await expect.poll(() => textOf(page)).toContain(count(head + 2));
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(() => seriousFaults(page, ['color-contrast'])).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await expect.poll(() => widerThanScreen(page)).toBe(0);
  // The rest of the pool is not there: that is all the browser itself reports, and the ids that name nothing.
  expect(complaints.filter((line) => !/404|503|live|400/.test(line))).toEqual([]);

  await node.api.close();
  await expect.poll(() => textOf(page)).toContain('Newest cuts');
  await page.reload();
  await expect.poll(() => textOf(page)).toContain('the node does not answer now');
});

test('where the network follows rules that the node does not know, the page says so', async () => {
  const { url } = await setUp({ update_required: true });
  const { page } = await open(`${url}explorer`);
  await expect.poll(() => textOf(page)).toContain('follows rules that this pool’s node');
});

test('without a pool, against any node that admits the page', async () => {
  const url = await servePage(() => undefined);
  const node = await ApiBed.forTest({ api: { browserOrigins: [url.replace(/\/$/, '')] } });
  const paid = await node.pay(0, 'receiver', 1_234_567n);
  await node.bed.mine(developmentKey('miner').address, 100);
  await node.bed.seal(2);
  const { page, complaints } = await open(`${url}explorer.html`);
  await expect.poll(() => textOf(page)).toContain(`--browser-origin ${url.replace(/\/$/, '')}`);
  const named = page.getByLabel(/^Node to read from/);
  await named.fill('ftp://example');
  await page.getByRole('button', { name: 'Read' }).click();
  await expect.poll(() => textOf(page)).toContain('Enter the address of a node');
  await named.fill(`${node.base}/`);
  await page.getByRole('button', { name: 'Read' }).click();
  await expect.poll(() => textOf(page)).toContain(shortId(paid));
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await search(page, addressOf('receiver'));
  await expect.poll(() => textOf(page)).toContain(coins('1234567'));
  expect(await atOnce(textOf(page))).not.toContain('Mining at this pool');
  // The browser knows the node the next time, and a link can name one.
  await page.goto(`${url}explorer.html`);
  await expect.poll(() => textOf(page)).toContain(shortId(paid));
  await page.goto(`${url}explorer.html?node=${encodeURIComponent(`${node.base}/nothing`)}`);
  await expect.poll(() => textOf(page)).toContain('The node replied');
  expect(complaints.filter((line) => !/404/.test(line))).toEqual([]);
});

/**
 * The page for stakers in Chromium against a real node that admits it: estimate, validators, positions and rewards of an address are those of the node, in light and dark and on a phone. The pool
 * behind the page is made up: this page asks it for nothing.
 */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { coins, roundedCoins, shortId } from '../../dashboard/format.ts';
import { parseAddress } from '../../protocol/address.ts';
import { ApiBed } from '../api/api-bed.ts';
import { openTestWallet } from '../wallet/open-wallet.ts';
import { COIN, INTERVAL, ownAddress, validatorAt } from '../wallet/staking/staking-bed.ts';
import { atOnce, open, seriousFaults, widerThanScreen } from './browser.ts';
import { servePage } from './served-page.ts';

/** A staker with a delegation, a part of it that unbonds, and rewards of two days. */
async function setUp() {
  const url = await servePage(() => undefined);
  const fund = [5_000n, 10n, 10n].map((amount) => ({
    address: parseAddress(ownAddress('test'), 'development').payload,
    amount: amount * COIN,
  }));
  const node = await ApiBed.forTest({
    bed: { genesis: { fund, validators: 2, intervalCuts: INTERVAL } },
    api: { browserOrigins: [url.replace(/\/$/, '')] },
  });
  await node.bed.seal();
  const wallet = await openTestWallet({ client: node.client }, { answerMillis: 10_000 });
  const settle = async (draw: number) => {
    await node.bed.mine(parseAddress(ownAddress('miner'), 'development').payload, 1_000, draw);
    await node.bed.seal();
    await wallet.turn();
  };
  await wallet.turn();
  const stake = { validator: validatorAt(0), amount: '1000', request_id: 'stake' };
  const { position } = await wallet.call('stake', stake);
  await settle(0);
  await node.bed.seal(3 * INTERVAL);
  await wallet.turn();
  await wallet.call('unstake', { position, amount: '300', request_id: 'part' });
  await settle(1);
  return { url, node, owner: ownAddress('test', 'change') };
}

const textOf = (page: Page) => page.locator('main').innerText();
const section = (page: Page, title: string) =>
  page.locator('section.card', { has: page.getByRole('heading', { name: title }) });

test('what the page shows is what the node says; light, dark, on a phone, and in words what is wrong', async () => {
  const { url, node, owner } = await setUp();
  const { client } = node;
  const { page, complaints } = await open(`${url}#/staking/${owner}`);
  await page.getByRole('searchbox', { name: 'Node to read from' }).fill(node.base);
  await page.getByRole('searchbox', { name: 'Node to read from' }).press('Enter');

  const { positions } = await client.stakingPositions({ addresses: [owner] });
  expect(positions).toHaveLength(2);
  for (const { position_id: id, principal, release_height: release } of positions) {
    const line = page.locator('tr', { hasText: shortId(id) });
    await expect.poll(() => line.innerText()).toContain(coins(principal));
    await expect
      .poll(() => line.innerText())
      .toContain(release === null ? 'bonded' : `unbonding until cut ${release.toLocaleString('en')}`);
  }
  const { events } = await client.addressHistory({ address: owner });
  const rewards = events.filter(({ source }) => source === 'stake_reward');
  expect(rewards.length).toBeGreaterThan(1);
  let sum = 0n;
  for (const { amount } of rewards) sum += BigInt(amount);
  await expect.poll(() => section(page, 'Rewards').innerText()).toContain(`${coins(sum)} coins in these rows`);
  await expect.poll(() => section(page, 'Rewards').locator('tbody tr').count()).toBe(rewards.length);

  const { validators } = await client.stakingValidators({});
  for (const { validator_id: id, stake, state, attended_windows: windows } of validators) {
    const line = section(page, 'Validators').locator('tr', { hasText: shortId(id) });
    for (const text of [coins(stake), state, '0.0 %', `${windows} of 12`])
      await expect.poll(() => line.innerText()).toContain(text);
  }
  const estimate = async (amount: string) => roundedCoins((await client.stakingEstimate({ amount })).reward_per_day);
  await expect.poll(() => section(page, 'Estimate').innerText()).toContain(await estimate((1_000n * COIN).toString()));
  await page.getByLabel('Coins to stake').fill('250.5');
  await expect.poll(() => section(page, 'Estimate').innerText()).toContain(await estimate('25050000000'));
  await page.getByLabel('Coins to stake').fill('many');
  await expect.poll(() => textOf(page)).toContain('Enter a number of coins');
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(() => seriousFaults(page, ['color-contrast'])).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await expect.poll(() => widerThanScreen(page)).toBe(0);
  // The pool that is not there is all that the browser itself reports.
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);

  await page.getByRole('searchbox', { name: 'Address of a staker' }).fill('<b>nobody</b>');
  await page.getByRole('searchbox', { name: 'Address of a staker' }).press('Enter');
  await expect.poll(() => textOf(page)).toMatch(/The node replied: .*address/i);
  expect(await atOnce(page.locator('main b').count())).toBe(0);
  await node.api.close();
  await page.getByLabel('Coins to stake').fill('7');
  await expect.poll(() => textOf(page)).toContain('The node cannot be reached, or does not allow this page.');
});

test("without a node of one's own the pool's is asked, and no other", async () => {
  const { page, complaints } = await open(`${await servePage(() => undefined)}#/staking`);
  await expect.poll(() => textOf(page)).toContain('--browser-origin');
  await expect.poll(() => section(page, 'Validators').innerText()).toContain('The node replied:');
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

/** The operator's page, through made-up answers of the API. */
import { expect, test } from 'vitest';
import { atOnce, open, seriousFaults, widerThanScreen } from './browser.ts';
import { operatorAnswers } from './made-up-operator.ts';
import { address, answers, MARKUP } from './made-up-pool.ts';
import { servePage } from './served-page.ts';

test('a connection is found, and its IP address or its miner is banned from the list', async () => {
  const operator = operatorAnswers([]);
  const give = answers(3);
  const url = await servePage((path, query, method) => operator(path, query, method) ?? give(path, query));
  const { page, complaints } = await open('about:blank');
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.message());
    void dialog.accept();
  });
  const sent: unknown[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') sent.push([request.url().replace(url, ''), request.postDataJSON()]);
  });
  await page.addInitScript(() => sessionStorage.setItem('svc-operator-token', 'token'));
  await page.goto(`${url}#/operator`);
  const card = page.locator('section.card', { has: page.getByRole('heading', { name: 'Connections' }) });
  await card.getByText('300 of 300 connections of this instance; the newest 2 are listed.').waitFor();
  await card.getByText(MARKUP).waitFor();
  await card.getByText('not logged in').waitFor();
  // At a desktop's width nothing has to be scrolled to.
  await page.setViewportSize({ width: 1_280, height: 800 });
  const hidden = () => card.locator('.scroll').evaluate((table) => table.scrollWidth - table.clientWidth);
  await expect.poll(hidden).toBeLessThanOrEqual(0);
  const setting = page.locator('form[data-setting="fee_solo"]');
  const middle = (what: string) =>
    setting
      .locator(what)
      .first()
      .evaluate((element) => {
        const { top, height } = element.getBoundingClientRect();
        return top + height / 2;
      });
  await expect.poll(async () => Math.abs((await middle('input')) - (await middle('button')))).toBeLessThan(6);
  await card.getByRole('searchbox').fill('203.0.113.0/24');
  await page.keyboard.press('Enter');
  await card.getByText('1 of 300 connections of this instance.').waitFor();
  await card.getByText('not logged in').waitFor({ state: 'detached' });
  await card.getByLabel('Ban for').selectOption('1 day');
  await card.getByRole('button', { name: 'Ban the IP address 203.0.113.5' }).click();
  await expect.poll(() => sent).toEqual([['api/v1/operator/bans', { key: '203.0.113.5', minutes: 1_440 }]]);
  await card.getByRole('button', { name: /^Ban the miner/ }).click();
  await expect.poll(() => sent[1]).toEqual(['api/v1/operator/bans', { key: address(1), minutes: 1_440 }]);
  expect(asked[0]).toBe('Ban 203.0.113.5 for 1 day? All its connections are closed, at every instance.');
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(() => seriousFaults(page, ['color-contrast'])).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await expect.poll(() => widerThanScreen(page)).toBe(0);
  // What the pool refuses is an error of the network too.
  expect(complaints.filter((line) => !/503|404/.test(line))).toEqual([]);
});

test('the operator sees the pool over time, its fastest miners with their part of it, the state of each instance, and an audit that is started', async () => {
  const made: { state: 'idle' | 'running' | 'done' } = { state: 'idle' };
  const operator = operatorAnswers([], made);
  const give = answers(3);
  const url = await servePage((path, query, method) => operator(path, query, method) ?? give(path, query));
  const { page, complaints } = await open('about:blank');
  await page.addInitScript(() => sessionStorage.setItem('svc-operator-token', 'token'));
  await page.goto(`${url}#/operator`);
  const card = (name: string) =>
    page.locator('section.card', { has: page.getByRole('heading', { name, exact: true }) });
  await expect
    .poll(() => card('Hash rate').locator('figcaption').textContent())
    .toMatch(/Hash rate of the pool: .*H\/s/);
  await expect
    .poll(() => card('Over time').locator('figcaption').allTextContents())
    .toEqual([
      expect.stringMatching(/^Refused shares: .* 0\.50 %; .* 0\.00 %/),
      expect.stringMatching(/^Books’ lag, in cuts: .* 1; .* 3/),
      expect.stringMatching(/^Payouts under way: .* 0; .* 2/),
      expect.stringMatching(/^Wallet, in coins: .* –; .* 1,234\.56/),
      expect.stringMatching(/^Connections: pool-1: .* 300; .* 250/),
      expect.stringMatching(/^Connections: pool-2-x+: .* 1,500; .* –; .* –/),
    ]);
  await card('Over time').getByText('Shares by verdict: accepted 49,750; unknown_job 125').waitFor();
  await expect.poll(() => card('Top miners').locator('tbody tr').count()).toBe(3);
  await expect.poll(() => card('Top miners').innerText()).toMatch(/ %/);
  await card('Payouts').getByRole('button', { name: 'Pay now' }).click();
  await card('Payouts').getByText('are paid within seconds').waitFor();
  const audit = card('Audit');
  await audit.getByRole('button', { name: 'Audit the books' }).click();
  await audit.getByRole('progressbar', { name: 'Slices: 1,200 of 2,400' }).waitFor();
  made.state = 'done';
  const instances = card('Instances').locator('tbody tr');
  await expect.poll(() => instances.allInnerTexts()).toHaveLength(2);
  expect(await atOnce(instances.allInnerTexts())).toEqual([
    expect.stringMatching(
      /pool-1\s+0\.1\.0, boot 0123\S*\s+serves\s+keeps them\s+300\s+1,234,567\s+89\s+4\s+12,345,678/,
    ),
    expect.stringMatching(/pool-2\s.*\s+not ready\s+stand-by/),
  ]);
  await audit.getByText('Differences: 31.').waitFor();
  expect(await atOnce(audit.innerText())).toMatch(
    /Checked in .*: 2,400 slices, 300 credit lists, 1,234 accounts\.[\s\S]*wallet\.\s+Not checked.*: 1\s+payout 5: [\s\S]*Restore it\./,
  );
  await audit.getByText(MARKUP).waitFor();
  await expect.poll(() => audit.getByRole('progressbar').count()).toBe(0);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await expect.poll(() => widerThanScreen(page)).toBe(0);
  expect(complaints.filter((line) => !/503/.test(line))).toEqual([]);
});

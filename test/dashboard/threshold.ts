/**
 * The payout threshold in Chromium against the pool's real API and books: the form signs in the page and the books change; the commands beside it do the same; and nothing that the
 * page sends, keeps or logs holds a word of the phrase.
 */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { isForWish, signRequest } from '../../dashboard/threshold/sign-request.ts';
import { thresholdWish } from '../../dashboard/threshold/wishes.ts';
import { loadPageWords } from '../../dashboard/words/language.ts';
import { parseAddress } from '../../protocol/address.ts';
import type { AddressProofRequest } from '../../protocol/transactions/address-proof.ts';
import { openPoolApiBed } from '../attack/pool-api-bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';
import { newContext, seriousFaults, watch } from './browser.ts';
import { BUILT_PAGE } from './served-page.ts';

const BIN = join(import.meta.dirname, '../../bin');

/** What the browser itself says of the estimate's questions: this pool passes none on to a node. */
const NOT_FOUND = 'Failed to load resource: the server responded with a status of 404 (Not Found)';

const kept = (page: Page): Promise<string> =>
  page.evaluate(() =>
    JSON.stringify({ ...localStorage, ...sessionStorage, url: location.href, cookies: document.cookie }),
  );

test('the threshold is changed by a signature made in the page, and by the commands it shows; no word leaves the page', async () => {
  const home = temporaryDirectory();
  mkdirSync(join(home, '.svc'));
  const wallet = new WalletFiles(join(home, '.svc'));
  await wallet.write();
  const address = wallet.firstAddress;
  const bed = await openPoolApiBed({ first: parseAddress(address, 'development').payload, page: BUILT_PAGE });
  const threshold = async () =>
    (await bed.sql<{ min: bigint | null }[]>`select payout_min as min from accounts where address = ${address}`)[0]
      ?.min;

  const context = await newContext();
  const page = await context.newPage();
  const complaints = watch(page);
  const said: string[] = [];
  page.on('console', (message) => said.push(message.text()));
  const sent: string[] = [];
  context.on('request', (request) => {
    sent.push(`${request.url()}\n${JSON.stringify(request.headers())}\n${request.postData() ?? ''}`);
  });
  page.on('websocket', (socket) => {
    sent.push(socket.url());
    socket.on('framesent', ({ payload }) => void sent.push(String(payload)));
  });
  await page.goto(`http://127.0.0.1:${bed.port}/#/miner/${address}/settings`);

  const coins = page.getByLabel('Minimum payout, in coins');
  const form = page.locator('section', { has: coins });
  const words = form.getByLabel('24 words');
  const outcome = form.getByRole('status');
  await coins.fill('2.5');
  await form.getByText('Sign on the command line').click();
  const commands = () => form.locator('pre').innerText();
  await expect.poll(commands).toContain('250000000');
  const shown = await commands();
  await form.getByText('Sign on this page').click();
  await expect
    .poll(() => form.locator('details').first().innerText())
    .toMatch(/Anyone who sees your 24 words can take all your coins/);
  await expect.poll(() => seriousFaults(page)).toEqual([]);

  // The word list has words such as 'address', which stand in headers and documents anyway.
  const keptBefore = await kept(page);
  const fields = 'version network address purpose challenge signature payout threshold request public';
  // What is signed names the network and the pool.
  const signed = await (
    await fetch(`http://127.0.0.1:${bed.port}/api/v1/miners/${address}/payout-threshold/request`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ threshold_atoms: '250000000' }),
    })
  ).text();
  expect(signed).toMatch(/"development"/);
  const plain = [...sent, keptBefore, fields, signed, NOT_FOUND].join().toLowerCase();
  const swapped = wallet.phrase.split(' ').reverse().join(' ');
  await words.fill(swapped);
  await form.getByRole('button', { name: 'Sign and change' }).click();
  await expect
    .poll(() => outcome.innerText())
    .toMatch(/Nothing changed: .*(do not belong together|do not give this address)/);
  await words.fill(wallet.phrase);
  await form.getByRole('button', { name: 'Sign and change' }).click();
  await expect
    .poll(() => outcome.innerText())
    .toMatch(/Changed: you will be paid when your balance reaches 2\.50 coins/);
  expect(await threshold()).toBe(250_000_000n);
  await expect.poll(() => words.inputValue()).toBe('');
  await page.getByRole('link', { name: 'Overview' }).click();
  await expect.poll(() => page.locator('main').innerText()).toMatch(/paid out at 2\.5/);
  await page.getByRole('link', { name: 'Settings' }).click();
  await form.getByText('Sign on this page').click();
  // Another address of the same words is not in the books, and words of another wallet do not hold this address: a
  // person who uses the wrong wallet gets an error, and nothing is sent to the pool.
  await coins.fill('3');
  await words.fill(new WalletFiles(home).phrase);
  await form.getByRole('button', { name: 'Sign and change' }).click();
  await expect.poll(() => outcome.innerText()).toMatch(/Nothing changed: these words do not give this address/);
  expect(await threshold()).toBe(250_000_000n);

  // Base32 of an address or hex of a signature may hold a short word by chance, and headers two in a row; three in a row are the phrase.
  const list = wallet.phrase.split(' ');
  const between = '(\\W|%20|\\+|\\\\n)*';
  const parts = list.slice(2).map((_, i) => new RegExp(list.slice(i, i + 3).join(between), 'i'));
  const long = list.filter((word) => word.length >= 6 && !plain.includes(word)).map((word) => new RegExp(word, 'i'));
  expect(sent.filter((text) => text.includes('payout-threshold')).length).toBeGreaterThanOrEqual(4);
  const bodies = sent.filter((text) => !/\/assets\//.test(text));
  for (const text of [...bodies, ...said, await kept(page)])
    for (const secret of [...parts, ...long]) expect(text).not.toMatch(secret);
  for (const text of sent)
    expect(new URL(text.split('\n')[0] as string, 'http://127.0.0.1').hostname).toBe('127.0.0.1');
  // This pool passes on no questions to a node, so the estimate of the page gets 404.
  expect(complaints.filter((line) => !/404/.test(line))).toEqual([]);

  // The form of the webhook is the same one: signed in the page, and by its commands, whatever the URL holds.
  const url = "https://example.org/hook?a=%25'b";
  const hooks = async () =>
    (await bed.sql<{ url: string | null }[]>`select url from miner_webhooks`).map((hook) => hook.url);
  const hook = page.locator('section', { has: page.getByLabel('URL', { exact: true }) });
  await hook.getByLabel('URL', { exact: true }).fill(url);
  await hook.getByText('Sign on this page').click();
  await hook.getByText('Sign on the command line').click();
  await hook.getByLabel('24 words').fill(wallet.phrase);
  await hook.getByRole('button', { name: 'Sign and change' }).click();
  await expect.poll(() => hook.getByRole('status').innerText()).toMatch(/^Saved\. .*[0-9a-f]{64}$/);
  expect(await hooks()).toEqual([url]);
  const hookCommands = () => hook.locator('pre').innerText();
  await expect.poll(hookCommands).toContain('https://example.org/hook');
  const setting = await hookCommands();
  await hook.getByLabel('Send to').selectOption('telegram');
  await expect.poll(() => hook.innerText()).toContain('sendMessage?chat_id=');
  await expect.poll(() => hook.locator('pre').first().innerText()).toContain('"channel":"telegram"');
  await hook.getByLabel('Send to').selectOption('webhook');

  // The field is empty when the form is opened: that removes nothing, the box does.
  await hook.getByLabel('URL', { exact: true }).fill('');
  await expect.poll(hookCommands).toContain('YOUR-URL');
  await hook.getByLabel('24 words').fill(wallet.phrase);
  await hook.getByRole('button', { name: 'Sign and change' }).click();
  await expect.poll(() => hook.getByRole('status').innerText()).toMatch(/Enter a URL, or tick/);
  expect(await hooks()).toEqual([url]);
  await hook.getByLabel('Remove the webhook').check();
  await hook.getByLabel('24 words').fill(wallet.phrase);
  await hook.getByRole('button', { name: 'Sign and change' }).click();
  await expect.poll(() => hook.getByRole('status').innerText()).toMatch(/^Removed/);
  expect(await hooks()).toEqual([null]);

  // So is that of the e-mail address; the links of the pool's mails open a page with one button.
  const mail = page.locator('section', { has: page.getByLabel('E-mail address', { exact: true }) });
  await mail.getByLabel('E-mail address', { exact: true }).fill('first.last@example.org');
  await mail.getByText('Sign on this page').click();
  await mail.getByLabel('24 words').fill(wallet.phrase);
  await mail.getByRole('button', { name: 'Sign and change' }).click();
  await expect.poll(() => mail.getByRole('status').innerText()).toMatch(/^Saved\. You will get an e-mail/);
  const [set] = await bed.sql<{ code: string; mailbox: string }[]>`update miner_mails set asked_at = now()
    returning code, mailbox`;
  expect(set?.mailbox).toBe('first.last@example.org');
  const linked = page.locator('main section');
  await page.goto(`http://127.0.0.1:${bed.port}/#/mail/confirm/${set?.code}`);
  await linked.getByRole('button', { name: 'Confirm' }).click();
  await expect.poll(() => linked.getByRole('status').innerText()).toMatch(/^Confirmed/);
  await expect.poll(() => seriousFaults(page)).toEqual([]);
  await page.goto(`http://127.0.0.1:${bed.port}/#/mail/stop/${set?.code}`);
  await linked.getByRole('button', { name: 'Stop the e-mails' }).click();
  await expect.poll(() => linked.getByRole('status').innerText()).toMatch(/^Done/);
  expect((await bed.sql`select 1 from miner_mails where mailbox is not null`).length).toBe(0);

  // The commands are what they claim to be.
  expect(shown).toContain('svc-wallet prove-address');
  // Nobody is there to answer the wallet's question.
  const script = shown.replaceAll('250000000', '700000000').replace('prove-address', 'prove-address --yes');
  const environment = { ...process.env, HOME: home, PATH: `${BIN}:${process.env.PATH}` };
  await promisify(execFile)('bash', ['-euc', script], { cwd: home, env: environment });
  expect(await threshold()).toBe(700_000_000n);
  await bed.sql`update miner_webhooks set url = null`;
  const hookScript = setting.replace('prove-address', 'prove-address --yes');
  await promisify(execFile)('bash', ['-euc', hookScript], { cwd: home, env: environment });
  expect(await hooks()).toEqual([url]);
});

test('nothing is signed that does not name the address and the amount of the form', async () => {
  await loadPageWords();
  const request: AddressProofRequest = {
    version: 1,
    network: 'development',
    address: 'dsvc1miner',
    challenge: '00'.repeat(32),
    purpose: 'payout threshold of 500 atoms at the pool "x"',
    created_millis: 1,
    expires_millis: 2,
  };
  const wish = { address: 'dsvc1miner', purpose: thresholdWish('500').purpose };
  expect(isForWish(request, wish)).toBe(true);
  const secrets = { phrase: '', passphrase: '' };
  for (const lie of [
    { purpose: 'log in to an exchange' },
    { purpose: 'payout threshold of 5000 atoms at the pool "x"' },
    { purpose: 'proof of ownership' },
    { address: 'dsvc1other' },
  ])
    await expect(signRequest({ ...request, ...lie }, wish, secrets)).rejects.toThrow(/a different change/);
});

/** The watch and a real page: one that loads itself again and again, shows another time, and never what is waited for. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { watchPages } from '../watch/pages.ts';
import { Watch } from '../watch/watch.ts';
import { open } from './browser.ts';

const SCRIPT =
  "document.querySelector('h1').textContent = 'Height ' + Date.now(); setTimeout(() => location.reload(), 500)";
const PAGE = `<h1></h1><script>${SCRIPT}</script>`;

test('a wait for an element of a page that loads itself again and again ends, and says what the page shows', async () => {
  const server = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { page } = await open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  // Its ticks are short, so that a hang takes three seconds.
  const watch = new Watch(50);
  watchPages(page.context().browser() as Browser, watch);
  const waits = watch.guard('a planted hang', { millis: 60_000, stillMillis: 3_000 }, () =>
    page.getByText('Paid').waitFor(),
  );
  await expect(waits).rejects.toThrow(
    /^nothing that it waits for has moved .*\nit waits:\n {2}for \d+ s: locator\.waitFor .*Paid.*\n {4}last seen: .*Height/s,
  );
  // The other wait is for a page that is closed now.
  await page.context().close();
});

/** What Playwright waits for, in whatever page, as waits of the watch: an element that never appears ends a test, however often the page is loaded and however much its programs do. */
import type { Browser, Page } from 'playwright-core';
import type { Watch } from './watch.ts';

/** Playwright's own seam for its test runner; a call that works in the page computes, and does not wait. */
type Call = { readonly apiName: string };
type Calls = {
  addListener(listener: {
    onApiCallBegin(call: Call, channel: { params?: Record<string, unknown> }): void;
    onApiCallEnd(call: Call): void;
  }): void;
};
const COMPUTES = /evaluate|addInitScript|screenshot|newContext|newPage|close/i;
const SHOWN_CHARACTERS = 300;

/** A page that is just being loaded, or is closed, tells nothing. */
const tell = (page: Page): Promise<string> =>
  page.evaluate(() => `${location.href}\n${document.body?.innerText ?? ''}`).catch(() => '');

/** Watches all pages of a browser. */
export function watchPages(browser: Browser, watch: Watch): void {
  const { _instrumentation: calls } = browser as unknown as { readonly _instrumentation: Calls };
  const waits = new Map<Call, { end(): void }>();
  let looking: Promise<string[]> | undefined;
  const told = new WeakMap<Page, string>();
  const textOf = async (page: Page): Promise<string> => {
    const text = (await tell(page)) || (told.get(page) ?? '');
    told.set(page, text);
    return text;
  };
  const glance = async (): Promise<string[]> => {
    looking ??= Promise.all(browser.contexts().flatMap((context) => context.pages().map(textOf)));
    const texts = await looking;
    looking = undefined;
    return texts;
  };
  calls.addListener({
    onApiCallBegin(call, { params }) {
      if (COMPUTES.test(call.apiName)) return;
      const { selector, url } = params ?? {};
      const what = `${call.apiName} ${selector ?? url ?? ''}`.slice(0, SHOWN_CHARACTERS);
      waits.set(call, watch.begin(what, { glance }));
    },
    onApiCallEnd(call) {
      waits.get(call)?.end();
      waits.delete(call);
    },
  });
}

/**
 * Chromium for the tests of the page, one per file. Every page that is opened collects what a user's console would show:
 * errors, refused policies, exceptions. Tests say what they expect of it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { launch, UNLIMITED } from '../chromium.ts';

let browser: Browser | undefined;

/** To be called once at the top of a test file. */
export function withBrowser(): void {
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
}

export type Tab = {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What a user would find in the console. */
  readonly complaints: string[];
};

export function watch(page: Page): string[] {
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`));
  page.on('crash', () => complaints.push('the page crashed'));
  page.on('console', (message) => {
    if (message.type() === 'error' || /content security policy/i.test(message.text())) complaints.push(message.text());
  });
  return complaints;
}

export async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  if (browser === undefined) throw new Error('withBrowser() was not called');
  const context = await browser.newContext(options);
  context.setDefaultTimeout(UNLIMITED);
  onTestFinished(() => context.close());
  return context;
}

export async function open(url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await newContext(options);
  const page = await context.newPage();
  const complaints = watch(page);
  await page.goto(url);
  return { page, context, complaints };
}

/** The timers of its pages, from the next page on, are those of a clock that `passTime` puts on; else it goes as on the wall. */
export const withClock = ({ context }: Tab): Promise<void> => context.clock.install();

/** What the page would do by itself in this time, it does at once: it reads a list again, or takes news away. */
export const passTime = ({ page }: Pick<Tab, 'page'>, millis: number): Promise<void> => page.clock.fastForward(millis);

/**
 * What a page shows comes when it comes, so tests look until it does. This is for what must be so already, because it never changed or never may be there: a test
 * that looked again would miss it. A guard refuses any other single look (test/guards/waits.test.ts).
 */
export const atOnce = <T>(look: Promise<T>): Promise<T> => look;

/** By how many pixels. */
export const widerThanScreen = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Found = { violations: { id: string; impact: string; nodes: { html: string }[] }[] };
type AxeWindow = { axe: { run(options: object): Promise<Found> } };

/** Faults that axe-core calls serious or critical, with the first element of each; all rules, or those that are named. */
export async function seriousFaults(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Through the debugger and not as a script element, which the page's policy would refuse.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axeSource);
  // Of elements that are right nothing is described: a page has hundreds.
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: { type: 'rule', values: rules } }) };
  return page.evaluate(async (given) => {
    const { violations } = await (globalThis as unknown as AxeWindow).axe.run(given);
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  }, options);
}

/** The public status page in Chromium, as the pool serves it: in each language, light and dark, on a phone and a desktop; nothing of it is cut off and axe-core finds no serious fault. */
import { expect, test } from 'vitest';
import { type StatusFacts, statusOf } from '../../pool/api/public/status.ts';
import { LANGUAGES, type Language } from '../../protocol/languages.ts';
import { webBed } from '../pool/web-bed.ts';
import { open, seriousFaults, widerThanScreen } from './browser.ts';
import { BUILT_PAGE } from './served-page.ts';

const NOW = 1_000_000;
/** Every part once as it should be, and the notes at their longest: a pause in the operator's words, a database that never answered. */
const FACTS: readonly StatusFacts[] = [
  {
    nowMillis: NOW,
    instances: [
      {
        instance: 'ab',
        name: 'first',
        version: '1',
        startedMillis: 0,
        atMillis: NOW,
        accountant: true,
        ready: true,
        height: 500,
        connections: { pplns: 2, solo: 3 },
        accepted: 0,
        rejected: 0,
        waiting: 0,
      },
    ],
    chain: {
      atMillis: NOW,
      newestMillis: NOW,
      height: 500,
      targetWork: 1n,
      hashesPerSecond: 1n,
      rateMillis: 1,
      synced: true,
    },
    databaseMillis: NOW,
    booksHeight: 499,
    payouts: {
      minimum: '1',
      interval_seconds: 60,
      paused: true,
      pause_note: `until the machines are in their new place, ${'x'.repeat(150)}`,
    },
  },
  {
    nowMillis: NOW,
    instances: [],
    chain: undefined,
    databaseMillis: undefined,
    booksHeight: undefined,
    payouts: undefined,
  },
];

test.each(Object.keys(LANGUAGES) as Language[])('the status page in %s', async (language) => {
  for (const [i, facts] of FACTS.entries()) {
    const status = async (wanted?: Language) => statusOf(facts, wanted);
    const port = await webBed([], { live: () => undefined, status }, { dashboard: BUILT_PAGE });
    const { page, complaints } = await open(`http://127.0.0.1:${port}/status?language=${language}`);
    for (const { colorScheme, width } of [
      { colorScheme: 'light', width: 1_280 },
      { colorScheme: 'dark', width: 360 },
    ] as const) {
      const message = `facts ${i}, ${colorScheme}, ${width} wide`;
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      await expect.poll(() => page.locator('html').getAttribute('lang'), { message }).toBe(language);
      await expect.poll(() => widerThanScreen(page), { message }).toBeLessThanOrEqual(0);
      await expect.poll(() => seriousFaults(page), { message }).toEqual([]);
    }
    expect(complaints).toEqual([]);
  }
});

/** The page's texts: every language has the same ones with the same places, none is unused, and pages that count as translated have no text of their own. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { WORDS as CHINESE } from '../../dashboard/words/chinese.ts';
import { ENGLISH, type WordKey, type Words } from '../../dashboard/words/english.ts';
import { WORDS as GERMAN } from '../../dashboard/words/german.ts';
import {
  LANGUAGES,
  languageFor,
  showLanguage,
  shownLanguage,
  word,
  wordAround,
} from '../../dashboard/words/language.ts';
import { WORDS as SPANISH } from '../../dashboard/words/spanish.ts';

const DASHBOARD = join(import.meta.dirname, '../../dashboard');
const TABLES: Readonly<Record<string, Words>> = { de: GERMAN, es: SPANISH, zh: CHINESE };
const KEYS = Object.keys(ENGLISH) as WordKey[];

/** All that the frame, the first page, Blocks and Connect show. */
const TRANSLATED = [
  'app.tsx',
  'lazy-page.tsx',
  'view/blocks-page.tsx',
  'view/connect-page.tsx',
  'view/csv-button.tsx',
  'view/language-choice.tsx',
  'view/parts.tsx',
  'view/pause-button.tsx',
  'chart/pool-chart.tsx',
  'view/pool-details.tsx',
  'view/pool-figures.tsx',
  'view/pool-page.tsx',
  'view/start-mining.tsx',
  'view/terms.tsx',
  'view/theme-choice.tsx',
];

afterEach(async () => {
  vi.stubGlobal('document', { documentElement: {} });
  await showLanguage('en');
  vi.unstubAllGlobals();
});

const placesOf = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name).sort();

test('every language has the texts of English, with the same places to fill in', () => {
  expect(Object.keys(TABLES)).toEqual(Object.keys(LANGUAGES).filter((language) => language !== 'en'));
  for (const [language, table] of Object.entries(TABLES)) {
    expect(Object.keys(table), language).toEqual(KEYS);
    const wrong = KEYS.filter(
      (key) => table[key].trim() === '' || placesOf(table[key]).join() !== placesOf(ENGLISH[key]).join(),
    );
    expect(wrong, language).toEqual([]);
    // A table that was copied and not translated would pass the rest.
    const same = KEYS.filter((key) => /[a-z]{4}/.test(ENGLISH[key]) && table[key] === ENGLISH[key]);
    expect(same.length, `${language}: ${same.join(' ')}`).toBeLessThan(KEYS.length / 10);
  }
});

const sources = readdirSync(DASHBOARD, { recursive: true, encoding: 'utf8' }).filter(
  (file) => /\.tsx?$/.test(file) && !file.startsWith('words/'),
);
const read = (file: string): string => readFileSync(join(DASHBOARD, file), 'utf8');

test('no text is unused', () => {
  const text = sources.map(read).join('\n');
  const made = [...text.matchAll(/`([a-z]+\.)\$\{/g)].map(([, start = '']) => start);
  const unused = KEYS.filter((key) => !text.includes(`'${key}'`) && !made.some((start) => key.startsWith(start)));
  expect(unused).toEqual([]);
});

/** Names, and what is a command or a unit in every language. */
const NOT_WORDS = /^(?:PPLNS|TCP|WebSocket|TLS|MB|ADDRESS|CSV)$/;

/** Words between tags, and texts of attributes that are shown or read aloud. */
function ownTexts(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const between = [...code.matchAll(/(?<![=\s])>([^<>{}()=;]*[A-Za-z]{2}[^<>{}()=;]*)(?=<\/?[a-zA-Z>]|\{)/g)];
  const lines = [...code.matchAll(/^\s+([A-Z][a-z]+(?: [\w’,.-]+)+[.:;]?)$/gm)];
  const attributes = [
    ...code.matchAll(/\b(?:label|title|caption|note|alt|placeholder|empty|aria-label)="([^"]*[A-Za-z]{2}[^"]*)"/g),
  ];
  const templates = [...code.matchAll(/\b(?:label|title|caption|note|aria-label)=\{`([^`]*)`\}/g)].filter(
    ([, text = '']) =>
      text
        .replaceAll(/\$\{[^}]*\}/g, ' ')
        .split(/[\s,.:]+/)
        .some((part) => /[A-Za-z]{2}/.test(part) && !NOT_WORDS.test(part)),
  );
  return [...between, ...lines, ...attributes, ...templates]
    .map(([, text = '']) => text.trim())
    .filter((text) => text !== '' && !text.startsWith(',') && !NOT_WORDS.test(text));
}

test('pages that are translated have no text outside the table', () => {
  const found = TRANSLATED.flatMap((file) => ownTexts(read(file)).map((text) => `${file}: ${text}`));
  expect(found).toEqual([]);
  // The look finds what it is for.
  expect(ownTexts('<p>Loading the rest</p>')).toEqual(['Loading the rest']);
  expect(ownTexts('<Figure label="Miners" />')).toEqual(['Miners']);
  expect(ownTexts('<p>\n      Amounts are in coins.\n</p>').length).toBeGreaterThan(0);
  expect(ownTexts(`<Figure label={\`Rate of $\{rate}\`} />`)).toHaveLength(1);
});

test('the language is the one that was chosen, else the first of the browser’s that there is, else English', () => {
  expect(languageFor(null, ['fr-FR', 'de-CH', 'en'])).toBe('de');
  expect(languageFor(null, ['zh-TW'])).toBe('zh');
  expect(languageFor('es', ['de'])).toBe('es');
  expect(languageFor('gone', ['de'])).toBe('de');
  expect(languageFor(null, ['fr'])).toBe('en');
  expect(languageFor(null, [])).toBe('en');
});

test('another language replaces all texts, in its own order of words', async () => {
  const page = { documentElement: { lang: 'en' } };
  vi.stubGlobal('document', page);
  expect(word('part.page', { page: 2 })).toBe('Page 2');
  expect(wordAround('start.or_here', { here: 1 })).toEqual(['Or ', 1, ', in this browser.']);
  await showLanguage('de');
  expect([shownLanguage(), page.documentElement.lang]).toEqual(['de', 'de']);
  expect(word('time.hours_ago', { count: 3 })).toBe('vor 3 h');
  expect(wordAround('part.connect_or_mine', { connect: 1, mine: 2 })).toEqual(['', 1, ' oder ', 2, '.']);
  // What is filled in is text: it fills in nothing itself.
  expect(word('frame.operator_says', { note: '{note} <b>' })).toBe('Der Betreiber schreibt: {note} <b>');
});

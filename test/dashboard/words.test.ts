/** The page's texts: every language has the same ones with the same places, none is unused, and pages that count as translated have no text of their own. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { amountParts, coins, count, date, duration, hashRate, percent, plainNumber } from '../../dashboard/format.ts';
import { WORDS as CHINESE } from '../../dashboard/words/chinese.ts';
import { PAGE_WORDS as CHINESE_PAGES } from '../../dashboard/words/chinese-pages.ts';
import { ENGLISH, type Words } from '../../dashboard/words/english.ts';
import { PAGE_WORDS, type PageWords } from '../../dashboard/words/english-pages.ts';
import { WORDS as GERMAN } from '../../dashboard/words/german.ts';
import { PAGE_WORDS as GERMAN_PAGES } from '../../dashboard/words/german-pages.ts';
import {
  loadPageWords,
  showLanguage,
  shownLanguage,
  type WordKey,
  word,
  wordAround,
} from '../../dashboard/words/language.ts';
import { WORDS as SPANISH } from '../../dashboard/words/spanish.ts';
import { PAGE_WORDS as SPANISH_PAGES } from '../../dashboard/words/spanish-pages.ts';
import { STATUS_WORDS } from '../../pool/api/public/status-words.ts';
import { LANGUAGES, languageFor } from '../../protocol/languages.ts';

const ROOT = join(import.meta.dirname, '../..');
const DASHBOARD = join(import.meta.dirname, '../../dashboard');
const WHOLE = { ...ENGLISH, ...PAGE_WORDS };
const TABLES: Readonly<Record<string, Words & PageWords>> = {
  de: { ...GERMAN, ...GERMAN_PAGES },
  es: { ...SPANISH, ...SPANISH_PAGES },
  zh: { ...CHINESE, ...CHINESE_PAGES },
};
const KEYS = Object.keys(WHOLE) as WordKey[];

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
      (key) => table[key].trim() === '' || placesOf(table[key]).join() !== placesOf(WHOLE[key]).join(),
    );
    expect(wrong, language).toEqual([]);
    // A table that was copied and not translated would pass the rest.
    const same = KEYS.filter((key) => /[a-z]{4}/.test(WHOLE[key]) && table[key] === WHOLE[key]);
    expect(same.length, `${language}: ${same.join(' ')}`).toBeLessThan(KEYS.length / 10);
  }
});

const sources = readdirSync(DASHBOARD, { recursive: true, encoding: 'utf8' }).filter(
  (file) => /\.tsx?$/.test(file) && !file.startsWith('words/'),
);
const read = (file: string): string => readFileSync(join(DASHBOARD, file), 'utf8');

test('no text is unused', () => {
  const text = sources.map(read).join('\n');
  // Keys that are put together: `state.${one}`, `mail.${act}_text`.
  const made = [...text.matchAll(/`([a-z]+\.[a-z_]*)\$\{[^`]*\}([a-z_]*)`/g)];
  const isMade = (key: string) =>
    made.some(([, start = '', end = '']) => key.startsWith(start) && key.endsWith(end) && key !== start + end);
  const unused = KEYS.filter((key) => !text.includes(`'${key}'`) && !isMade(key));
  expect(unused).toEqual([]);
});

test('the status page has the same texts in every language, none of them unused, and none of its own', () => {
  const page = readFileSync(join(ROOT, 'pool/api/public/status.ts'), 'utf8');
  const { en, ...others } = STATUS_WORDS;
  const keys = Object.keys(en) as (keyof typeof en)[];
  expect(Object.keys(STATUS_WORDS)).toEqual(Object.keys(LANGUAGES));
  for (const [language, table] of Object.entries(others)) {
    expect(Object.keys(table), language).toEqual(keys);
    expect(
      keys.filter((key) => table[key] === en[key] || placesOf(table[key]).join() !== placesOf(en[key]).join()),
      language,
    ).toEqual([]);
  }
  // Those of the API's own words are looked up by name: `words[state]`.
  const named = new Set(['working', 'limited', 'away', 'mining', 'node', 'database', 'books', 'payouts']);
  expect(keys.filter((key) => !named.has(key) && !page.includes(`words.${key}`))).toEqual([]);
  expect(ownTexts(page)).toEqual([]);
});

/** What is loaded with a script: all that it imports by name. */
function loadedWith(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file) || file.startsWith('words/')) return found;
  found.add(file);
  for (const [, path = ''] of read(file).matchAll(/^import (?!type )[^;]*?from '(\.[^']+\.tsx?)'/gm)) {
    const name = join(file, '..', path);
    if (!name.startsWith('..')) loadedWith(name, found);
  }
  return found;
}

test('the first look has its texts, and waits for no others', () => {
  const text = [...loadedWith('main.tsx')].map(read).join('\n');
  expect(text).not.toBe(read('main.tsx'));
  const later = Object.keys(PAGE_WORDS).filter((key) => text.includes(`'${key}'`));
  expect(later).toEqual([]);
  const made = [...text.matchAll(/`([a-z]+\.)\$\{/g)].map(([, start = '']) => start);
  const tooEarly = Object.keys(ENGLISH).filter(
    (key) => !text.includes(`'${key}'`) && !made.some((start) => key.startsWith(start)),
  );
  expect(tooEarly).toEqual([]);
});

/** Names, and what is a command or a unit in every language. */
const NOT_WORDS =
  /^(?:PPLNS|Solo|IP|TCP|WebSocket|TLS|MB|ADDRESS|CSV|URL|Webhook|Discord|Telegram|PoolError|svc-[a-z]+(?: [a-z]+)?)$/;
/** Commands, and what wallets sign: in English everywhere, since others read them. */
const FOR_PROGRAMS = /^(?:svc-|npm |curl |payout threshold of |e-mail to |no e-mail at |https?:)|at the pool "/;

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
  const named = [...code.matchAll(/\b(?:title|label|note|text|name|body|caption): '([A-Z][^']*)'/g)];
  const quoted = [...code.matchAll(/(?<![\w=])(?:'((?:[^'\\\n]|\\.)*)'|`([^`\n]*)`)/g)]
    .map(([, plain, template = '']) => ['', plain ?? template.replaceAll(/\$\{[^}]*\}/g, ' ')])
    // Words of a sentence, and no names of classes.
    .filter(([, text = '']) => /[a-z]{2} [a-z]+ [a-z]{2}|^[A-Z][a-z]+ [a-z]{2}/.test(text));
  return [...between, ...lines, ...attributes, ...templates, ...named, ...quoted]
    .map(([, text = '']) => text.trim())
    .filter((text) => text !== '' && !text.startsWith(',') && !NOT_WORDS.test(text) && !FOR_PROGRAMS.test(text));
}

test('no page has a text outside the table', () => {
  expect(sources.length).toBeGreaterThan(75);
  const found = sources.flatMap((file) => ownTexts(read(file)).map((text) => `${file}: ${text}`));
  expect(found).toEqual([]);
  // The look finds what it is for.
  expect(ownTexts('<p>Loading the rest</p>')).toEqual(['Loading the rest']);
  expect(ownTexts('<Figure label="Miners" />')).toEqual(['Miners']);
  expect(ownTexts('<p>\n      Amounts are in coins.\n</p>').length).toBeGreaterThan(0);
  expect(ownTexts(`<Figure label={\`Rate of $\{rate}\`} />`).length).toBeGreaterThan(0);
  expect(ownTexts(`[{ title: 'Worker', cell }]`)).toEqual(['Worker']);
  expect(ownTexts(`throw new Error('the pool does not answer')`)).toEqual(['the pool does not answer']);
  expect(ownTexts(`text: \`You mined for $\{time}\``)).toHaveLength(1);
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

test('the texts of later pages come with them, and change with the language', async () => {
  vi.stubGlobal('document', { documentElement: {} });
  await loadPageWords();
  expect(word('mine.start')).toBe('Start mining');
  await showLanguage('zh');
  expect(word('mine.start')).toBe('开始挖矿');
  // Another language while the texts are on their way.
  const both = [showLanguage('es'), loadPageWords()];
  await Promise.all(both);
  expect([word('nav.blocks'), word('mine.start')]).toEqual(['Bloques', 'Empezar a minar']);
});

test('numbers and dates are those of the language: what the page writes it also reads, and what could mean two things it does not guess', async () => {
  vi.stubGlobal('document', { documentElement: {} });
  const written = () => [count(1_234_567.5), coins('123456789012'), percent(0.1234, 1), hashRate(1.5e6), duration(5)];
  expect(written()).toEqual(['1,234,567.5', '1,234.56789012', '12.3 %', '1.50 MH/s', '5.0 s']);
  expect(['1,250', '1,250.5', '1.25', '1,25', '1250', '1.2.3', '', '-1'].map(plainNumber)).toEqual([
    '1250',
    '1250.5',
    '1.25',
    undefined,
    '1250',
    undefined,
    undefined,
    undefined,
  ]);
  vi.stubGlobal('navigator', { languages: ['de-DE', 'en'] });
  await showLanguage('de');
  expect(written()).toEqual(['1.234.567,5', '1.234,56789012', '12,3 %', '1,50 MH/s', '5,0 s']);
  expect(amountParts('27343967090')).toEqual({ head: '273,4396', rest: '709', zeros: '0' });
  expect(['1.250', '1,25', '1.25', '1.250,5', coins('123456789012')].map(plainNumber)).toEqual([
    '1250',
    '1.25',
    undefined,
    '1250.5',
    '1234.56789012',
  ]);
  expect(date(Date.UTC(2026, 10, 19, 12))).toBe('19.11.26');
  // The region is the reader’s.
  vi.stubGlobal('navigator', { languages: ['de-CH'] });
  await showLanguage('de');
  expect([count(1_234_567.5), plainNumber('1’234’567.5')]).toEqual(["1'234'567.5", '1234567.5']);
  await showLanguage('zh');
  expect([count(1_234_567.5), date(Date.UTC(2026, 10, 19, 12))]).toEqual(['1,234,567.5', '2026/11/19']);
});

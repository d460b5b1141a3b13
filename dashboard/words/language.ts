/**
 * The language of the page: chosen by the reader, else the first of the browser's languages that the page has, else English. English is part of the first page; other languages, and
 * the texts of the other pages, are loaded when they are needed.
 */
import { filled, type Language, languageFor, languageOf, type Values } from '../../protocol/languages.ts';
import { ENGLISH, type FirstWordKey, type Words } from './english.ts';
import type { PageWordKey, PageWords } from './english-pages.ts';

export type WordKey = FirstWordKey | PageWordKey;

const REMEMBERED = 'svc-language';

const FRAMES: Readonly<Record<Exclude<Language, 'en'>, () => Promise<{ readonly WORDS: Words }>>> = {
  de: () => import('./german.ts'),
  es: () => import('./spanish.ts'),
  zh: () => import('./chinese.ts'),
};
const PAGES: Readonly<Record<Language, () => Promise<{ readonly PAGE_WORDS: PageWords }>>> = {
  en: () => import('./english-pages.ts'),
  de: () => import('./german-pages.ts'),
  es: () => import('./spanish-pages.ts'),
  zh: () => import('./chinese-pages.ts'),
};

type Table = Readonly<Partial<Record<WordKey, string>>>;
/** Signs in numbers. */
type Signs = { readonly group: string; readonly point: string };
const ENGLISH_SIGNS: Signs = { group: ',', point: '.' };

let table: Table = ENGLISH;
let shown: Language = 'en';
let signs = ENGLISH_SIGNS;
/** A page other than the first was opened. */
let arePagesWanted = false;
const listeners = new Set<(language: Language) => void>();

export const shownLanguage = (): Language => shown;

export function onLanguage(listener: (language: Language) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function firstLanguage(): Language {
  let remembered: string | null = null;
  try {
    remembered = localStorage.getItem(REMEMBERED);
  } catch {
    // A browser that keeps nothing is asked for its languages.
  }
  return languageFor(remembered, navigator.languages);
}

/** For dates: as the reader's region writes them in the language of the page. English for want of another says nothing about dates. */
export const shownLocale = (): string | undefined =>
  navigator.languages.find((tag) => languageOf(tag) === shown) ?? (shown === 'en' ? undefined : shown);

/** Of numbers, in the language and region of the dates. */
export const shownSigns = (): Signs => signs;

/** Without Intl for English: it takes longer to start than the first page to be drawn. */
function signsOf(language: Language): Signs {
  if (language === 'en') return ENGLISH_SIGNS;
  const parts = new Intl.NumberFormat(shownLocale()).formatToParts(1_234_567.8);
  const sign = (type: 'group' | 'decimal') => parts.find((part) => part.type === type)?.value;
  return { group: sign('group') ?? '', point: sign('decimal') ?? '.' };
}

async function tableOf(language: Language, isWhole: boolean): Promise<Table> {
  const [frame, pages] = await Promise.all([
    language === 'en' ? ENGLISH : FRAMES[language]().then(({ WORDS }) => WORDS),
    isWhole ? PAGES[language]().then(({ PAGE_WORDS }) => PAGE_WORDS) : {},
  ]);
  return { ...frame, ...pages };
}

/** The texts of all pages but the first, for those that are opened after it. Rejects where they cannot be loaded. */
export async function loadPageWords(): Promise<void> {
  if (arePagesWanted && 'miner.enter' in table) return;
  arePagesWanted = true;
  const language = shown;
  const found = await tableOf(language, true);
  // Another language was chosen meanwhile: it knows that it has to bring them.
  if (language === shown) table = found;
  else await loadPageWords();
}

/** Where its texts cannot be loaded the page stays as it is. */
export async function showLanguage(language: Language): Promise<void> {
  try {
    let isWhole: boolean;
    let found: Table;
    do {
      isWhole = arePagesWanted;
      found = await tableOf(language, isWhole);
    } while (isWhole !== arePagesWanted);
    table = found;
    shown = language;
  } catch {
    return;
  }
  signs = signsOf(language);
  document.documentElement.lang = language;
  for (const listener of listeners) listener(language);
}

export function chooseLanguage(language: Language): void {
  try {
    localStorage.setItem(REMEMBERED, language);
  } catch {
    // Without storage it holds until the page is closed.
  }
  void showLanguage(language);
}

/** A page is not drawn before its texts are here; its key would show where that was forgotten. */
const textOf = (key: WordKey): string => table[key] ?? key;

const PLACE = /\{(\w+)\}/;

export const word = (key: WordKey, values: Values = {}): string => filled(textOf(key), values);

/** The same where a place is more than text, such as a link: the pieces in the order of the language. */
export const wordAround = <T>(key: WordKey, parts: Readonly<Record<string, T>>): (string | T | undefined)[] =>
  textOf(key)
    .split(PLACE)
    .map((piece, i) => (i % 2 === 0 ? piece : parts[piece]));

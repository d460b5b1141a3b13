/**
 * The language of the page: chosen by the reader, else the first of the browser's languages that the page has, else English. English is part of the page; the others are
 * loaded when they are needed.
 */
import { ENGLISH, type WordKey, type Words } from './english.ts';

const REMEMBERED = 'svc-language';

/** Each by its own name, for those who look for theirs. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', es: 'Español', zh: '中文' } as const;
export type Language = keyof typeof LANGUAGES;

const TABLES: Readonly<Record<Exclude<Language, 'en'>, () => Promise<{ readonly WORDS: Words }>>> = {
  de: () => import('./german.ts'),
  es: () => import('./spanish.ts'),
  zh: () => import('./chinese.ts'),
};

let table: Words = ENGLISH;
let shown: Language = 'en';
const listeners = new Set<(language: Language) => void>();

export const shownLanguage = (): Language => shown;

export function onLanguage(listener: (language: Language) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** `wanted`: as `navigator.languages`, such as `de-CH`. */
export function languageFor(remembered: string | null, wanted: readonly string[]): Language {
  const known = (tag: string) =>
    Object.keys(LANGUAGES).find((language) => tag.toLowerCase().split('-')[0] === language);
  return ([remembered ?? '', ...wanted].map(known).find((language) => language !== undefined) ?? 'en') as Language;
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

/** Where its texts cannot be loaded the page stays as it is. */
export async function showLanguage(language: Language): Promise<void> {
  try {
    table = language === 'en' ? ENGLISH : (await TABLES[language]()).WORDS;
    shown = language;
  } catch {
    return;
  }
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

const PLACE = /\{(\w+)\}/;

/** The text with its places filled in; one without a value stays as it is. */
export const word = (key: WordKey, values: Readonly<Record<string, string | number>> = {}): string =>
  table[key].replaceAll(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));

/** The same where a place is more than text, such as a link: the pieces in the order of the language. */
export const wordAround = <T>(key: WordKey, parts: Readonly<Record<string, T>>): (string | T | undefined)[] =>
  table[key].split(PLACE).map((piece, i) => (i % 2 === 0 ? piece : parts[piece]));

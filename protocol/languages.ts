/** Languages of the pages, and which of them a reader gets: the pool's page and its status page give the same. */

/** Each by its own name, for those who look for theirs. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', es: 'Español', zh: '中文' } as const;
export type Language = keyof typeof LANGUAGES;

/** Of a tag such as `de-CH`. */
export const languageOf = (tag: string): string | undefined => tag.toLowerCase().split('-')[0];

/** The one that was chosen, else the first of the wanted ones that there is, else English. */
export function languageFor(chosen: string | null, wanted: readonly string[]): Language {
  const known = (tag: string) => Object.keys(LANGUAGES).find((language) => languageOf(tag) === language);
  return ([chosen ?? '', ...wanted].map(known).find((language) => language !== undefined) ?? 'en') as Language;
}

export type Values = Readonly<Record<string, string | number>>;

/** A text with its places, in braces, filled in; one without a value stays as it is. */
export const filled = (text: string, values: Values): string =>
  text.replaceAll(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));

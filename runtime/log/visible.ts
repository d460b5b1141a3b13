/** Escapes untrusted text: characters that would control a terminal, or reorder its output, are made visible. */

/**
 * Characters that move the cursor, end a line, change the writing direction, or are invisible, so that different texts
 * look the same. Joiners and the first variation selectors are left: scripts and emoji need them.
 */
export const UNSEEN =
  /[[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{fff9}-\u{fffb}]--[\u{200c}\u{200d}\u{fe00}-\u{fe0f}]]/gv;

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('');

/** As escapes of JSON. In JSON text this changes no value: there such characters occur only inside strings. */
export const visible = (text: string): string => text.replace(UNSEEN, escaped);

/** A value as JSON that may be shown on a terminal. Line breaks of the text are its own: those of strings are escapes already. */
export const jsonText = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).split('\n').map(visible).join('\n');

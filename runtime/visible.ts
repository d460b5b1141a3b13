/** Text from others, with what would steer a terminal, or reorder what it shows, made visible. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to be made visible
const UNPRINTABLE = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** As escapes of JSON. In JSON text this changes no value: there such characters occur only inside strings. */
export const visible = (text: string): string =>
  text.replace(UNPRINTABLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

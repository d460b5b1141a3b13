/**
 * A strict JSON reader (docs/protocol/stratum.md, S12). Beyond JSON.parse it refuses duplicate keys, lone surrogates,
 * deep nesting and floods of tiny values, so that memory stays a small multiple of the input and two readers can never
 * see two meanings in one line. Objects are Maps: no key is special.
 */
import { ProtocolError } from '../errors.ts';

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

export const MAX_DEPTH = 6;
export const MAX_VALUES = 128;

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
/** A run of characters without escapes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const HEX4 = /^[0-9A-Fa-f]{4}$/;
const ESCAPES: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

class JsonReader {
  readonly #text: string;
  readonly #maxValues: number;
  #at = 0;
  #values = 0;

  constructor(text: string, maxValues: number) {
    this.#text = text;
    this.#maxValues = maxValues;
  }

  document(): Json {
    const value = this.#value(0);
    this.#space();
    if (this.#at !== this.#text.length) this.#fail('text after the value');
    return value;
  }

  #fail(what: string): never {
    throw new ProtocolError('json_text', `${what} at character ${this.#at}`);
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.#at++;
    }
  }

  #expect(character: string): void {
    this.#space();
    if (this.#text[this.#at] !== character) this.#fail(`'${character}' expected`);
    this.#at++;
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#fail('a value expected');
    this.#at += word.length;
    return value;
  }

  // Recursion is bounded by MAX_DEPTH.
  #value(depth: number): Json {
    if (++this.#values > this.#maxValues) throw new ProtocolError('too_long', `more than ${this.#maxValues} values`);
    this.#space();
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth + 1);
      case '[':
        return this.#array(depth + 1);
      case '"':
        return this.#string();
      case 't':
        return this.#word('true', true);
      case 'f':
        return this.#word('false', false);
      case 'n':
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #enter(depth: number): void {
    if (depth > MAX_DEPTH) throw new ProtocolError('json_depth', `nested deeper than ${MAX_DEPTH}`);
    this.#at++;
    this.#space();
  }

  #more(close: string): boolean {
    this.#space();
    const next = this.#text[this.#at];
    if (next !== ',' && next !== close) this.#fail(`',' or '${close}' expected`);
    this.#at++;
    return next === ',';
  }

  #object(depth: number): JsonObject {
    this.#enter(depth);
    const entries: JsonObject = new Map();
    if (this.#text[this.#at] === '}') {
      this.#at++;
      return entries;
    }
    do {
      this.#space();
      if (this.#text[this.#at] !== '"') this.#fail('a key expected');
      const key = this.#string();
      if (entries.has(key)) throw new ProtocolError('duplicate_entry', 'a key occurs twice in one object');
      this.#expect(':');
      entries.set(key, this.#value(depth));
    } while (this.#more('}'));
    return entries;
  }

  #array(depth: number): Json[] {
    this.#enter(depth);
    const items: Json[] = [];
    if (this.#text[this.#at] === ']') {
      this.#at++;
      return items;
    }
    do items.push(this.#value(depth));
    while (this.#more(']'));
    return items;
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (found === null) this.#fail('a value expected');
    this.#at += found[0].length;
    return Number(found[0]) + 0; // -0 becomes 0
  }

  #string(): string {
    this.#at++;
    let value = '';
    let escaped = false;
    for (;;) {
      PLAIN.lastIndex = this.#at;
      PLAIN.exec(this.#text);
      value += this.#text.slice(this.#at, PLAIN.lastIndex);
      this.#at = PLAIN.lastIndex;
      const next = this.#text[this.#at];
      if (next === '"') break;
      if (next !== '\\') this.#fail(next === undefined ? 'unfinished string' : 'control character in a string');
      value += this.#escape();
      escaped = true;
    }
    this.#at++;
    if (escaped && !value.isWellFormed()) throw new ProtocolError('bad_utf8', 'half of a surrogate pair');
    return value;
  }

  #escape(): string {
    const letter = this.#text[this.#at + 1] ?? '';
    if (letter === 'u') {
      const digits = this.#text.slice(this.#at + 2, this.#at + 6);
      if (!HEX4.test(digits)) this.#fail('bad \\u escape');
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const value = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (value === undefined) this.#fail('bad escape');
    this.#at += 2;
    return value;
  }
}

/** `maxValues`: for lists that a program gives itself, not for what comes over a wire. */
export const parseJson = (text: string, maxValues = MAX_VALUES): Json => new JsonReader(text, maxValues).document();

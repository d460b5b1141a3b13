/**
 * What a wait has seen so far. Only what it has not seen before moves: a page that is loaded again and again, with the same words, other times and figures
 * that come and go, brings nothing that a test waits for.
 */

const MOST_WORDS = 2_000;
const MOST_LEAVES = 1_000;
const MOST_DEPTH = 6;
const MOST_CHARACTERS = 200_000;

/** A line without what differs from one to the next of its kind: times, numbers, identifiers. */
export const kindOf = (line: string): string =>
  line.replaceAll(/[\p{L}\p{N}_]*\p{N}[\p{L}\p{N}_]*/gu, '#').slice(0, 200);

const FIGURE = /^-?\d[\d,]*(?:\.\d+)?$/;
/** Amounts are texts in answers of the programs. */
function figureOf(value: unknown): number {
  if (typeof value === 'string') return FIGURE.test(value) ? Number(value.replaceAll(',', '')) : Number.NaN;
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : Number.NaN;
}

export class Seen {
  readonly #words = new Set<string>();
  readonly #figures = new Map<string, [least: number, most: number]>();
  #leaves = 0;

  /** Whether something of it is new: a line of a new kind, or a figure below or above all before. */
  moves(value: unknown): boolean {
    this.#leaves = 0;
    return this.#moves('', value, 0);
  }

  #moves(path: string, value: unknown, depth: number): boolean {
    if (depth > MOST_DEPTH || ++this.#leaves > MOST_LEAVES) return false;
    const figure = figureOf(value);
    if (!Number.isNaN(figure)) return this.#figure(path, figure);
    if (typeof value === 'string') return this.#text(value);
    if (value instanceof Error) return this.#text(value.message);
    if (typeof value !== 'object' || value === null) return this.#word(`${path} ${String(value)}`);
    if (ArrayBuffer.isView(value)) return this.#figure(path, value.byteLength);
    const isList = Array.isArray(value) || value instanceof Set;
    const entries: [string, unknown][] = isList
      ? [...value].map((each) => ['', each])
      : value instanceof Map
        ? [...value].map(([key, each]) => [String(key), each])
        : Object.entries(value);
    // Not `some`: all of it has been seen now.
    let isNew = isList && this.#figure(`${path}.length`, entries.length);
    for (const [key, each] of entries) isNew = this.#moves(`${path}.${key}`, each, depth + 1) || isNew;
    return isNew;
  }

  #text(text: string): boolean {
    let isNew = false;
    for (const line of text.slice(-MOST_CHARACTERS).split('\n')) isNew = this.#word(kindOf(line)) || isNew;
    return isNew;
  }

  #word(word: string): boolean {
    if (this.#words.size >= MOST_WORDS || this.#words.has(word)) return false;
    this.#words.add(word);
    return true;
  }

  #figure(path: string, value: number): boolean {
    const [least, most] = this.#figures.get(path) ?? [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    if (value >= least && value <= most) return false;
    this.#figures.set(path, [Math.min(value, least), Math.max(value, most)]);
    return true;
  }
}

/** The target of a request line, read without anything that can throw: it is untrusted input. */

export type Target = {
  readonly path: string;
  /** The text after the first question mark, as it came. */
  readonly query: string;
};

/** Undefined if it is not a path: `*`, `http://host/path`, and a request without a target. */
export function readTarget(text: string | undefined): Target | undefined {
  if (text === undefined || text.charCodeAt(0) !== 0x2f) return undefined;
  const mark = text.indexOf('?');
  return mark < 0 ? { path: text, query: '' } : { path: text.slice(0, mark), query: text.slice(mark + 1) };
}

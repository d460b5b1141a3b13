/** The pool's figures that came with the page (pool/api/public/first-page.ts): they are on the screen with the first paint. */

/** Every page that opens later reads them anew. */
const FRESH_MILLIS = 10_000;
const PATH = 'pool';

let known: unknown;

/** Undefined where the page came without them, and later on. */
export function firstDocument<T>(path: string | undefined): T | undefined {
  if (path !== PATH || performance.now() > FRESH_MILLIS) return undefined;
  known ??= parsed(document.getElementById('first-document')?.textContent);
  return known as T | undefined;
}

function parsed(text: string | null | undefined): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Reading another pool's public API: page by page. Waits and retries when the pool asks for it. */
import type { BooksSources } from '../../protocol/books-evidence.ts';
import { PoolError } from '../pool-error.ts';

const PAGE = 200;
const TIMEOUT_MILLIS = 30_000;
const MAX_TRIES = 20;
/** A pool keeps its answers for five seconds: what is asked for after this is newer than all that was known before. */
const ANSWER_MILLIS = 6_000;

export const newerAnswers = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, ANSWER_MILLIS));

/** Too many requests, or busy. */
const RETRIED: ReadonlySet<number> = new Set([429, 503]);

async function answerOf(url: string): Promise<Response> {
  try {
    return await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MILLIS) });
  } catch (error) {
    const { message, cause } = error as Error;
    const why =
      cause instanceof Error ? `${message}: ${cause.message || String((cause as { code?: string }).code)}` : message;
    throw new PoolError('pool_unreachable', `no answer from ${url}: ${why}`);
  }
}

/** Reads a pool's API, and waits as long as `retry-after` says. */
export function publicPool(url: string): BooksSources['pool'] {
  const base = url.replace(/\/+$/, '');
  return async (path) => {
    for (let tries = 1; ; tries++) {
      const response = await answerOf(`${base}/api/v1/${path}`);
      if (response.ok) return response.json();
      if (!RETRIED.has(response.status) || tries === MAX_TRIES)
        throw new Error(`${path}: the pool answered with status ${response.status}`);
      const seconds = Math.min(30, Math.max(1, Number(response.headers.get('retry-after') ?? 1)));
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  };
}

/** All rows of a list, page by page. */
export async function* pagesOf<T>(
  pool: BooksSources['pool'],
  path: string,
  rows: (answer: never) => readonly T[],
): AsyncGenerator<T> {
  for (let cursor: string | undefined; ; ) {
    const from = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = (await pool(`${path}?limit=${PAGE}${from}`)) as { next_cursor?: string };
    yield* rows(answer as never);
    if (answer.next_cursor === undefined) return;
    if (answer.next_cursor === cursor) throw new Error(`${path}: the pool gives the same page again`);
    cursor = answer.next_cursor;
  }
}

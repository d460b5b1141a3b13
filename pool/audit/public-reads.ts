/**
 * Reading an untrusted pool: every answer, every list and the whole audit are bounded. Redirects are not followed, so that only the named pool
 * answers.
 */

import { type BooksSources, NEWER_MILLIS } from '../../protocol/books/books-evidence.ts';
import { isBusy, PoolSilence, retryAfterMillis } from '../../protocol/books/pool-silence.ts';
import { steadyNow } from '../../runtime/clock/clock.ts';
import { plainFetch } from '../../runtime/node-client/http-fetch.ts';
import { PoolError } from '../pool-error.ts';
import { fieldsOf, listOf } from './public-rows.ts';

/** Rows requested per page; a page with a next one has exactly this many. */
const PAGE = 200;
/** Maximum number of rows read of one list, so that they fit into memory. */
const MAX_ROWS = 2_000_000;
const MAX_CURSOR = 256;
const MAX_TRIES = 20;
/** Attempts per request when the connection is lost: a pool or proxy that restarts is back within seconds. */
const MAX_LOST = 4;
/** Pages are far smaller. Each page of a list repeats its head, with all parts of the window; blocks of a slice have no pages. */
const ANSWER_BYTES = 512 * 1024;
const LIST_BYTES = 8 * 1024 * 1024;
const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));
export const newerAnswers = (): Promise<void> => pause(NEWER_MILLIS);

export type ReadLimits = {
  /** Time for one answer, with its body. */
  readonly answerMillis: number;
  /** Time for all of them. */
  readonly totalMillis: number;
  /** The longest wait before a busy pool is asked again. */
  readonly waitMillis: number;
};
export const READ_LIMITS: ReadLimits = { answerMillis: 30_000, totalMillis: 12 * 3_600_000, waitMillis: 600_000 };

const whyOf = ({ message, cause }: Error): string =>
  cause instanceof Error ? `${message}: ${cause.message || String((cause as { code?: string }).code)}` : message;

const REDIRECTED = /redirect/;

/** What is none may be of somebody in between, or cut short. */
function documentOf(path: string, bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new PoolSilence(`${path}: the answer is no document`);
  }
}

/** Reads a pool's API, and waits as long as `retry-after` says. */
export function publicPool(url: string, limits: ReadLimits = READ_LIMITS): BooksSources['pool'] {
  const base = url.replace(/\/+$/, '');
  const ends = steadyNow() + limits.totalMillis;
  let isFound = false;
  /** Undefined when the connection was lost and the request is made again. */
  const once = async (path: string, tries: number) => {
    const left = ends - steadyNow();
    if (left <= 0) throw new PoolSilence('the pool takes too long to be read');
    const signal = AbortSignal.timeout(Math.ceil(Math.min(limits.answerMillis, left)));
    try {
      const answer = await plainFetch(`${base}/api/v1/${path}`, { method: 'GET', headers: {}, signal });
      if (answer.status >= 300 && answer.status < 400) throw new Error('the answer is a redirect');
      return { answer, bytes: await answer.arrayBuffer() };
    } catch (error) {
      const why = whyOf(error as Error);
      const isRedirect = REDIRECTED.test(why);
      const remedy = isRedirect ? '; it redirects to another address: use that one' : '';
      // Retried only if the pool has answered before, and not after a timeout.
      if (isFound && !isRedirect && !signal.aborted && tries < MAX_LOST) return undefined;
      if (isFound) throw new PoolSilence(`${path}: no answer: ${why}`);
      throw new PoolError('pool_unreachable', `no answer from ${base}/api/v1/${path}: ${why}${remedy}`);
    }
  };
  return async (path) => {
    for (let tries = 1; ; tries++) {
      const given = await once(path, tries);
      if (given === undefined) {
        await pause(Math.min(limits.waitMillis, 1_000 * tries));
        continue;
      }
      const { answer, bytes } = given;
      if (answer.status === 200) {
        isFound = true;
        const most = /^proofs\/|\/blocks$/.test(path) ? LIST_BYTES : ANSWER_BYTES;
        if (bytes.byteLength > most) throw new Error(`${path}: the answer is larger than ${most} bytes`);
        return documentOf(path, bytes);
      }
      const wait = retryAfterMillis(answer.headers.get('retry-after'));
      const isWaiting = isBusy(answer.status) && tries < MAX_TRIES && steadyNow() + wait < ends;
      if (isWaiting) {
        await pause(Math.min(limits.waitMillis, wait));
        continue;
      }
      throw new PoolSilence(`${path}: the pool answered with status ${answer.status}`);
    }
  };
}

/** All rows of a list, page by page: `rows` of each answer, each read by `read`. A page that names a next one is full (rule 26). */
export async function* pagesOf<T>(
  pool: BooksSources['pool'],
  path: string,
  { rows, read, most = MAX_ROWS }: { rows: string; read: (row: unknown) => T; most?: number },
): AsyncGenerator<T> {
  let count = 0;
  for (let cursor: string | undefined; ; ) {
    const from = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = fieldsOf(await pool(`${path}?limit=${PAGE}${from}`));
    const page = listOf(answer[rows], PAGE);
    count += page.length;
    // More rows than the reader's limit are not a finding; more than the pool itself states are.
    if (count > MAX_ROWS) throw new PoolSilence(`${path}: more than the ${MAX_ROWS} rows that are read`);
    if (count > most) throw new Error(`${path}: more than ${most} rows`);
    for (const row of page) yield read(row);
    const next = answer.next_cursor;
    if (next === undefined) return;
    if (typeof next !== 'string' || next === '' || next.length > MAX_CURSOR)
      throw new Error(`${path}: the cursor is not valid`);
    if (page.length < PAGE || next === cursor) throw new Error(`${path}: the pages do not end`);
    cursor = next;
  }
}

/** Limits of a check that a person waits for: a pool may answer each of many requests slowly, or ask to wait before each. */
const CHECK_LIMITS = { answerMillis: 15_000, totalMillis: 30 * 60_000, waitMillis: 600_000 } as const;

/** Reads a pool's public API for a check that a person waits for. */
export const publishedApi = (api: string): BooksSources['pool'] => publicPool(api, CHECK_LIMITS);

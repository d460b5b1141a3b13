/** Reads of a node's public API: the pool's own node through the pool, or one on the reader's machine. The page admits no others. */

import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { word } from '../words/language.ts';

const REMEMBERED = 'svc-check-node';
const TIMEOUT_MILLIS = 15_000;

/** Such as http://127.0.0.1:28701; empty when no node was named. */
export function checkNode(): string {
  try {
    return localStorage.getItem(REMEMBERED) ?? '';
  } catch {
    return '';
  }
}

export function rememberCheckNode(url: string): void {
  try {
    localStorage.setItem(REMEMBERED, url);
  } catch {
    // Without storage it holds until the page is closed.
  }
}

/** The pool's node, through the pool: good for looking things up, but not as evidence against the pool. */
export const poolNode = (): string => new URL('api/v1/node', document.baseURI).href;

async function call<T>(base: string, path: string, body?: object): Promise<T> {
  const response = await ask(base, path, body);
  if (!response.ok) throw new Error(word('node.answered', { status: response.status }));
  return (await response.json()) as T;
}

const ask = (base: string, path: string, body: object | undefined): Promise<Response> =>
  fetch(`${base.replace(/\/+$/, '')}${path}`, {
    signal: AbortSignal.timeout(TIMEOUT_MILLIS),
    redirect: 'error',
    ...(body === undefined
      ? {}
      : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });

/** The same for people: what the node says is wrong, or what may be wrong when nobody answers. */
export async function nodeCall<T>(base: string, path: string, body?: object): Promise<T> {
  let response: Response;
  try {
    response = await ask(base, path, body);
  } catch {
    throw new Error(word('node.unreachable'));
  }
  const answer = (await response.json().catch(() => undefined)) as (T & { error?: { message?: string } }) | undefined;
  if (response.ok && answer !== undefined) return answer;
  const reason = answer?.error?.message ?? word('node.status', { status: response.status });
  throw new Error(word('node.replied', { reason }));
}

export const nodeReads = (base: string): NonNullable<BooksSources['node']> => ({
  cuts: (input) => call(base, `/v1/cuts?before=${input?.before}&limit=${input?.limit}`),
  addressChanges: (input) => call(base, '/v1/address/changes', input),
  cutTransactions: ({ height, limit, cursor }) =>
    call(
      base,
      `/v1/cuts/${height}/transactions?limit=${limit}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    ),
  block: ({ id }) => call(base, `/v1/blocks/${encodeURIComponent(id)}`),
});

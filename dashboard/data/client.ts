/** Reading the pool's API from the page: relative addresses, one error type for whatever went wrong. */

import type { ErrorDocument } from '../../pool/api/documents.ts';
import { shownLanguage, word } from '../words/language.ts';

export class PoolError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'PoolError';
    this.status = status;
    this.code = code;
  }
}

const TIMEOUT_MILLIS = 15_000;

export const apiUrl = (path: string): URL => new URL(`api/v1/${path}`, document.baseURI);

export async function read<T>(path: string, init: RequestInit = {}): Promise<T> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(apiUrl(path), { signal: AbortSignal.timeout(TIMEOUT_MILLIS), ...init });
    // One that breaks off, or takes too long, is no answer.
    text = await response.text();
  } catch {
    throw new PoolError(0, 'unreachable', word('error.unreachable'));
  }
  const body = parsed(text) as (T & Partial<ErrorDocument>) | undefined;
  if (response.ok && body !== undefined) return body;
  const error = body?.error;
  throw new PoolError(response.status, error?.code ?? 'unreadable', messageOf(response.status, error));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const GENERAL = ['too_many_requests', 'unavailable', 'internal'] as const;

/** The pool writes in English. What may befall any request has words in the other languages; what is wrong with one in particular is shown as the pool says it. */
function messageOf(status: number, error: ErrorDocument['error'] | undefined): string {
  if (error === undefined) return word('error.status', { status });
  const general = shownLanguage() === 'en' ? undefined : GENERAL.find((code) => code === error.code);
  return general === undefined ? error.message : word(`error.${general}`);
}

const underWay = new Map<string, Promise<unknown>>();

/** Parts of a page that ask for the same document at the same time share one request. */
export function readTogether<T>(path: string): Promise<T> {
  const found = underWay.get(path) ?? read<T>(path).finally(() => underWay.delete(path));
  underWay.set(path, found);
  return found as Promise<T>;
}

/** A call of the operator, with the token the operator typed. */
export const operate = <T>(token: string, path: string, method = 'GET', body?: object): Promise<T> =>
  read<T>(`operator/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

export const query = (values: Readonly<Record<string, string | number | undefined>>): string => {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
};

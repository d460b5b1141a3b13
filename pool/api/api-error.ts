/** Refusals of the pool's API: a status and one error document. The codes are listed in docs/errors.md. */
import { CodedError } from '../../protocol/coded-error.ts';
import type { Words } from '../../runtime/door/last-words.ts';

export const POOL_API_ERRORS = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  request_timeout: 408,
  conflict: 409,
  too_many_requests: 429,
  headers_too_large: 431,
  internal: 500,
  unavailable: 503,
} as const;
export type PoolApiErrorCode = keyof typeof POOL_API_ERRORS;

export class ApiRefusal extends CodedError<PoolApiErrorCode> {
  override readonly name = 'ApiRefusal';
  readonly retryAfterMillis: number | undefined;

  constructor(code: PoolApiErrorCode, message: string, retryAfterMillis?: number) {
    super(code, message);
    // Whole seconds, as the header `retry-after` has them: both say the same.
    this.retryAfterMillis = retryAfterMillis === undefined ? undefined : Math.ceil(retryAfterMillis / 1000) * 1000;
  }

  get status(): number {
    return POOL_API_ERRORS[this.code];
  }

  get document(): { api_version: 1; error: { code: PoolApiErrorCode; message: string; retry_after_millis?: number } } {
    const { code, message, retryAfterMillis } = this;
    return {
      api_version: 1,
      error: { code, message, ...(retryAfterMillis === undefined ? {} : { retry_after_millis: retryAfterMillis }) },
    };
  }
}

/** The form in which the listener's admission check sends it, before any route is reached. */
export const wordsOf = ({ status, document }: ApiRefusal): Words => ({
  status,
  type: 'application/json; charset=utf-8',
  body: JSON.stringify(document),
});

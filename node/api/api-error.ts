/** Refusals of the public API: a status and the one error document. Thrown by a route, caught by the dispatcher. */
import { API_VERSION, type ErrorDocument } from '../../protocol/api/documents.ts';
import { API_ERRORS, type ApiErrorCode } from '../../protocol/api/error-codes.ts';

export class Refusal extends Error {
  readonly status: number;
  readonly document: ErrorDocument;

  constructor(status: number, document: ErrorDocument) {
    super(document.error.message);
    this.name = 'Refusal';
    this.status = status;
    this.document = document;
  }
}

export type RefusalFields = Omit<ErrorDocument['error'], 'code' | 'message'>;

export function refusal(code: ApiErrorCode, message: string, fields: RefusalFields = {}, wait?: number): Refusal {
  return new Refusal(API_ERRORS[code], {
    api_version: API_VERSION,
    error: { code, message, ...fields },
    ...(wait === undefined ? {} : { retry_after_millis: wait }),
  });
}

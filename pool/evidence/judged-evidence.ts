/** What evidence of any kind is held against, and what a verifier makes of it. */
import type { ApiClient } from '../../protocol/api/client.ts';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';

/** Undefined where it was not given. */
export type EvidenceSources = {
  readonly poolKey: string | undefined;
  readonly pool: BooksSources['pool'] | undefined;
  readonly node: ApiClient | undefined;
};

/** The exit code, and what is said to a program and to a person. */
export type Judged = { readonly exit: number; readonly document: object; readonly words: readonly string[] };

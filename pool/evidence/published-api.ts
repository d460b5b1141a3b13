/** Reads a pool's public API for a check that a person waits for. */
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { publicPool } from '../audit/public-reads.ts';

/** Time limit of the whole check: a pool may answer each of many requests slowly, or ask to wait before each. */
const LIMITS = { answerMillis: 15_000, totalMillis: 30 * 60_000, waitMillis: 600_000 } as const;

export const publishedApi = (api: string): BooksSources['pool'] => publicPool(api, LIMITS);

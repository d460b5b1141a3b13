/**
 * How a pool did not answer (books rule 30). An unread page is never a lie: a lost connection, a refusal, a busy pool and
 * an answer that came too late say nothing about the books, whoever caused them. Only documents can be false, and only a
 * document can leave out what must be in it.
 */

/** No document. `retryAfterMillis`: the pool asked to wait as long. */
export class PoolSilence extends Error {
  readonly status: number | undefined;
  readonly retryAfterMillis: number | undefined;

  constructor(message: string, { status, retryAfterMillis }: { status?: number; retryAfterMillis?: number } = {}) {
    super(message);
    this.status = status;
    this.retryAfterMillis = retryAfterMillis;
  }
}

/** The pool answered with a document, and left out what must be in it. Whether it stays so shows in later answers. */
export class PoolOmission extends PoolSilence {}

/** Nothing was read: no checker concludes anything from it but that a part could not be checked. */
export const isUnread = (error: unknown): boolean => error instanceof PoolSilence && !(error instanceof PoolOmission);

/** Too many requests, or busy: asked again after the time that the pool names. */
export const isBusy = (status: number): boolean => status === 429 || status === 503;

/** The wait of a `retry-after` in whole seconds; a second where there is none. */
export function retryAfterMillis(header: string | null): number {
  const seconds = Number(header ?? 1);
  return Math.max(1, Number.isFinite(seconds) ? seconds : 1) * 1_000;
}

/** An answer with another status than 200. */
export const silenceOf = (status: number, retryAfter: string | null): PoolSilence =>
  new PoolSilence(`status ${status}`, {
    status,
    ...(isBusy(status) ? { retryAfterMillis: retryAfterMillis(retryAfter) } : {}),
  });

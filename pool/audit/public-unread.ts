/**
 * Rows of which the node cannot tell: it deleted the cut, or never had it. Each such row is not checked, and all others are: by naming one old cut, a pool must not
 * keep the rest from being judged.
 */
import { ApiError } from '../../protocol/api/client-calls.ts';

/** The node answered, and refused this one. A node that does not answer, or is busy, is no matter of one row. */
const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;

type Unread = { readonly kind: string; readonly first: string; readonly why: string; count: number };

export class UnreadRows {
  readonly #rows = new Map<string, Unread>();

  /** What `work` reads for a row; undefined where the node refuses it. `kind`: what rows of that sort are, in the plural. */
  async read<T>(kind: string, name: string, work: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    try {
      return { value: await work() };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const why = `${error.code}: ${error.message}`;
      const key = `${kind} ${why}`;
      const known = this.#rows.get(key) ?? { kind, first: name, why, count: 0 };
      known.count++;
      this.#rows.set(key, known);
      return undefined;
    }
  }

  /** Each sort of rows and each reason on a line, with how many there are. */
  get lines(): string[] {
    return [...this.#rows.values()].map(
      ({ kind, first, why, count }) => `${count} ${kind}, the first ${first}: ${why}`,
    );
  }
}

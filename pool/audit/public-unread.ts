/**
 * Rows that the node cannot confirm, because it deleted the cut or never had it. Such rows are not checked, all others
 * are: with one old cut, a pool must not prevent the check of the rest.
 */
import { ApiError } from '../../protocol/api/client-calls.ts';

/** The node answered and refused this row. A node that does not answer, or is busy, does not concern a single row. */
const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;

type Unread = { readonly kind: string; readonly first: string; readonly why: string; count: number };

export class UnreadRows {
  readonly #rows = new Map<string, Unread>();

  /** The result of `work` for a row; undefined if the node refuses it. `kind` names such rows, in the plural. */
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

  /** One line for each kind of rows and reason, with their number. */
  get lines(): string[] {
    return [...this.#rows.values()].map(
      ({ kind, first, why, count }) => `${count} ${kind}, the first ${first}: ${why}`,
    );
  }
}

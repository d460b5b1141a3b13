/**
 * Writes evidence files, one after the other. Evidence that cannot be written (disk full, directory missing) is kept
 * and retried: the pool may never show it again.
 */
import type { AlarmEvidence } from './books-alarms.ts';
import { type EvidenceName, writeEvidence } from './books-file.ts';

/** Path of the evidence of an alarm, or why it could not be written. */
export type Written = { readonly evidence?: string; readonly evidence_lost?: string };

/** What waits to be written. There are at most 32 alarms of a kind, and most kinds have no evidence. */
const MAX_WAITING = 256;

type Waiting = {
  readonly alarm: string;
  readonly name: EvidenceName;
  readonly evidence: AlarmEvidence;
  /** The alarm is of this pool. */
  readonly pool: string;
};

export class EvidenceFiles {
  readonly #directory: string;
  readonly #onWritten: (one: Pick<Waiting, 'pool' | 'name'>, file: string | undefined) => void;
  #writing: Promise<unknown> = Promise.resolve();
  #waiting: Waiting[] = [];
  readonly #begun = new Set<Waiting>();

  constructor(directory: string, onWritten: (one: Pick<Waiting, 'pool' | 'name'>, file: string | undefined) => void) {
    this.#directory = directory;
    this.#onWritten = onWritten;
  }

  /** Evidence not on disk yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Alarms of a pool whose evidence waits, or is being written. */
  alarmsOf(pool: string): ReadonlySet<string> {
    const all = [...this.#waiting, ...this.#begun];
    return new Set(all.filter((one) => one.pool === pool).map(({ alarm }) => alarm));
  }

  /** Resolves when all earlier writes have succeeded or failed. */
  get settled(): Promise<unknown> {
    return this.#writing;
  }

  write(one: Waiting): Promise<Written> {
    this.#begun.add(one);
    return this.#next(async () => {
      try {
        const file = await writeEvidence(this.#directory, one.name, one.evidence);
        return file === undefined ? {} : { evidence: file };
      } catch (error) {
        if (this.#waiting.length < MAX_WAITING) this.#waiting.push(one);
        return { evidence_lost: (error as Error).message };
      } finally {
        this.#begun.delete(one);
      }
    });
  }

  /** Retries all waiting evidence. */
  retry(): Promise<void> {
    return this.#next(async () => {
      const left: Waiting[] = [];
      for (const one of this.#waiting) {
        try {
          this.#onWritten(one, await writeEvidence(this.#directory, one.name, one.evidence));
        } catch {
          left.push(one);
        }
      }
      this.#waiting = left;
    });
  }

  /** One after the other: each looks at what lies there. */
  #next<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#writing.then(work);
    this.#writing = turn;
    return turn;
  }
}

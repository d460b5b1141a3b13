/**
 * Files of evidence, one after the other. What cannot be written, because the disk is full or the directory is gone, is kept and tried again until it is: the pool may never show again what convicts it.
 */
import type { AlarmEvidence } from './books-alarms.ts';
import { type EvidenceName, writeEvidence } from './books-file.ts';

/** Where the evidence of an alarm lies, or why it could not be written. */
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

  /** Evidence that is on no disk yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Alarms of a pool whose evidence waits, or is being written. */
  alarmsOf(pool: string): ReadonlySet<string> {
    const all = [...this.#waiting, ...this.#begun];
    return new Set(all.filter((one) => one.pool === pool).map(({ alarm }) => alarm));
  }

  /** Ends when all that was begun before has been written or has failed. */
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

  /** Tries all that waits once more. */
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

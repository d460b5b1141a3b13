/**
 * Storage of svc-miner's data about pools' books: DIR/books-NETWORK.json, a small file that is replaced as a whole, and
 * DIR/evidence-*.json, one for each finding that others can check. An unreadable file counts as absent: then counting
 * starts again.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { EvidenceFile } from '../../protocol/evidence/evidence-file.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';

/** Far more than the pools of a file need: if it became too large to be read, the keys of all pools would be lost. */
const MOST_BYTES = 64 * 1024 * 1024;

export type SavedBooks = Readonly<Record<string, unknown>>;

const pathOf = (directory: string, network: NetworkName): string => join(directory, `books-${network}.json`);

export function readBooks(directory: string, network: NetworkName): SavedBooks {
  try {
    const { pools } = JSON.parse(readSmallFile(pathOf(directory, network), MOST_BYTES)) as { pools: SavedBooks };
    return typeof pools === 'object' && pools !== null ? pools : {};
  } catch {
    return {};
  }
}

export const writeBooks = (directory: string, network: NetworkName, pools: SavedBooks): Promise<void> =>
  writeDurably(pathOf(directory, network), `${JSON.stringify({ pools })}\n`);

/**
 * Files of one kind about one pool. One is enough; a pool that repeatedly convicts itself must not fill the disk, and
 * the limit is separate for each kind and pool.
 */
export const MOST_EVIDENCE = 8;

export type EvidenceName = { readonly kind: string; readonly slice: string; readonly pool: string };

const plain = (text: string): string => text.replace(/[^A-Za-z0-9-]+/g, '-');

/**
 * Returns its path, or undefined if the limit of its kind is reached. The same evidence has the same name. One call at
 * a time.
 */
export async function writeEvidence(
  directory: string,
  { kind, slice, pool }: EvidenceName,
  evidence: EvidenceFile,
): Promise<string | undefined> {
  const [start, end] = [plain(`evidence-${kind}-`), `${plain(`-${pool}`)}.json`];
  const name = `${start}${plain(slice)}${end}`;
  const kept = await readdir(directory).catch(() => []);
  const alike = kept.filter((file) => file.startsWith(start) && file.endsWith(end));
  if (alike.length >= MOST_EVIDENCE && !alike.includes(name)) return undefined;
  await writeDurably(join(directory, name), `${JSON.stringify(evidence, undefined, 1)}\n`);
  return join(directory, name);
}

/** Path of the evidence of an alarm, or why it could not be written. */
export type Written = { readonly evidence?: string; readonly evidence_lost?: string };

/** What waits to be written. There are at most 32 alarms of a kind, and most kinds have no evidence. */
const MAX_WAITING = 256;

type Waiting = {
  readonly alarm: string;
  readonly name: EvidenceName;
  readonly evidence: EvidenceFile;
  /** The alarm is of this pool. */
  readonly pool: string;
};

/**
 * Writes evidence files, one after the other. Evidence that cannot be written (disk full, directory missing) is kept
 * and retried: the pool may never show it again.
 */
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

/**
 * Data about a pool's books from one connection: its offer of receipts, the receipts, and the work that it answers with
 * `accepted`, each with the front end that answered. A front end is known by the jobs that it sends
 * (docs/protocol/stratum.md, S35).
 */
import { serviceOfExtranonce } from '../../protocol/books/block-service.ts';
import type { BooksService } from '../../protocol/books/books-slice.ts';
import { BOOT_BYTES, type Receipt } from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeExtranonce } from '../../protocol/ledger/tag.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import type { PoolJob, SessionAction } from './session-events.ts';

/** What is told of one pool's books. */
export type ToldBooks = {
  offered(offer: ReceiptsOffer): void;
  received(receipt: Receipt): void;
  /** `service` as marked in the connection's jobs (books rule 22). */
  told(boot: string, work: bigint, service: BooksService | undefined): void;
  /** The address that the pool named for its jobs to pay; null for a server that names none. */
  pays(address: string | null): void;
  /** A job of another service than those before on the connection, or the first one. */
  works(service: BooksService, before: BooksService | undefined): void;
  /** The height that a job is anchored at. */
  worked(height: number): void;
  found(block: { readonly block: string; readonly service: BooksService; readonly height: number }): void;
};

/** By the pool's index in the list. */
export type BooksOfPools = { of(pool: number): ToldBooks | undefined };

/** Jobs whose shares may still be answered. */
const MAX_JOBS = 64;

export class LinkBooks {
  readonly #books: ToldBooks | undefined;
  #boot: string | undefined;
  #service: BooksService | undefined;
  readonly #heights = new Map<number, number>();
  /** Accepted before the first job came. */
  #early: bigint[] = [];

  constructor(books: ToldBooks | undefined) {
    this.#books = books;
  }

  act(action: SessionAction): void {
    if (action.kind === 'job') this.#onJob(action.job);
    else if (action.kind === 'ready') this.#books?.pays(action.subscribed.pool?.address ?? null);
    else if (action.kind === 'receipts') this.#books?.offered(action.offer);
    else if (action.kind === 'verdict') this.#onVerdict(action);
    else if (action.kind === 'receipt') this.#books?.received(action.receipt);
  }

  #onJob({ job, height }: PoolJob): void {
    const service = serviceOfExtranonce(job.extranonce);
    if (service !== undefined && service !== this.#service) {
      this.#books?.works(service, this.#service);
      this.#service = service;
    }
    this.#heights.set(job.jobId, height);
    this.#books?.worked(height);
    for (const oldest of this.#heights.keys())
      if (this.#heights.size > MAX_JOBS) this.#heights.delete(oldest);
      else break;
    if (this.#boot !== undefined) return;
    this.#boot = bootOf(job);
    for (const work of this.#early) this.#tell(work);
    this.#early = [];
  }

  #onVerdict({ told, blockId, share }: SessionAction & { kind: 'verdict' }): void {
    if (told !== undefined) this.#tell(told);
    const height = this.#heights.get(share.jobId);
    if (blockId === undefined || height === undefined || this.#service === undefined) return;
    this.#books?.found({ block: toHex(blockId), service: this.#service, height });
  }

  #tell(work: bigint): void {
    if (this.#boot === undefined) this.#early.push(work);
    else if (this.#boot !== '') this.#books?.told(this.#boot, work, this.#service);
  }
}

/** '' for the extranonce of a server that names no front end. */
export function bootOf({ extranonce }: Pick<Job, 'extranonce'>): string {
  const { unique } = decodeExtranonce(extranonce);
  return unique.length < BOOT_BYTES ? '' : toHex(unique.subarray(0, BOOT_BYTES));
}

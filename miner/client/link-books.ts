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

export type BooksEvents = {
  /** `pool` is its index in the list. */
  onOffer(pool: number, offer: ReceiptsOffer): void;
  onReceipt(pool: number, receipt: Receipt): void;
  /** `service` as marked in the connection's jobs (books rule 22). */
  onTold(pool: number, boot: string, work: bigint, service: BooksService | undefined): void;
  /** The address that the pool named for its jobs to pay; null for a server that names none. */
  onAddress(pool: number, address: string | null): void;
  /** A job of another service than those before on the connection, or the first one. */
  onService(pool: number, service: BooksService, before: BooksService | undefined): void;
  /** The height that a job is anchored at. */
  onHeight(pool: number, height: number): void;
  onFound(
    pool: number,
    block: { readonly block: string; readonly service: BooksService; readonly height: number },
  ): void;
};

/** Arguments of the events besides the pool. */
export type Rest<K extends keyof BooksEvents> = Parameters<BooksEvents[K]> extends [number, ...infer R] ? R : never;

/** Jobs whose shares may still be answered. */
const MAX_JOBS = 64;

export class LinkBooks {
  readonly #pool: number;
  readonly #events: BooksEvents | undefined;
  #boot: string | undefined;
  #service: BooksService | undefined;
  readonly #heights = new Map<number, number>();
  /** Accepted before the first job came. */
  #early: bigint[] = [];

  constructor(pool: number, events: BooksEvents | undefined) {
    this.#pool = pool;
    this.#events = events;
  }

  act(action: SessionAction): void {
    if (action.kind === 'job') this.#onJob(action.job);
    else if (action.kind === 'ready') this.#events?.onAddress(this.#pool, action.subscribed.pool?.address ?? null);
    else if (action.kind === 'receipts') this.#events?.onOffer(this.#pool, action.offer);
    else if (action.kind === 'verdict') this.#onVerdict(action);
    else if (action.kind === 'receipt') this.#events?.onReceipt(this.#pool, action.receipt);
  }

  #onJob({ job, height }: PoolJob): void {
    const service = serviceOfExtranonce(job.extranonce);
    if (service !== undefined && service !== this.#service) {
      this.#events?.onService(this.#pool, service, this.#service);
      this.#service = service;
    }
    this.#heights.set(job.jobId, height);
    this.#events?.onHeight(this.#pool, height);
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
    this.#events?.onFound(this.#pool, { block: toHex(blockId), service: this.#service, height });
  }

  #tell(work: bigint): void {
    if (this.#boot === undefined) this.#early.push(work);
    else if (this.#boot !== '') this.#events?.onTold(this.#pool, this.#boot, work, this.#service);
  }
}

/** '' for the extranonce of a server that names no front end. */
export function bootOf({ extranonce }: Pick<Job, 'extranonce'>): string {
  const { unique } = decodeExtranonce(extranonce);
  return unique.length < BOOT_BYTES ? '' : toHex(unique.subarray(0, BOOT_BYTES));
}

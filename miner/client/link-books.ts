/**
 * What one connection says about a pool's books: its offer of receipts, the receipts, and the work that it answers with `accepted`, each
 * with the front end that answered. A front end is known by the jobs that it sends (docs/protocol/stratum.md, S35).
 */
import { toHex } from '../../protocol/bytes.ts';
import { BOOT_BYTES, type Receipt } from '../../protocol/receipt.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import { decodeExtranonce } from '../../protocol/tag.ts';
import type { SessionAction } from './session-events.ts';

export type BooksEvents = {
  /** `pool` is its place in the list. */
  onOffer(pool: number, offer: ReceiptsOffer): void;
  onReceipt(pool: number, receipt: Receipt): void;
  onTold(pool: number, boot: string, work: bigint): void;
};

export class LinkBooks {
  readonly #pool: number;
  readonly #events: BooksEvents | undefined;
  #boot: string | undefined;
  /** Told before the first job came. */
  #early: bigint[] = [];

  constructor(pool: number, events: BooksEvents | undefined) {
    this.#pool = pool;
    this.#events = events;
  }

  act(action: SessionAction): void {
    if (action.kind === 'job') this.#onJob(action.job.job);
    else if (action.kind === 'receipts') this.#events?.onOffer(this.#pool, action.offer);
    else if (action.kind === 'receipt') this.#events?.onReceipt(this.#pool, action.receipt);
    else if (action.kind === 'verdict' && action.told !== undefined) this.#tell(action.told);
  }

  #onJob(job: Job): void {
    if (this.#boot !== undefined) return;
    this.#boot = bootOf(job);
    for (const work of this.#early) this.#tell(work);
    this.#early = [];
  }

  #tell(work: bigint): void {
    if (this.#boot === undefined) this.#early.push(work);
    else if (this.#boot !== '') this.#events?.onTold(this.#pool, this.#boot, work);
  }
}

/** '' for the extranonce of a server that names no front end. */
export function bootOf({ extranonce }: Pick<Job, 'extranonce'>): string {
  const { unique } = decodeExtranonce(extranonce);
  return unique.length < BOOT_BYTES ? '' : toHex(unique.subarray(0, BOOT_BYTES));
}

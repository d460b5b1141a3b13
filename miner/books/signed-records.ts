/** Signed records of the pool that still have to be compared with its published ones and with the ledger. */
import type { SliceRecord } from '../../protocol/books/books-slice.ts';

/** The slice record as given in a receipt. */
export type SignedRecord = Pick<SliceRecord, 'network' | 'service' | 'slice' | 'chain'>;

/** Kept at once; the oldest are dropped. */
const MAX_SIGNED = 8;
/** Names of those that were kept once: more than an answer of the pool repeats. */
const MAX_NAMES = 64;

export class SignedRecords {
  #open: readonly SignedRecord[] = [];
  readonly #names = new Set<string>();

  /** False for one that was here before. */
  add({ network, service, slice, chain }: SignedRecord): boolean {
    const name = `${service}/${slice}`;
    if (this.#names.has(name)) return false;
    this.#names.add(name);
    const [oldest] = this.#names;
    if (this.#names.size > MAX_NAMES && oldest !== undefined) this.#names.delete(oldest);
    this.#open = [...this.#open, { network, service, slice, chain }].slice(-MAX_SIGNED);
    return true;
  }

  /**
   * Records that cannot be checked now are retried in the next round: an error of the pool must not end the check. Of
   * those that no payout commits to yet, the newest of each service is kept: its chain covers all earlier ones, and the
   * pool must not publish another until then.
   */
  async check(judge: (record: SignedRecord) => Promise<'settled' | 'kept' | 'open'>): Promise<void> {
    let failure: unknown;
    const kept: SignedRecord[] = [];
    for (const record of this.#open)
      try {
        const state = await judge(record);
        if (state === 'settled') this.#drop(record);
        if (state === 'kept') kept.push(record);
      } catch (error) {
        failure ??= error;
      }
    for (const record of kept)
      if (kept.some(({ service, slice }) => service === record.service && slice > record.slice)) this.#drop(record);
    if (failure !== undefined) throw failure;
  }

  #drop(record: SignedRecord): void {
    this.#open = this.#open.filter((each) => each !== record);
  }

  save(): unknown {
    return this.#open;
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    if (Array.isArray(saved))
      for (const each of saved as SignedRecord[]) if (typeof each?.chain === 'string') this.add(each);
  }
}

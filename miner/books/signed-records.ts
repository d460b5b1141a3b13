/** Records that the pool signed and that still have to be compared with the ledger. */
import type { Receipt } from '../../protocol/receipt.ts';

/** Kept at once; the oldest are dropped. */
const MAX_SIGNED = 8;

export class SignedRecords {
  #open: readonly Receipt[] = [];

  add(receipt: Receipt): void {
    this.#open = [...this.#open, receipt].slice(-MAX_SIGNED);
  }

  /** What cannot be checked now is tried again in the next round: an error of the pool must not get it out of the way. */
  async check(judge: (receipt: Receipt) => Promise<'settled' | 'open'>): Promise<void> {
    let failure: unknown;
    for (const receipt of this.#open)
      try {
        if ((await judge(receipt)) === 'settled') this.#open = this.#open.filter((each) => each !== receipt);
      } catch (error) {
        failure ??= error;
      }
    if (failure !== undefined) throw failure;
  }
}

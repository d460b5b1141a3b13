/**
 * Payments of this wallet that it has no record of. A wallet restored from an older copy has forgotten what it paid since; asked again, it would pay
 * again. So a new start pays nothing before it has read every finalized cut and has looked for spends of its outputs that are under way
 * (docs/wallet.md, When something was restored). What is final and not on record is found by the follower.
 */
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import type { WalletStore } from '../state/store.ts';
import { WalletError } from '../wallet-error.ts';
import { batches, type NodeClient, readPending } from './node-link.ts';

export type OwnSpendsDependencies = {
  readonly client: Pick<NodeClient, 'mempoolPending'>;
  readonly book: Book;
  readonly journal: Journal;
  readonly store: Pick<WalletStore, 'outgoing'>;
};

export class OwnSpends {
  readonly #with: OwnSpendsDependencies;
  /** Undefined until the first look of this process. */
  #unknown: ReadonlySet<string> | undefined;

  constructor(dependencies: OwnSpendsDependencies) {
    this.#with = dependencies;
  }

  /** Whether this wallet signed a transaction, as far as it remembers. */
  async isOnRecord(transaction: string): Promise<boolean> {
    const { book, journal, store } = this.#with;
    if (book.open.has(transaction)) return true;
    await journal.settled();
    return (await store.outgoing(transaction)) !== undefined;
  }

  /** Once after the start, and again for as long as something strange was found. Needs a wallet that has read every cut. */
  async look(): Promise<void> {
    if (this.#unknown?.size === 0) return;
    const { client, book } = this.#with;
    const addresses = new Set([...book.outputs.values()].map(({ address }) => address));
    const unknown = new Set<string>();
    for (const batch of batches([...addresses])) {
      const { pending } = await readPending(client, batch);
      for (const { direction, transaction_id } of pending)
        if (direction === 'outgoing' && !(await this.isOnRecord(transaction_id))) unknown.add(transaction_id);
    }
    this.#unknown = unknown;
  }

  get looked(): boolean {
    return this.#unknown !== undefined;
  }

  /** Why nothing may be paid now. */
  get trouble(): WalletError | undefined {
    if (this.#unknown === undefined)
      return new WalletError('wallet_behind', 'the wallet has just started and has not read everything yet');
    const [transaction] = this.#unknown;
    if (transaction === undefined) return undefined;
    return new WalletError(
      'spend_not_on_record',
      'a transaction that this wallet has no record of spends its outputs and is not final yet: the wallet waits for its fate',
      { transaction },
    );
  }
}

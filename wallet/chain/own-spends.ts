/**
 * Payments of this wallet that it has no record of. A wallet restored from an older copy has lost its later payments; a
 * repeated request would be paid twice. So after a start nothing is paid before every finalized cut was read and
 * pending spends of its outputs were checked (docs/wallet.md, When something was restored). Final payments without a
 * record are found by the follower.
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
  /** Undefined until the first check of this process. */
  #unknown: ReadonlySet<string> | undefined;

  constructor(dependencies: OwnSpendsDependencies) {
    this.#with = dependencies;
  }

  /** Whether this wallet has a record of signing a transaction. */
  async isOnRecord(transaction: string): Promise<boolean> {
    const { book, journal, store } = this.#with;
    if (book.open.has(transaction)) return true;
    await journal.settled();
    return (await store.outgoing(transaction)) !== undefined;
  }

  /** Runs once after the start, and again while an unknown spend is pending. Requires that every cut was read. */
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

/**
 * Reads the ledger from a node: amounts that an address received and spent, and transactions by the cut that executed
 * them.
 */
import type { ApiClient } from '../../protocol/api/client.ts';
import type { TransactionDocument } from '../../protocol/api/transaction-documents.ts';

const PAGE_CHANGES = 1024;
const PAGE_TRANSACTIONS = 64;

/**
 * Every change of some addresses above a height, oldest first. Returns the height up to which the result is complete.
 */
export async function* changesOf(
  node: Pick<ApiClient, 'addressChanges'>,
  addresses: readonly string[],
  afterHeight: number,
) {
  for (let cursor: string | undefined; ; ) {
    const page = await node.addressChanges({
      addresses: [...addresses],
      after_height: afterHeight,
      limit: PAGE_CHANGES,
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield* page.changes;
    if (page.next_cursor === undefined) return page.indexed_height;
    cursor = page.next_cursor;
  }
}

/** Finalized transactions by id. The last cut is cached: call it in the order of heights. */
export class CutReader {
  readonly #node: Pick<ApiClient, 'cutTransactions'>;
  #height = -1;
  #transactions = new Map<string, TransactionDocument>();

  constructor(node: Pick<ApiClient, 'cutTransactions'>) {
    this.#node = node;
  }

  async find(height: number, id: string): Promise<TransactionDocument | undefined> {
    if (this.#height !== height) {
      const found = new Map<string, TransactionDocument>();
      for (let cursor: string | undefined; ; ) {
        const page = await this.#node.cutTransactions({
          height,
          limit: PAGE_TRANSACTIONS,
          ...(cursor === undefined ? {} : { cursor }),
        });
        for (const transaction of page.transactions)
          if (transaction.outcome === 'finalized') found.set(transaction.transaction_id, transaction);
        if (page.next_cursor === undefined) break;
        cursor = page.next_cursor;
      }
      this.#height = height;
      this.#transactions = found;
    }
    return this.#transactions.get(id);
  }
}

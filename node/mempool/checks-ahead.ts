/**
 * Signatures of waiting blocks are checked in worker threads as the blocks arrive, so that a cut need not check them on
 * the main thread. A cut whose blocks are still being checked waits for that: otherwise it would do the same work
 * again, and block the main thread meanwhile. The state that the cut will change for their outputs is read ahead as
 * well.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { UnspentOutput } from '../full-node.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction, WorkBlock } from '../ledger/work-block.ts';

export type ChecksAheadDependencies = {
  isVerified(transaction: ReadTransaction): boolean;
  output(outpoint: Outpoint): UnspentOutput | undefined;
  verify(transaction: ReadTransaction, spends: readonly UnspentOutput[]): Promise<void>;
  /** Reads the state that a cut with these outputs will need. */
  read(made: readonly Outpoint[]): Promise<void>;
  readonly log: Logger;
};

export class ChecksAhead {
  readonly #with: ChecksAheadDependencies;
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(dependencies: ChecksAheadDependencies) {
    this.#with = dependencies;
  }

  begin({ id, transactions }: Pick<WorkBlock, 'id' | 'transactions'>): void {
    const { isVerified, output, verify, read, log } = this.#with;
    const made = transactions.flatMap(({ id: transactionId, body }) =>
      body.outputs.map((_, outputIndex) => ({ transactionId, outputIndex })),
    );
    // No cut waits for it: state not read by then is read when needed.
    void read(made).catch((error) => log.debug('the store was not read ahead', { error }));
    const checks: Promise<void>[] = [];
    for (const transaction of transactions) {
      if (isVerified(transaction)) continue;
      const spends = transaction.body.inputs.map(output);
      if (!spends.every((spend) => spend !== undefined)) continue;
      checks.push(
        verify(transaction, spends).catch((error) => log.debug('signatures were not checked ahead', { error })),
      );
    }
    if (checks.length === 0) return;
    const name = nameOf(id);
    const all = Promise.all(checks).finally(() => this.#running.delete(name));
    this.#running.set(name, all);
  }

  /** Waits until no check of these blocks, or of any, is pending, or the time is over: execution checks the rest. */
  async settled(millis: number, ids?: readonly Bytes[]): Promise<void> {
    const running = ids === undefined ? [...this.#running.values()] : ids.map((id) => this.#running.get(nameOf(id)));
    if (running.every((checks) => checks === undefined)) return;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, millis);
    });
    await Promise.race([Promise.all(running), over]);
    clearTimeout(timer);
  }
}

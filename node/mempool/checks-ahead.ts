/**
 * Signatures of blocks that wait for a cut are checked in the worker threads as the blocks come, so that a cut need not check them on the node's own thread. A cut that names blocks whose checks are
 * under way waits for them: it would do the same work a second time, and hold up everything else meanwhile. The state that the cut will change for their outputs is read ahead as well.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Outpoint } from '../../protocol/transaction.ts';
import type { Logger } from '../../runtime/log.ts';
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
    // No cut waits for it: what is not there by then is read when it is needed.
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

  /** Until nothing of these blocks, or of any, is being checked, or the time is over: execution checks what is left. */
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

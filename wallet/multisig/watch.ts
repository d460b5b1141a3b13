/**
 * Events of watched multisig addresses (docs/wallet.md, Events): what they received and spent in finalized cuts. Polls once a cut, and only while there is a listener. Like every event it is a
 * prompt: a listener that missed one reads `history` of the address.
 */
import { formatCoins } from '../../protocol/amount.ts';
import { changesOfAddresses, type NodeClient } from '../chain/node-link.ts';
import type { EventHub } from '../event-hub.ts';
import type { Book } from '../state/book.ts';

export type MultisigWatchDependencies = {
  readonly client: NodeClient;
  readonly book: Book;
  readonly events: EventHub;
};

export class MultisigWatch {
  readonly #with: MultisigWatchDependencies;
  /** Undefined before the first poll: then nothing counts as new. */
  #seen: number | undefined;

  constructor(dependencies: MultisigWatchDependencies) {
    this.#with = dependencies;
  }

  /** After the newest cut was read. */
  async look(): Promise<void> {
    const { client, book, events } = this.#with;
    const height = book.meta.indexedHeight;
    const after = this.#seen;
    const isWanted = book.multisig.size > 0 && events.wanted('multisig');
    // The height is recorded without a listener too: a listener added between two polls gets everything since the last poll. A rescan goes back, and does not report anything twice.
    if (!isWanted || after === undefined || after >= height) {
      this.#seen = Math.max(after ?? 0, height);
      return;
    }
    // Everything is read before anything is reported: after a failed read everything is reported by the next poll, and
    // nothing twice.
    const { changes, complete } = await changesOfAddresses(client, [...book.multisig.keys()], after, height);
    this.#seen = Math.max(after, complete);
    for (const { address, kind, amount, finalized_height, transaction_id, outpoint } of changes)
      events.emit('multisig', {
        indexed_height: height,
        address,
        label: book.multisig.get(address)?.label ?? '',
        kind,
        amount: formatCoins(BigInt(amount)),
        height: finalized_height,
        transaction: transaction_id,
        output: outpoint.output_index,
      });
  }
}

/**
 * Incoming payments that are not final: read from the node's mempool for the addresses handed out. They are shown,
 * never counted; each ends as `finalized` (by the follower) or `removed`.
 */
import { formatCoins } from '../../protocol/amount.ts';
import type { EventHub } from '../event-hub.ts';
import type { Book } from '../state/book.ts';
import { outputKey } from '../state/records.ts';
import type { WalletStore } from '../state/store.ts';
import { batches, type NodeClient, readPending } from './node-link.ts';

/**
 * The node's list includes spends. For an address with many pending outgoing payments the answer would mostly contain
 * known ones, so it is polled less often: every BUSY_POLLS polls. Final payments are reported without extra delay.
 */
const BUSY_SPENDS = 32;
const BUSY_POLLS = 60;
/** Requests of one poll; a wallet with more handed-out addresses is watched in turns. */
const BATCHES_PER_POLL = 8;

export type IncomingPayment = {
  readonly transaction: string;
  readonly output: number;
  readonly address: string;
  readonly label: string;
  readonly amount: string;
  readonly lifecycle: string;
  readonly first_seen_millis: number;
};

type Seen = IncomingPayment & { readonly gone: number | null };

export type IncomingDependencies = {
  readonly client: Pick<NodeClient, 'mempoolPending'>;
  readonly book: Book;
  readonly store: Pick<WalletStore, 'historyOf'>;
  readonly events: EventHub;
};

export class Incoming {
  readonly #with: IncomingDependencies;
  readonly #seen = new Map<string, Seen>();
  #turn = 0;
  #polls = 0;

  constructor(dependencies: IncomingDependencies) {
    this.#with = dependencies;
  }

  list(): IncomingPayment[] {
    return [...this.#seen.values()].flatMap(({ gone, ...payment }) => (gone === null ? [payment] : []));
  }

  async poll(): Promise<void> {
    const { client, book, events } = this.#with;
    const busy = this.#polls++ % BUSY_POLLS === 0 ? new Set<string>() : this.#busyAddresses();
    const given = book.branches.receive.flatMap(({ given, address }) => (given && !busy.has(address) ? [address] : []));
    const all = batches(given);
    const turns = Math.min(BATCHES_PER_POLL, all.length);
    for (let i = 0; i < turns; i++) {
      const batch = all[this.#turn++ % all.length] as string[];
      const { pending, finalizedHeight } = await readPending(client, batch);
      const found = new Set<string>();
      for (const one of pending) {
        if (one.direction !== 'incoming') continue;
        const key = outputKey(one.outpoint.transaction_id, one.outpoint.output_index);
        found.add(key);
        const before = this.#seen.get(key);
        const payment: Seen = {
          transaction: one.transaction_id,
          output: one.outpoint.output_index,
          address: one.address,
          label: book.address(one.address)?.label ?? '',
          amount: formatCoins(BigInt(one.amount)),
          lifecycle: one.lifecycle,
          first_seen_millis: one.first_seen_millis,
          gone: null,
        };
        this.#seen.set(key, payment);
        if (before === undefined && !book.outputs.has(key)) {
          const { gone: _, ...shown } = payment;
          events.emit('unconfirmed', { payments: [shown] });
        }
      }
      const asked = new Set(batch);
      for (const [key, payment] of this.#seen)
        if (asked.has(payment.address) && !found.has(key) && payment.gone === null)
          this.#seen.set(key, { ...payment, gone: finalizedHeight });
    }
    await this.#decide();
  }

  #busyAddresses(): Set<string> {
    const { book } = this.#with;
    const spends = new Map<string, number>();
    for (const { inputs } of book.open.values())
      for (const key of inputs) {
        const address = book.outputs.get(key)?.address;
        if (address !== undefined) spends.set(address, (spends.get(address) ?? 0) + 1);
      }
    return new Set([...spends].flatMap(([address, count]) => (count > BUSY_SPENDS ? [address] : [])));
  }

  /** A payment that left the mempool was either finalized by a cut or removed: the index shows which. */
  async #decide(): Promise<void> {
    const { book, store, events } = this.#with;
    for (const [key, payment] of this.#seen) {
      if (payment.gone === null || book.meta.indexedHeight < payment.gone) continue;
      this.#seen.delete(key);
      if ((await store.historyOf(payment.transaction)) === undefined) {
        const { gone: _, ...shown } = payment;
        events.emit('removed', { payments: [shown] });
      }
    }
  }
}

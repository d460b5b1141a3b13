/**
 * Subscriptions by topic (specification: Events, topics of /v1/ws). An event is written to JSON once, whatever the number of its
 * subscribers; without a subscriber nothing is built. Delivery and its limits are the connection's (live-socket.ts).
 */

import { formatAddress } from '../../protocol/address.ts';
import type { HistoryEvent } from '../../protocol/api/documents.ts';
import type { LiveEvent, Topic } from '../../protocol/api/frames.ts';
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { decodeExtranonce } from '../../protocol/ledger/tag.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import { cutReference, stakeRewards, workRewards } from '../events.ts';
import type { BlockRecord, PendingTransaction, RemovalReason } from '../full-node.ts';
import type { CreatedOutput, CutEffects, SpentOutput } from '../ledger/effects.ts';
import type { ApiContext } from './api-context.ts';
import { chainRates, mempoolDocument, nodeSync } from './chain-routes.ts';
import { pendingOf } from './pending-payments.ts';
import { statusJson } from './transaction-routes.ts';

/** The text of an event, made when the first subscriber takes it. */
export type EventText = () => string;

/** One subscription of one connection. */
export type Subscriber = {
  readonly number: number;
  /** It has lost events and gets none before it is told so. */
  readonly lagged: boolean;
  /** `frames` holds the finished frames of this event by subscription number. */
  deliver(event: EventText, frames: Map<number, Buffer>): void;
};

export type StatusWatcher = (status: string, final: boolean) => void;

type SharedTopic = Exclude<Topic, 'addresses' | 'transaction'>;
const MEMPOOL_MILLIS = 1_000;
const SLICE = 256;

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

const eventText = (make: () => LiveEvent): EventText => once(() => JSON.stringify(make()));

/** An event for some subscribers. */
type Message = { readonly subscribers: Iterable<Subscriber>; readonly event: EventText };

class SetMap<V> {
  readonly #sets = new Map<string, Set<V>>();

  get size(): number {
    return this.#sets.size;
  }

  add(name: string, value: V): void {
    const set = this.#sets.get(name);
    if (set === undefined) this.#sets.set(name, new Set([value]));
    else set.add(value);
  }

  delete(name: string, value: V): void {
    const set = this.#sets.get(name);
    set?.delete(value);
    if (set?.size === 0) this.#sets.delete(name);
  }

  get(name: string): ReadonlySet<V> | undefined {
    return this.#sets.get(name);
  }
}

/** The addresses that it pays and spends from, each once: at most 16. */
const hexOf = ({ body, spends }: PendingTransaction): string[] => [
  ...new Set([...body.outputs, ...spends].map(({ address }) => nativeHex(address))),
];

export class LiveHub {
  readonly #context: ApiContext;
  readonly #stops: (() => void)[];
  readonly #topics: Record<SharedTopic, Set<Subscriber>> = {
    cuts: new Set(),
    blocks: new Set(),
    mempool: new Set(),
    rates: new Set(),
    sync: new Set(),
    mempool_transactions: new Set(),
  };
  /** By address payload in hex. */
  readonly #addresses = new SetMap<Subscriber>();
  /** By transaction id in hex. */
  readonly #watchers = new SetMap<{ last: string; readonly tell: StatusWatcher }>();
  /** Of those the ones that wait: only their status can change by a cut that does not carry them. */
  readonly #waiting = new Set<string>();
  /** Those whose status is looked up because of a cut. */
  readonly #due = new Set<string>();
  #mempoolTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(context: ApiContext) {
    this.#context = context;
    const { node } = context;
    this.#stops = [
      node.on('cut', (effects) => this.#cut(effects)),
      node.on('block', (block) => this.#block(block)),
      node.on('mempoolAdded', (transaction) => this.#added(transaction)),
      node.on('mempoolRemoved', (transaction, reason) => this.#removed(transaction, reason)),
    ];
  }

  subscribe(topic: SharedTopic, subscriber: Subscriber): () => void {
    const set = this.#topics[topic];
    set.add(subscriber);
    return () => set.delete(subscriber);
  }

  watchAddresses(payloads: readonly Bytes[], subscriber: Subscriber): () => void {
    const names = payloads.map(nativeHex);
    for (const name of names) this.#addresses.add(name, subscriber);
    return () => {
      for (const name of names) this.#addresses.delete(name, subscriber);
    };
  }

  /** Sends the status now, if there is one, and at every change. */
  watchTransaction(id: string, tell: StatusWatcher): () => void {
    const watcher = { last: '', tell };
    this.#watchers.add(id, watcher);
    this.#check(id);
    return () => {
      this.#watchers.delete(id, watcher);
      if (this.#watchers.get(id) === undefined) this.#waiting.delete(id);
    };
  }

  /** The first frame for a new subscriber of a topic that describes a state. */
  current(topic: Topic): EventText | undefined {
    const { node } = this.#context;
    if (topic === 'mempool') return eventText(() => ({ type: 'mempool', data: mempoolDocument(node) }));
    if (topic === 'rates') return eventText(() => ({ type: 'rates', data: chainRates(node) }));
    if (topic === 'sync') return eventText(() => ({ type: 'sync', data: nodeSync(node) }));
    return undefined;
  }

  #send(subscribers: Iterable<Subscriber>, event: EventText): void {
    this.#sendAll([{ subscribers, event }]);
  }

  /** In slices: who subscribes decides how many there are. */
  #sendAll(messages: readonly Message[]): void {
    const all = messages.flatMap(({ subscribers, event }) => {
      const frames = new Map<number, Buffer>();
      return Array.from(subscribers, (subscriber) => ({ subscriber, event, frames }));
    });
    let at = 0;
    const slice = (): void => {
      if (this.#closed) return;
      for (const { subscriber, event, frames } of all.slice(at, at + SLICE)) subscriber.deliver(event, frames);
      at += SLICE;
      if (at < all.length) setImmediate(slice);
    };
    slice();
  }

  #state(topic: 'mempool' | 'rates' | 'sync'): void {
    const event = this.#topics[topic].size > 0 ? this.current(topic) : undefined;
    if (event !== undefined) this.#send(this.#topics[topic], event);
  }

  #cut(effects: CutEffects): void {
    const { node } = this.#context;
    if (this.#topics.cuts.size > 0) {
      const cut = node.chain.cut(effects.header.height);
      if (cut !== undefined)
        this.#send(
          this.#topics.cuts,
          eventText(() => ({
            type: 'cut_finalized',
            data: {
              cut: cutReference(cut),
              registered_blocks: cut.blockIds.length,
              executed_blocks: cut.executedBlocks,
              rewards: workRewards(cut.rewards),
              stake_rewards: stakeRewards(cut.stakePayouts),
              finalized_at_millis: cut.header.timestampMillis,
            },
          })),
        );
    }
    this.#changed(effects);
    this.#state('rates');
    this.#state('sync');
    this.#mempoolChanged();
    this.#checkAfter(effects);
  }

  #changed(effects: CutEffects): void {
    if (this.#addresses.size === 0) return;
    const touched = new Map<string, { received: CreatedOutput[]; spent: SpentOutput[] }>();
    const entry = (address: Bytes): { received: CreatedOutput[]; spent: SpentOutput[] } | undefined => {
      const name = nativeHex(address);
      if (this.#addresses.get(name) === undefined) return undefined;
      let lists = touched.get(name);
      if (lists === undefined) {
        lists = { received: [], spent: [] };
        touched.set(name, lists);
      }
      return lists;
    };
    for (const output of effects.created) entry(output.address)?.received.push(output);
    for (const output of effects.spent) entry(output.address)?.spent.push(output);
    const { height } = effects.header;
    const document = (output: CreatedOutput | SpentOutput): HistoryEvent => {
      const transaction_id = nativeHex(output.outpoint.transactionId);
      return {
        finalized_height: height,
        kind: 'spentBy' in output ? 'spent' : 'received',
        outpoint: { transaction_id, output_index: output.outpoint.outputIndex },
        amount: output.amount.toString(),
        source: output.source,
        transaction_id: 'spentBy' in output ? nativeHex(output.spentBy) : transaction_id,
      };
    };
    const messages = [...touched].map(([name, { received, spent }]): Message => {
      const payload = fromHex(name);
      const changed = (): LiveEvent => {
        const { value } = this.#context.index.balance(payload);
        return {
          type: 'address_changed',
          data: {
            address: formatAddress(payload, this.#context.node.chain.network.name),
            finalized_height: height,
            received: received.map(document),
            spent: spent.map(document),
            balance: value.atoms.toString(),
            utxos: value.utxos,
          },
        };
      };
      return { subscribers: this.#addresses.get(name) ?? [], event: eventText(changed) };
    });
    this.#sendAll(messages);
  }

  #block(block: BlockRecord): void {
    const { node } = this.#context;
    const mayChange = this.#watchers.size > 0 && block.transactionCount > 0;
    const body = mayChange || this.#topics.blocks.size > 0 ? node.chain.blockBody(block.id) : undefined;
    if (body === undefined) return;
    const transactions = once(() => decodeBody(body).transactions.map((wire) => nativeHex(transactionIdOfWire(wire))));
    this.#send(
      this.#topics.blocks,
      eventText(() => ({
        type: 'block_accepted',
        data: {
          block_id: nativeHex(block.id),
          anchor_height: block.anchorHeight,
          parents: block.parents.map(nativeHex),
          transactions: transactions(),
          reward_address: formatAddress(block.payout, node.chain.network.name),
          miner_tag: decodeExtranonce(block.extranonce).tag,
          accepted_at_millis: block.acceptedMillis,
        },
      })),
    );
    // Of the others none changes: a client may watch thousands.
    if (mayChange) for (const id of transactions()) this.#check(id);
  }

  /**
   * Sends those that watch addresses of a waiting transaction what concerns them. Thousands may watch the same ones: all that watch
   * the same of its addresses get one event, and those that take none cost a look.
   */
  #concerned(transaction: PendingTransaction, eventOf: (addresses: readonly string[]) => LiveEvent): void {
    if (this.#addresses.size === 0) return;
    const named = once(() => [...this.#named(transaction).values()]);
    /** Bit i: it watches the i-th of them. */
    const watched = new Map<Subscriber, number>();
    for (const [i, name] of hexOf(transaction).entries())
      for (const subscriber of this.#addresses.get(name) ?? [])
        if (!subscriber.lagged) watched.set(subscriber, (watched.get(subscriber) ?? 0) | (1 << i));
    const groups = new Map<number, Subscriber[]>();
    for (const [subscriber, bits] of watched) {
      const group = groups.get(bits);
      if (group === undefined) groups.set(bits, [subscriber]);
      else group.push(subscriber);
    }
    this.#sendAll(
      [...groups].map(([bits, subscribers]) => ({
        subscribers,
        event: eventText(() => eventOf(named().filter((_, i) => ((bits >> i) & 1) === 1))),
      })),
    );
  }

  /** The addresses of a transaction by their names, in the order of `hexOf`. */
  #named(transaction: PendingTransaction): Map<string, string> {
    const { name: network } = this.#context.node.chain.network;
    return new Map(hexOf(transaction).map((name) => [name, formatAddress(fromHex(name), network)]));
  }

  #added(transaction: PendingTransaction): void {
    const transaction_id = nativeHex(transaction.id);
    const payments = once(() => pendingOf(this.#context, transaction, this.#named(transaction)));
    this.#concerned(transaction, (addresses) => ({
      type: 'mempool_tx_seen',
      data: { transaction_id, payments: payments().filter(({ address }) => addresses.includes(address)) },
    }));
    if (this.#topics.mempool_transactions.size > 0)
      this.#send(
        this.#topics.mempool_transactions,
        eventText(() => ({
          type: 'mempool_transaction',
          data: {
            transaction_id,
            fee: transaction.fee.toString(),
            mass: transaction.mass,
            inputs: transaction.body.inputs.map((input) => ({
              transaction_id: nativeHex(input.transactionId),
              output_index: input.outputIndex,
            })),
            outputs: transaction.body.outputs.map((output) => ({
              address: formatAddress(output.address, this.#context.node.chain.network.name),
              amount: output.amount.toString(),
            })),
            first_seen_millis: transaction.seenMillis,
          },
        })),
      );
    this.#mempoolChanged();
    this.#check(transaction_id);
  }

  #removed(transaction: PendingTransaction, reason: RemovalReason): void {
    const transaction_id = nativeHex(transaction.id);
    this.#concerned(transaction, (addresses) => ({
      type: 'mempool_tx_removed',
      data: { transaction_id, addresses: [...addresses], reason },
    }));
    if (this.#topics.mempool_transactions.size > 0)
      this.#send(
        this.#topics.mempool_transactions,
        eventText(() => ({ type: 'mempool_transaction_removed', data: { transaction_id, reason } })),
      );
    this.#mempoolChanged();
    this.#check(transaction_id);
  }

  /** The mempool document describes a state: one a second is enough. */
  #mempoolChanged(): void {
    if (this.#topics.mempool.size === 0 || this.#mempoolTimer !== undefined) return;
    this.#state('mempool');
    this.#mempoolTimer = setTimeout(() => {
      this.#mempoolTimer = undefined;
      this.#state('mempool');
    }, MEMPOOL_MILLIS);
    this.#mempoolTimer.unref();
  }

  #check(id: string): void {
    const watchers = this.#watchers.get(id);
    if (watchers === undefined) return;
    const status = this.#context.node.chain.transactionStatus(fromHex(id));
    if (status === undefined || status.final || status.lifecycle === 'failed') this.#waiting.delete(id);
    else this.#waiting.add(id);
    if (status === undefined) return;
    const text = statusJson(this.#context, id, status);
    for (const watcher of [...watchers])
      if (watcher.last !== text) {
        watcher.last = text;
        watcher.tell(text, status.final);
      }
  }

  /** In slices. Clients may watch any number of transactions that nobody has seen, or that are final: they cost nothing. */
  #checkAfter({ transactions, lost }: CutEffects): void {
    if (this.#watchers.size === 0) return;
    const isChecking = this.#due.size > 0;
    for (const id of this.#waiting) this.#due.add(id);
    for (const { id } of [...transactions, ...lost]) {
      const name = nativeHex(id);
      if (this.#watchers.get(name) !== undefined) this.#due.add(name);
    }
    const slice = (): void => {
      let left = SLICE;
      for (const id of this.#due) {
        this.#due.delete(id);
        this.#check(id);
        if (--left === 0) break;
      }
      if (this.#due.size > 0 && !this.#closed) setImmediate(slice);
    };
    if (!isChecking) slice();
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#stops) stop();
    clearTimeout(this.#mempoolTimer);
  }
}

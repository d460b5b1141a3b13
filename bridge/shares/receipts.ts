/**
 * Receipts to connections (docs/protocol/stratum.md, S33 to S36). A pool hands over a finished sheet: the signed head
 * and all receipts with their branches, in one piece of shared memory, so that no thread copies it. Each listener looks
 * up those of its own connections and sends them in slices of about a millisecond: jobs and answers go between them. A
 * connection with unread output gets none; the miner can ask the pool's API later.
 */

import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import type { ReceiptHead } from '../../protocol/books/receipt.ts';
import { type Bytes, compareBytes, utf8 } from '../../protocol/bytes.ts';
import { entryOfBytes, receiptLines } from '../../protocol/stratum/receipt-messages.ts';
import { encodeServerFrame } from '../../protocol/stratum/v2.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';

/** Sorted entries (protocol/books/receipt.ts), one after the other; entry i is at `offsets[i]` to `offsets[i + 1]`. */
export type ReceiptDelivery = {
  readonly head: ReceiptHead;
  readonly signature: Bytes;
  readonly entries: Bytes;
  readonly offsets: Uint32Array;
};

/** One receipt, encoded for the protocol of the connection; in v2 the head goes before the first one of a sheet. */
export type ReceiptMessage = { line(): string; frames(isFirst: boolean): readonly Bytes[] };

/** Encodes the receipts of a sheet; their common part is encoded once. */
function writerOf({ head, signature }: ReceiptDelivery): (entry: Bytes) => ReceiptMessage {
  const line = receiptLines(head, signature);
  let headFrame: Bytes | undefined;
  return (entry) => ({
    line: () => line(entryOfBytes(entry)),
    frames: (isFirst) => {
      const receipt = encodeServerFrame({ type: 'receipt', entry: entryOfBytes(entry) });
      if (!isFirst) return [receipt];
      headFrame ??= encodeServerFrame({ type: 'receiptHead', signed: { head, signature } });
      return [headFrame, receipt];
    },
  });
}

/** A connection, as far as receipts are concerned. */
export interface ReceiptTaker {
  readonly isEnding: boolean;
  readonly peer: { readonly queued: number };
  readonly session: {
    readonly member: { readonly service: string; readonly account: Bytes } | null;
    /** The names that its work is under: one, or those of the rigs of a farm. */
    readonly workers: Iterable<string>;
  };
  receipt(message: ReceiptMessage, isFirst: boolean): void;
  flush(): void;
}

const SLICE_MILLIS = 1;
const CHECK_EVERY = 4;
/** Of a tick, for farms that wait for more. */
const DELAYED_MILLIS = 5;
/** Bytes that a connection may have unread and still be sent a receipt. */
const MAX_QUEUED = 32_768;

/** In memory that threads share. */
export function sharedDelivery(head: ReceiptHead, signature: Bytes, entries: readonly Bytes[]): ReceiptDelivery {
  const offsets = new Uint32Array(new SharedArrayBuffer(4 * (entries.length + 1)));
  let length = 0;
  for (const [i, entry] of entries.entries()) {
    length += entry.length;
    offsets[i + 1] = length;
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(length));
  for (const [i, entry] of entries.entries()) bytes.set(entry, offsets[i]);
  return { head, signature, entries: bytes, offsets };
}

const entryAt = ({ entries, offsets }: ReceiptDelivery, i: number): Bytes =>
  entries.subarray(offsets[i] as number, offsets[i + 1] as number);

/** Binary search: entries are sorted by account and worker. Without a worker any entry of the account will do. */
export function findEntry(delivery: ReceiptDelivery, account: Bytes, worker?: string): Bytes | undefined {
  const name = worker === undefined ? undefined : utf8(worker);
  let [low, high] = [0, delivery.offsets.length - 2];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const entry = entryAt(delivery, middle);
    const end = ADDRESS_PAYLOAD_BYTES + 1 + (entry[ADDRESS_PAYLOAD_BYTES] as number);
    const order =
      compareBytes(entry.subarray(0, ADDRESS_PAYLOAD_BYTES), account) ||
      (name === undefined ? 0 : compareBytes(entry.subarray(ADDRESS_PAYLOAD_BYTES + 1, end), name));
    if (order === 0) return entry;
    if (order < 0) low = middle + 1;
    else high = middle - 1;
  }
  return undefined;
}

export type ReceiptFanOutDependencies<T> = {
  readonly soon: (run: () => void) => void;
  readonly now: MonotonicClock;
  readonly onDefect: (conversation: T, error: unknown) => void;
};

/** Names of one connection that are looked up at once: a farm has thousands. */
const NAMES_AT_ONCE = 64;
/** Sheets that wait for a farm to read those before: the newest, so that all farms together keep no others in memory. */
const MAX_SHEETS = 8;

/** What is left of a sheet for one connection. */
type Rest = {
  readonly delivery: ReceiptDelivery;
  readonly write: (entry: Bytes) => ReceiptMessage;
  /** Read when its turn comes: names that change while sheets wait would be kept once for each of them. */
  names: readonly string[] | null;
  at: number;
  hasHead: boolean;
};

export class ReceiptFanOut<T extends ReceiptTaker> {
  readonly #dependencies: ReceiptFanOutDependencies<T>;
  /** Connections that asked for receipts. */
  readonly #asked = new Set<T>();
  #waiting: ReceiptDelivery[] = [];
  /** Farms that have not been sent all of theirs. */
  readonly #delayed = new Map<T, Rest[]>();
  #isRunning = false;
  sent = 0;
  skipped = 0;

  constructor(dependencies: ReceiptFanOutDependencies<T>) {
    this.#dependencies = dependencies;
  }

  ask(conversation: T): void {
    this.#asked.add(conversation);
  }

  forget(conversation: T): void {
    this.#asked.delete(conversation);
    this.#delayed.delete(conversation);
  }

  deliver(delivery: ReceiptDelivery): void {
    if (this.#asked.size === 0) return;
    this.#waiting.push(delivery);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#next();
  }

  #next(): void {
    const delivery = this.#waiting.shift();
    if (delivery === undefined) {
      this.#isRunning = false;
      return;
    }
    const write = writerOf(delivery);
    const cursor = [...this.#asked].values();
    const { now, soon } = this.#dependencies;
    const slice = (): void => {
      const until = now() + SLICE_MILLIS;
      for (let i = 1; ; i++) {
        const { done, value: conversation } = cursor.next();
        if (done === true) {
          soon(() => this.#next());
          return;
        }
        this.#send(conversation, delivery, write);
        if (i % CHECK_EVERY === 0 && now() >= until) {
          soon(slice);
          return;
        }
      }
    };
    slice();
  }

  #send(conversation: T, delivery: ReceiptDelivery, write: (entry: Bytes) => ReceiptMessage): void {
    const { member } = conversation.session;
    if (conversation.isEnding || member === null || member.service !== delivery.head.service) return;
    if (!this.#asked.has(conversation) || findEntry(delivery, member.account) === undefined) return;
    const rest: Rest = { delivery, write, names: null, at: 0, hasHead: false };
    const before = this.#delayed.get(conversation);
    if (before === undefined && (this.#proceed(conversation, rest) || rest.names?.length === 1)) return;
    if (before === undefined) this.#delayed.set(conversation, [rest]);
    else if (before.push(rest) > MAX_SHEETS) {
      before.shift();
      this.skipped++;
    }
  }

  /** At every tick: farms get the next of theirs in turn, as they read and as time allows. */
  sendDelayed(): void {
    const { now } = this.#dependencies;
    const until = now() + DELAYED_MILLIS;
    let left = this.#delayed.size;
    for (const [conversation, rests] of this.#delayed) {
      const [rest] = rests;
      this.#delayed.delete(conversation);
      if (rest !== undefined && !conversation.isEnding) {
        if (conversation.peer.queued === 0 && this.#proceed(conversation, rest)) rests.shift();
        if (rests.length > 0) this.#delayed.set(conversation, rests);
      }
      if (--left === 0 || now() >= until) return;
    }
  }

  /** Returns whether all of it was sent. A connection with one name gets its receipt now or never. */
  #proceed(conversation: T, rest: Rest): boolean {
    const { peer, session } = conversation;
    const account = session.member?.account;
    rest.names ??= [...session.workers];
    const { names } = rest;
    const end = Math.min(names.length, rest.at + NAMES_AT_ONCE);
    for (; rest.at < end && account !== undefined; rest.at++) {
      const entry = findEntry(rest.delivery, account, names[rest.at] as string);
      if (entry === undefined) continue;
      if (peer.queued > MAX_QUEUED) {
        if (names.length === 1) this.skipped++;
        return false;
      }
      try {
        conversation.receipt(rest.write(entry), !rest.hasHead);
        conversation.flush();
        rest.hasHead = true;
        this.sent++;
      } catch (error) {
        this.#dependencies.onDefect(conversation, error);
        return true;
      }
    }
    return rest.at >= names.length;
  }
}

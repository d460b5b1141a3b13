/**
 * The wallet's state in memory: read by selection, balance and the follower. Every output is either available or
 * reserved for one request. It changes when a step is decided, shortly before the step is on disk (journal.ts), so nothing
 * may leave the program because of the book alone: wait for the journal first.
 */
import { type Chat, chatName } from '../../protocol/messenger/chats.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { Branch } from '../keys/derivation.ts';
import {
  type AddressRecord,
  isFinal,
  type MultisigRecord,
  type OutgoingRecord,
  type OwnedOutput,
  type RequestRecord,
} from './records.ts';
import { RequestFilter } from './request-filter.ts';
import { SortedOutputs } from './sorted-outputs.ts';
import type { Changes, Meta } from './store.ts';

/** Requests kept in memory, so that the answer to a call need not wait for the disk again. */
const RECENT_REQUESTS = 4096;

export class Book {
  meta: Meta;
  readonly outputs = new Map<string, OwnedOutput>();
  readonly available = new SortedOutputs();
  readonly open = new Map<string, OutgoingRecord>();
  readonly recent = new BoundedMap<string, RequestRecord>(RECENT_REQUESTS);
  /** All request ids; only `recent` drops entries. */
  readonly requestIds: RequestFilter;
  readonly branches: Readonly<Record<Branch, AddressRecord[]>> = { receive: [], change: [] };
  /** Multisig addresses that are watched; their outputs are not among `outputs`. */
  readonly multisig = new Map<string, MultisigRecord>();
  /** By the identifier of their request, oldest first. */
  readonly chats = new Map<string, Chat>();
  readonly #chatNames = new Map<string, string>();
  readonly #addresses = new Map<string, AddressRecord>();
  readonly #reserved = new Map<string, string>();
  #total = 0n;

  /** `requestIds` are those of all requests on disk. */
  constructor(meta: Meta, requestIds: readonly string[] = []) {
    this.meta = meta;
    this.requestIds = new RequestFilter(requestIds.length);
    for (const requestId of requestIds) this.requestIds.add(requestId);
  }

  get total(): bigint {
    return this.#total;
  }

  get addressCount(): number {
    return this.#addresses.size;
  }

  address(text: string): AddressRecord | undefined {
    return this.#addresses.get(text);
  }

  addresses(): IterableIterator<AddressRecord> {
    return this.#addresses.values();
  }

  /** Takes over one step; called by the journal alone. */
  apply(changes: Changes): void {
    if (changes.meta !== undefined) this.meta = changes.meta;
    for (const record of changes.addresses ?? []) {
      this.#addresses.set(record.address, record);
      this.branches[record.branch][record.index] = record;
    }
    for (const record of changes.multisig ?? []) this.multisig.set(record.address, record);
    for (const request of changes.chatsDropped ?? []) {
      this.chats.delete(request);
      this.#chatNames.delete(chatName(request));
    }
    for (const chat of changes.chats ?? []) {
      this.chats.set(chat.request, chat);
      this.#chatNames.set(chatName(chat.request), chat.request);
    }
    for (const output of changes.outputsAdded ?? []) this.#add(output);
    for (const key of changes.outputsSpent ?? []) this.#spend(key);
    for (const record of changes.outgoing ?? []) {
      if (isFinal(record.state)) this.open.delete(record.transaction);
      else this.open.set(record.transaction, record);
    }
    for (const request of changes.requests ?? []) {
      this.requestIds.add(request.requestId);
      this.recent.set(request.requestId, request);
    }
  }

  chatNamed(name: string): Chat | undefined {
    return this.chats.get(this.#chatNames.get(name) ?? '');
  }

  /** Reservations come before the write they are for; the caller releases them when the write fails. */
  reserve(keys: readonly string[], requestId: string): void {
    for (const key of keys) {
      const holder = this.#reserved.get(key);
      if (holder !== undefined && holder !== requestId) throw new Error(`output ${key} is reserved for ${holder}`);
      this.#reserved.set(key, requestId);
      const output = this.outputs.get(key);
      if (output !== undefined) this.available.remove(output);
    }
  }

  release(keys: readonly string[]): void {
    for (const key of keys) {
      this.#reserved.delete(key);
      const output = this.outputs.get(key);
      if (output !== undefined) this.available.add(output);
    }
  }

  holderOf(key: string): string | undefined {
    return this.#reserved.get(key);
  }

  /** Clears outputs and chats for a rescan; reservations and open transactions stay. */
  forgetOutputs(): void {
    this.chats.clear();
    this.#chatNames.clear();
    for (const output of this.outputs.values()) this.available.remove(output);
    this.outputs.clear();
    this.#total = 0n;
  }

  #add(output: OwnedOutput): void {
    if (this.outputs.has(output.key)) return;
    this.outputs.set(output.key, output);
    this.#total += output.amount;
    if (!this.#reserved.has(output.key)) this.available.add(output);
  }

  #spend(key: string): void {
    const output = this.outputs.get(key);
    this.#reserved.delete(key);
    if (output === undefined) return;
    this.outputs.delete(key);
    this.available.remove(output);
    this.#total -= output.amount;
  }
}

/**
 * Chats of this wallet (docs/wallet.md, Chats): the effects of finalized cuts on them, and the payloads that request,
 * accept and write in a chat. All stored data follows from the chain: a wallet that reads it again has the same chats.
 * Strangers can send any number of requests, so waiting ones are limited.
 */
import { setImmediate } from 'node:timers/promises';
import type { TransactionDocument } from '../../protocol/api/transaction-documents.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import {
  type Chat,
  type ChatMessage,
  type ChatsKnown,
  chatEffects,
  chatName,
  chatOfRequest,
  type MessengerEntry,
  shownChats,
} from '../../protocol/messenger/chats.ts';
import {
  decodeMessage,
  decodeMessengerPayload,
  encodeMessage,
  encodeMessengerPayload,
  isMessage,
  isMessengerPayload,
  MESSENGER_AMOUNT,
  MESSENGER_NONCE_BYTES,
  messengerIdOf,
} from '../../protocol/messenger/payload.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { WallClock } from '../../runtime/clock/clock.ts';
import type { Book } from '../state/book.ts';
import type { ChatMessageRecord } from '../state/records.ts';
import { type Changes, nonceKey, type WalletStore } from '../state/store.ts';
import { WalletError } from '../wallet-error.ts';
import type { ChatKeys } from './chat-keys.ts';

/** Limit of waiting requests from others: the newest are kept, one per pair of addresses. */
export const MAX_WAITING_REQUESTS = 1000;
/** Boxes tried without a pause: a few milliseconds. */
const SLICE = 128;

export type MessengerDependencies = {
  readonly book: Book;
  readonly store: Pick<WalletStore, 'historyOf' | 'readChatMessages' | 'chatMessages'>;
  readonly keys: ChatKeys;
  readonly network: NetworkName;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly now: WallClock;
};

export type ChatChanges = Pick<Changes, 'chats' | 'chatsDropped' | 'chatMessages'>;

/** The messenger transactions among those of a cut (messenger rule 1). */
function entriesOf(height: number, transactions: ReadonlyMap<string, TransactionDocument>): MessengerEntry[] {
  return [...transactions].flatMap(([transaction, { inputs, outputs, payload_hex }]) => {
    const [first] = outputs;
    if (first === undefined || BigInt(first.amount) !== MESSENGER_AMOUNT || !payload_hex.startsWith('02')) return [];
    const payload = fromHex(payload_hex);
    if (!isMessengerPayload(payload)) return [];
    const senders = inputs.flatMap(({ address }) => address ?? []);
    return [{ transaction, height, senders, recipient: first.address, payload }];
  });
}

export class Messenger {
  readonly #with: MessengerDependencies;

  constructor(dependencies: MessengerDependencies) {
    this.#with = dependencies;
  }

  /** The changes by a finalized cut; written together with its other changes. */
  async chatsOf(height: number, transactions: ReadonlyMap<string, TransactionDocument>): Promise<ChatChanges> {
    const entries = entriesOf(height, transactions).sort((a, b) => (a.transaction < b.transaction ? -1 : 1));
    if (entries.length === 0) return {};
    const { book } = this.#with;
    const changed = new Map<string, Chat>();
    const forgotten = await this.#forgottenRequests(entries);
    const read = await this.#readBefore(entries);
    const messages: ChatMessage[] = [];
    const chat = (request: string): Chat | undefined =>
      changed.get(request) ?? book.chats.get(request) ?? forgotten.get(request);
    const named = (name: string): Chat | undefined => {
      for (const one of changed.values()) if (chatName(one.request) === name) return one;
      return book.chatNamed(name);
    };
    const isRead = (request: string, isOwn: boolean, nonceHex: string) =>
      read.has(nonceKey({ chat: request, isOwn, nonceHex }));
    const known: ChatsKnown = { ...this.#known, chat, named, isRead };
    const apply = (some: readonly MessengerEntry[]): void => {
      const effects = chatEffects(some, known);
      for (const one of effects.chats) changed.set(one.request, one);
      for (const one of effects.messages) {
        read.add(nonceKey(one));
        messages.push(one);
      }
    };
    apply(entries.filter(({ payload }) => !isMessage(payload)));
    const boxes = entries.filter(({ payload }) => isMessage(payload));
    for (let i = 0; i < boxes.length; i += SLICE) {
      apply(boxes.slice(i, i + SLICE));
      await setImmediate();
    }
    const dropped = this.#droppedBy(changed);
    return {
      chats: [...changed.values()].filter(({ request }) => !dropped.has(request)),
      chatsDropped: [...dropped].filter((request) => book.chats.has(request)),
      chatMessages: messages.map(({ text: _, ...record }) => record),
    };
  }

  get #known(): Pick<ChatsKnown, 'network' | 'isMine' | 'open'> {
    const { book, keys, network } = this.#with;
    return {
      network,
      isMine: (address) => book.address(address) !== undefined,
      open: (chat, isOwn, sealed) => keys.open(chat, isOwn, sealed),
    };
  }

  /** Requests that this wallet accepts here but that newer ones had displaced: read from the history. */
  async #forgottenRequests(entries: readonly MessengerEntry[]): Promise<Map<string, Chat>> {
    const { book, store } = this.#with;
    const found = new Map<string, Chat>();
    for (const { payload, senders } of entries) {
      const read = decodeMessengerPayload(payload);
      if (read.type !== 'accept' || !senders.some((sender) => book.address(sender) !== undefined)) continue;
      const request = toHex(read.request);
      if (book.chats.has(request)) continue;
      const entry = await store.historyOf(request);
      const first = entry?.outputs.find(({ output }) => output === 0);
      if (entry === undefined || first?.amount !== MESSENGER_AMOUNT) continue;
      const { transaction, height, senders: from, payloadHex } = entry;
      const asked = { transaction, height, senders: from, recipient: first.address, payload: fromHex(payloadHex) };
      const chat = attempt(() => chatOfRequest(asked, this.#known));
      if (chat.ok && chat.value !== undefined) found.set(request, chat.value);
    }
    return found;
  }

  /** Messages of this cut that were already read in an earlier one. */
  async #readBefore(entries: readonly MessengerEntry[]): Promise<Set<string>> {
    const keys = entries.flatMap(({ payload, recipient }) => {
      const read = decodeMessengerPayload(payload);
      const chat = read.type === 'message' ? this.#with.book.chatNamed(toHex(read.chat)) : undefined;
      if (read.type !== 'message' || chat === undefined) return [];
      const nonceHex = toHex(read.sealed.subarray(0, MESSENGER_NONCE_BYTES));
      return [nonceKey({ chat: chat.request, isOwn: recipient === chat.peer, nonceHex })];
    });
    return await this.#with.store.readChatMessages(keys);
  }

  /** Waiting requests that are displaced by newer ones. */
  #droppedBy(changed: ReadonlyMap<string, Chat>): Set<string> {
    const isWaiting = ({ role, accept }: Chat) => role === 'accepter' && accept === null;
    if (![...changed.values()].some(isWaiting)) return new Set();
    const all = new Map([...this.#with.book.chats, ...changed]);
    const waiting = [...all.values()].filter(isWaiting);
    const kept = new Set(shownChats(waiting).slice(-MAX_WAITING_REQUESTS));
    return new Set(waiting.filter((chat) => !kept.has(chat)).map(({ request }) => request));
  }

  list(): readonly Chat[] {
    return shownChats([...this.#with.book.chats.values()]);
  }

  messengerId({ keyHex }: Chat): string {
    return toHex(messengerIdOf(fromHex(keyHex)));
  }

  /** By its name, the identifier of its request, or the other's address: then an accepted one before others, and the newest. */
  find(word: string): Chat {
    const { book } = this.#with;
    const exact = book.chatNamed(word) ?? book.chats.get(word);
    if (exact !== undefined) return exact;
    const found = this.list().filter(({ peer }) => peer === word);
    const chat = found.findLast(({ accept }) => accept !== null) ?? found.at(-1);
    if (chat === undefined) throw new WalletError('chat_unknown', 'this wallet has no such chat', { field: 'chat' });
    return chat;
  }

  requestPayload(own: Bytes, address: string): Uint8Array<ArrayBuffer> {
    return encodeMessengerPayload({ type: 'request', sender: own, key: this.#with.keys.publicKey(address) });
  }

  acceptPayload(chat: Chat): Uint8Array<ArrayBuffer> {
    if (chat.role !== 'accepter')
      throw new WalletError('chat_own_request', 'this wallet asked: the other side accepts', { field: 'chat' });
    if (chat.accept !== null)
      throw new WalletError('chat_already_accepted', 'this chat was accepted before', { field: 'chat' });
    const ciphertext = this.#with.keys.accept(chat);
    return encodeMessengerPayload({ type: 'accept', request: fromHex(chat.request), ciphertext });
  }

  messagePayload(chat: Chat, text: string): Uint8Array<ArrayBuffer> {
    if (chat.accept === null)
      throw new WalletError('chat_not_accepted', 'nobody can write before the request is accepted and final', {
        field: 'chat',
      });
    const { keys, randomBytes, now } = this.#with;
    const sealed = keys.seal(chat, randomBytes(MESSENGER_NONCE_BYTES), encodeMessage(now(), text));
    return encodeMessengerPayload({ type: 'message', chat: fromHex(chatName(chat.request)), sealed });
  }

  /** Texts are not stored: they are decrypted from the history each time. */
  async textOf(chat: Chat, { transaction, isOwn }: ChatMessageRecord): Promise<string | null> {
    const entry = await this.#with.store.historyOf(transaction);
    const payload = entry && attempt(() => decodeMessengerPayload(fromHex(entry.payloadHex)));
    if (!payload?.ok || payload.value.type !== 'message') return null;
    const plain = this.#with.keys.open(chat, isOwn, payload.value.sealed);
    const message = plain && attempt(() => decodeMessage(plain));
    return message?.ok ? message.value.text : null;
  }
}

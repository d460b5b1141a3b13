/**
 * The messenger (docs/protocol/messenger.md): payloads that ask for a chat, accept it and carry its messages, and every conversation again from the root and the
 * chain. Shared secrets and keys of chats stay in the WebAssembly half; texts are JavaScript strings, because they are to be shown.
 */
import { parseAddress } from '../protocol/address.ts';
import { type Bytes, fromHex, toHex } from '../protocol/bytes.ts';
import { ID_BYTES, idFromHex } from '../protocol/crypto/identifier.ts';
import { ProtocolError } from '../protocol/errors.ts';
import {
  type Chat,
  type ChatMessage,
  chatEffects,
  chatName,
  inConversation,
  type MessengerEntry,
  shownChats,
} from '../protocol/messenger/chats.ts';
import {
  ACCEPT_BYTES,
  CIPHERTEXT_BYTES,
  chatNameIn,
  encodeMessage,
  encodeMessengerPayload,
  isMessage,
  isMessengerPayload as isPayload,
  MAX_MESSAGE_TEXT,
  MESSENGER_AMOUNT,
  MESSENGER_KEY_BYTES,
  messengerIdOf,
  REQUEST_BYTES,
} from '../protocol/messenger/payload.ts';
import type { NetworkName } from '../protocol/network.ts';
import { type Fields, inField } from '../protocol/stratum/fields.ts';
import type { Json } from '../protocol/stratum/json.ts';
import { MAX_INPUTS, MAX_PAYLOAD_BYTES } from '../protocol/transactions/transaction.ts';
import {
  decimalOf,
  givenHex,
  givenInteger,
  givenList,
  givenObject,
  givenParsed,
  listIn,
  objectIn,
  textIn,
  written,
} from './given.ts';
import { ModuleError } from './module-error.ts';
import {
  closeChat,
  messengerAccept as encapsulate,
  messengerKey,
  openChat,
  openMessage,
  sealMessage,
} from './wasm-messenger.ts';

const MAX_ENTRIES = 65_536;
const MAX_ADDRESSES = 65_536;
/** An entry has up to 15 values, and most of its text is its payload. */
const HISTORY = { text: 256 * 1024 * 1024, values: 16 * MAX_ENTRIES };

/** `Map.groupBy`, which Node 20 does not have. */
function groupBy<K, V>(values: readonly V[], keyOf: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}

export const messengerLimits = (): string =>
  written({
    text_bytes: String(MAX_MESSAGE_TEXT),
    payload_bytes: String(MAX_PAYLOAD_BYTES),
    request_bytes: String(REQUEST_BYTES),
    accept_bytes: String(ACCEPT_BYTES),
    amount: MESSENGER_AMOUNT,
  });

/** Whether a payload has the form of one of the messenger's. Who wrote it, only `messengerChats` tells. */
export function isMessengerPayload(payloadHex: string): boolean {
  return isPayload(givenHex(payloadHex, 'payload'));
}

function keyAddress(address: unknown, network: NetworkName, field = 'address'): Bytes {
  const { kind, payload } = givenParsed(address, field, (text) => parseAddress(text, network));
  if (kind !== 'key')
    throw new ModuleError('not_a_key_address', `${field}: only the address of a single key takes part in chats`, {
      field,
    });
  return payload;
}

export function messengerId(handle: number, network: NetworkName, address: unknown): string {
  return toHex(messengerIdOf(messengerKey(handle, keyAddress(address, network))));
}

export function messengerRequest(handle: number, network: NetworkName, address: unknown): string {
  const sender = keyAddress(address, network);
  return toHex(encodeMessengerPayload({ type: 'request', sender, key: messengerKey(handle, sender) }));
}

/** A chat as `messengerChats` shows it; fields that are for people are let pass. */
function readChat(chatJson: unknown, network: NetworkName): Chat {
  const fields = givenObject(chatJson, 'chat', HISTORY);
  const role = fields.text('role');
  if (role !== 'requester' && role !== 'accepter')
    throw new ProtocolError('field_type', 'chat.role must be requester or accepter', { field: 'chat.role' });
  const request = toHex(fields.parsed('request_transaction', idFromHex));
  const [own, peer] = [fields.text('own_address'), fields.text('peer_address')];
  const sender = keyAddress(own, network, fields.pathOf('own_address'));
  keyAddress(peer, network, fields.pathOf('peer_address'));
  const key = fields.hex('requester_key', MESSENGER_KEY_BYTES);
  // The codec knows what a key is, and refuses others.
  inField(fields.pathOf('requester_key'), () => encodeMessengerPayload({ type: 'request', sender, key }));
  const keyHex = toHex(key);
  const ciphertext = fields.value('accept_ciphertext');
  const accept =
    ciphertext === null
      ? null
      : { transaction: '', height: 0, ciphertextHex: toHex(fields.hex('accept_ciphertext', CIPHERTEXT_BYTES)) };
  return { request, height: 0, role, own, peer, keyHex, accept };
}

export function messengerAccept(handle: number, network: NetworkName, chatJson: unknown): string {
  const chat = readChat(chatJson, network);
  if (chat.role !== 'accepter')
    throw new ModuleError('chat_own_request', 'this request is for the other side to accept');
  if (chat.accept !== null) throw new ModuleError('chat_already_accepted', 'this request was accepted');
  const request = fromHex(chat.request, ID_BYTES);
  const ciphertext = encapsulate(handle, request, fromHex(chat.keyHex));
  return toHex(encodeMessengerPayload({ type: 'accept', request, ciphertext }));
}

function open(handle: number, network: NetworkName, chat: Chat): boolean {
  const payload = (address: string) => parseAddress(address, network).payload;
  const isRequester = chat.role === 'requester';
  return openChat(handle, {
    isRequester,
    request: fromHex(chat.request),
    requester: payload(isRequester ? chat.own : chat.peer),
    accepter: payload(isRequester ? chat.peer : chat.own),
    secret: fromHex(isRequester ? (chat.accept?.ciphertextHex as string) : chat.keyHex),
  });
}

export function messengerMessage(
  handle: number,
  network: NetworkName,
  chatJson: unknown,
  text: unknown,
  sentMillis: unknown,
): string {
  const chat = readChat(chatJson, network);
  if (chat.accept === null) throw new ModuleError('chat_not_accepted', 'the other side has not accepted this chat');
  const sent = givenInteger(sentMillis, 'sent_millis', Number.MAX_SAFE_INTEGER);
  const plain = givenParsed(text, 'text', (words) => encodeMessage(sent, words));
  try {
    open(handle, network, chat);
    const sealed = sealMessage(chat.role === 'requester', plain);
    return toHex(encodeMessengerPayload({ type: 'message', chat: fromHex(chatName(chat.request)), sealed }));
  } finally {
    closeChat();
    plain.fill(0);
  }
}

/** Undefined where a transaction is none of the messenger's. */
function readEntry(fields: Fields): MessengerEntry | undefined {
  const transaction = toHex(fields.parsed('transaction_id', idFromHex));
  const height = decimalOf(fields, 'height', Number.MAX_SAFE_INTEGER);
  const senders = listIn(fields, 'senders', MAX_INPUTS, textIn);
  const recipient = fields.text('recipient');
  const amount = fields.decimal('amount');
  const payload = fields.hex('payload_hex');
  fields.end();
  return amount === MESSENGER_AMOUNT && isPayload(payload)
    ? { transaction, height, senders, recipient, payload }
    : undefined;
}

/** The entries of one height at a time, lowest first; a transaction that occurs twice counts once. */
function cutsOf(entriesJson: unknown): readonly (readonly MessengerEntry[])[] {
  const cuts = new Map<number, Map<string, MessengerEntry>>();
  const read = (json: Json, what: string) => readEntry(objectIn(json, what));
  for (const entry of givenList(entriesJson, 'entries', MAX_ENTRIES, read, HISTORY)) {
    if (entry === undefined) continue;
    const cut = cuts.get(entry.height) ?? new Map<string, MessengerEntry>();
    cut.set(entry.transaction, entry);
    cuts.set(entry.height, cut);
  }
  return [...cuts].sort(([a], [b]) => a - b).map(([, cut]) => [...cut.values()]);
}

const messageDocument = ({ transaction, height, isOwn, sentMillis, text }: ChatMessage) => ({
  transaction_id: transaction,
  height: String(height),
  own: isOwn,
  sent_millis: String(sentMillis),
  text,
});

export function messengerChats(
  handle: number,
  network: NetworkName,
  entriesJson: unknown,
  addressesJson: unknown,
): string {
  const mine = new Set(
    givenList(
      addressesJson,
      'addresses',
      MAX_ADDRESSES,
      (json, what) => {
        const address = textIn(json, what);
        // A multisig address is also others': what it pays for is nobody's own word (messenger rule 1).
        keyAddress(address, network, what);
        return address;
      },
      HISTORY,
    ),
  );
  const chats = new Map<string, Chat>();
  const names = new Map<string, string>();
  const read = new Set<string>();
  const messages: ChatMessage[] = [];
  let opened = '';
  const key = (chat: string, isOwn: boolean, nonceHex: string) => `${chat} ${isOwn} ${nonceHex}`;
  const named = (name: string) => chats.get(names.get(name) ?? '');
  const known = {
    network,
    isMine: (address: string) => mine.has(address),
    chat: (request: string) => chats.get(request),
    named,
    isRead: (chat: string, isOwn: boolean, nonceHex: string) => read.has(key(chat, isOwn, nonceHex)),
    open(chat: Chat, isOwn: boolean, sealed: Bytes) {
      if (opened !== chat.request) open(handle, network, chat);
      opened = chat.request;
      return openMessage((chat.role === 'requester') === isOwn, sealed);
    },
  };
  const cuts = cutsOf(entriesJson);
  for (const cut of cuts)
    for (const chat of chatEffects(
      cut.filter(({ payload }) => !isMessage(payload)),
      known,
    ).chats) {
      chats.set(chat.request, chat);
      names.set(chatName(chat.request), chat.request);
    }
  // Chat by chat: the keys of each are worked out once, however junk for all of them is mixed in.
  const sealed = cuts.flat().filter(({ payload }) => isMessage(payload));
  const byName = groupBy(sealed, ({ payload }) => toHex(chatNameIn(payload)));
  try {
    for (const [name, entries] of byName) {
      if (!names.has(name)) continue;
      for (const [height, cut] of groupBy(entries, (entry) => entry.height)) {
        // An accept of a later cut does not count yet.
        const then = (wanted: string) => {
          const chat = named(wanted);
          return chat?.accept && chat.accept.height <= height ? chat : undefined;
        };
        for (const message of chatEffects(cut, { ...known, named: then }).messages) {
          read.add(key(message.chat, message.isOwn, message.nonceHex));
          messages.push(message);
        }
      }
    }
  } finally {
    closeChat();
  }
  const byChat = groupBy(messages.sort(inConversation), ({ chat }) => chat);
  return written(shownChats([...chats.values()]).map((chat) => chatDocument(chat, byChat.get(chat.request) ?? [])));
}

const chatDocument = (chat: Chat, messages: readonly ChatMessage[]) => ({
  chat: chatName(chat.request),
  role: chat.role,
  state: chat.accept === null ? 'requested' : 'accepted',
  own_address: chat.own,
  peer_address: chat.peer,
  height: String(chat.height),
  request_transaction: chat.request,
  requester_messenger_id: toHex(messengerIdOf(fromHex(chat.keyHex))),
  requester_key: chat.keyHex,
  accept_transaction: chat.accept?.transaction ?? null,
  accept_ciphertext: chat.accept?.ciphertextHex ?? null,
  messages: messages.map(messageDocument),
});

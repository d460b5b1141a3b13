/**
 * Chats (messenger rules 4 to 9): the effects of a cut's messenger transactions. The rules are the same for a wallet
 * that reads cut by cut and for the module that gets all of them at once. Pure. Transactions that do not belong to a
 * chat are ignored, because anybody can send anything to an address.
 */
import { formatAddress, parseAddress } from '../address.ts';
import { type Bytes, toHex } from '../bytes.ts';
import { attempt } from '../errors.ts';
import type { NetworkName } from '../network.ts';
import { CHAT_NAME_BYTES, decodeMessage, decodeMessengerPayload, MESSENGER_NONCE_BYTES } from './payload.ts';

/** A finalized transaction with a messenger payload that pays one atom with its output 0. */
export type MessengerEntry = {
  readonly transaction: string;
  readonly height: number;
  /** Addresses of its inputs: their keys signed it. */
  readonly senders: readonly string[];
  /** Address of its output 0. */
  readonly recipient: string;
  readonly payload: Bytes;
};

export type Chat = {
  /** Identifier of the request's transaction. */
  readonly request: string;
  readonly height: number;
  readonly role: 'requester' | 'accepter';
  readonly own: string;
  readonly peer: string;
  /** The key that the requester sent. */
  readonly keyHex: string;
  readonly accept: { readonly transaction: string; readonly height: number; readonly ciphertextHex: string } | null;
};

export type ChatMessage = {
  readonly chat: string;
  readonly transaction: string;
  readonly height: number;
  readonly isOwn: boolean;
  readonly nonceHex: string;
  /** As the author claims. */
  readonly sentMillis: number;
  readonly text: string;
};

export type ChatsKnown = {
  readonly network: NetworkName;
  readonly isMine: (address: string) => boolean;
  readonly chat: (request: string) => Chat | undefined;
  /** By the chat's name in messages. */
  readonly named: (name: string) => Chat | undefined;
  /** A message of this author with this nonce was read before. */
  readonly isRead: (chat: string, isOwn: boolean, nonceHex: string) => boolean;
  /** Opens what the author of a chat sealed; undefined when somebody else did. */
  readonly open: (chat: Chat, isOwn: boolean, sealed: Bytes) => Bytes | undefined;
};

export type ChatEffects = {
  /** New ones, and those that were accepted. */
  readonly chats: readonly Chat[];
  readonly messages: readonly ChatMessage[];
};

export const chatName = (request: string): string => request.slice(0, 2 * CHAT_NAME_BYTES);

const requesterOf = ({ role, own, peer }: Chat): string => (role === 'requester' ? own : peer);
const accepterOf = ({ role, own, peer }: Chat): string => (role === 'requester' ? peer : own);

const isKeyAddress = (address: string, network: NetworkName): boolean => {
  const parsed = attempt(() => parseAddress(address, network));
  return parsed.ok && parsed.value.kind === 'key';
};

/**
 * The chat opened by a request that concerns this wallet: its sender signed it, and not both sender and recipient are
 * this wallet's.
 */
export function chatOfRequest(
  entry: MessengerEntry,
  { network, isMine }: Pick<ChatsKnown, 'network' | 'isMine'>,
): Chat | undefined {
  const payload = decodeMessengerPayload(entry.payload);
  if (payload.type !== 'request') return undefined;
  const sender = formatAddress(payload.sender, network);
  const { recipient, transaction: request, height } = entry;
  if (!entry.senders.includes(sender) || !isKeyAddress(recipient, network)) return undefined;
  if (isMine(sender) === isMine(recipient)) return undefined;
  const base = { request, height, keyHex: toHex(payload.key), accept: null };
  return isMine(sender)
    ? { ...base, role: 'requester', own: sender, peer: recipient }
    : { ...base, role: 'accepter', own: recipient, peer: sender };
}

/** The chat with its accept; undefined if this is not an accept of this chat, or not the first. */
function accepted(chat: Chat | undefined, entry: MessengerEntry, ciphertext: Bytes): Chat | undefined {
  if (chat === undefined || chat.accept !== null) return undefined;
  if (entry.recipient !== requesterOf(chat) || !entry.senders.includes(accepterOf(chat))) return undefined;
  const { transaction, height } = entry;
  return { ...chat, accept: { transaction, height, ciphertextHex: toHex(ciphertext) } };
}

function messageOf(
  chat: Chat | undefined,
  entry: MessengerEntry,
  sealed: Bytes,
  known: ChatsKnown,
): ChatMessage | undefined {
  if (chat === undefined || chat.accept === null) return undefined;
  if (entry.recipient !== chat.own && entry.recipient !== chat.peer) return undefined;
  const isOwn = entry.recipient === chat.peer;
  // Both sides have both keys. A box of the other direction was written by the other side, even if somebody else paid for it. A box of one's own direction may also
  // have been written by the other side, so it counts as one's own only if one paid for it.
  if (isOwn && !entry.senders.some(known.isMine)) return undefined;
  const nonceHex = toHex(sealed.subarray(0, MESSENGER_NONCE_BYTES));
  if (known.isRead(chat.request, isOwn, nonceHex)) return undefined;
  const plain = known.open(chat, isOwn, sealed);
  const message = plain && attempt(() => decodeMessage(plain));
  if (!message?.ok) return undefined;
  const { transaction, height } = entry;
  return { chat: chat.request, transaction, height, isOwn, nonceHex, ...message.value };
}

const byTransaction = (a: MessengerEntry, b: MessengerEntry): number => (a.transaction < b.transaction ? -1 : 1);

/** The entries of one cut, in any order: requests come before accepts, and those before messages. */
export function chatEffects(entries: readonly MessengerEntry[], known: ChatsKnown): ChatEffects {
  const read = [...entries].sort(byTransaction).flatMap((entry) => {
    const payload = attempt(() => decodeMessengerPayload(entry.payload));
    return payload.ok ? [{ entry, payload: payload.value }] : [];
  });
  const changed = new Map<string, Chat>();
  const names = new Map<string, string>();
  const put = (chat: Chat | undefined): void => {
    if (chat === undefined) return;
    changed.set(chat.request, chat);
    names.set(chatName(chat.request), chat.request);
  };
  const chatOf = (request: string | undefined): Chat | undefined =>
    request === undefined ? undefined : (changed.get(request) ?? known.chat(request));
  for (const { entry, payload } of read)
    if (payload.type === 'request' && chatOf(entry.transaction) === undefined) put(chatOfRequest(entry, known));
  for (const { entry, payload } of read)
    if (payload.type === 'accept') put(accepted(chatOf(toHex(payload.request)), entry, payload.ciphertext));
  const messages = new Map<string, ChatMessage>();
  for (const { entry, payload } of read) {
    if (payload.type !== 'message') continue;
    const name = toHex(payload.chat);
    const found = messageOf(chatOf(names.get(name)) ?? known.named(name), entry, payload.sealed, known);
    if (found === undefined) continue;
    const key = `${found.chat} ${found.isOwn} ${found.nonceHex}`;
    if (!messages.has(key)) messages.set(key, found);
  }
  return { chats: [...changed.values()], messages: [...messages.values()] };
}

/** The order of a conversation: by height, then by the author's time, then by transaction. */
export const inConversation = (
  a: Pick<ChatMessage, 'height' | 'sentMillis' | 'transaction'>,
  b: Pick<ChatMessage, 'height' | 'sentMillis' | 'transaction'>,
): number => a.height - b.height || a.sentMillis - b.sentMillis || (a.transaction < b.transaction ? -1 : 1);

const pairOf = ({ role, own, peer }: Chat): string => `${role} ${own} ${peer}`;

/** Of the requests of one address to another that nobody has accepted only the newest, which is the last of the list. */
export function shownChats(chats: readonly Chat[]): readonly Chat[] {
  const newest = new Map<string, Chat>();
  for (const chat of chats) if (chat.accept === null) newest.set(pairOf(chat), chat);
  return chats.filter((chat) => chat.accept !== null || newest.get(pairOf(chat)) === chat);
}

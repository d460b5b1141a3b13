/** Methods of the group Messenger. Those that send are payments of one atom, harmless to repeat with the same `request_id`. */
import { flag, object, optional, text } from '../../protocol/api/schema.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { type Chat, chatName } from '../../protocol/messenger/chats.ts';
import { MAX_MESSAGE_TEXT, MESSENGER_AMOUNT } from '../../protocol/messenger/payload.ts';
import type { PayOrder } from '../payments/planning.ts';
import type { OwnedOutput } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { quoted, sendResult } from './documents.ts';
import {
  type Answer,
  addressField,
  cursorField,
  limitField,
  method,
  ownAddress,
  readAddress,
  refuseWhileRescanning,
  requestIdField,
  wish,
} from './method.ts';

const chatField = text({ minLength: 1, maxLength: 128, description: 'name of the chat, or the other’s address' });
const terms = {
  request_id: requestIdField,
  dry_run: optional(flag('only say what it would cost')),
};

const stateOf = ({ role, accept }: Chat): 'open' | 'incoming' | 'requested' => {
  if (accept !== null) return 'open';
  return role === 'accepter' ? 'incoming' : 'requested';
};

const chatDocument = (wallet: Wallet, chat: Chat): Answer => ({
  chat: chatName(chat.request),
  state: stateOf(chat),
  own_address: chat.own,
  peer_address: chat.peer,
  requested_by: chat.role === 'requester' ? 'me' : 'peer',
  requester_messenger_id: wallet.messenger.messengerId(chat),
  height: chat.height,
  accepted_height: chat.accept?.height ?? null,
});

const withWhom = (chat: Chat): Answer => ({ chat: chatName(chat.request), peer_address: chat.peer });

/** Refuses the burn address, multisig addresses and this wallet's own. */
function readPeer(wallet: Wallet, to: string): void {
  if (readAddress(wallet, to, 'to').kind !== 'key')
    throw new WalletError('address_invalid', 'only the address of a single key takes part in chats', { field: 'to' });
  if (wallet.book.address(to) !== undefined)
    throw new WalletError('chat_with_oneself', 'that is an address of this wallet', { field: 'to' });
}

type What = {
  readonly to: string;
  readonly payload: Uint8Array;
  readonly including?: string;
  /** Beside the send result. */
  readonly more: Answer;
};

async function pay(
  wallet: Wallet,
  params: { readonly request_id: string; readonly dry_run?: boolean | undefined },
  prepare: () => What,
): Promise<Answer> {
  // An accepted chat cannot be accepted again; a repeated request is still answered.
  const isRepeated = await wallet.outgoing.isKnown(params.request_id);
  const what: What = isRepeated ? { to: '', payload: new Uint8Array(0), more: {} } : prepare();
  const order: PayOrder = {
    requestId: params.request_id,
    kind: 'payment',
    recipients: [{ to: what.to, amount: MESSENGER_AMOUNT }],
    payload: what.payload,
    subtractFee: false,
    compoundFirst: false,
    fromAddress: undefined,
    including: what.including,
    params: wish(params as Readonly<Record<string, unknown>>),
  };
  if (params.dry_run === true) return { ...quoted(order, await wallet.outgoing.quotePay(order)), ...what.more };
  return { ...sendResult(await wallet.outgoing.pay(order)), ...what.more };
}

/** The default address of a request: that of the largest output, so that one input is enough. */
function askingAddress(wallet: Wallet, from: string | undefined): string {
  if (from !== undefined) return ownAddress(wallet, from, 'from_address').address;
  const largest: OwnedOutput | undefined = wallet.book.available.at(-1);
  if (largest === undefined)
    throw new WalletError(
      'insufficient_funds',
      'not enough funds: a request costs one atom and a fee, and nothing can be spent; pay to an address of this wallet first (new-address), and wait until it is final',
    );
  return largest.address;
}

export const chatMethods = {
  chats: method('Messenger', 'Chats of this wallet, and requests that wait', object({}), (wallet) => ({
    chats: wallet.messenger.list().map((chat) => chatDocument(wallet, chat)),
    indexed_height: wallet.book.meta.indexedHeight,
  })),
  chat_request: method(
    'Messenger',
    'Asks an address for a chat',
    object({ to: addressField, from_address: optional(addressField), ...terms }),
    (wallet, params) =>
      pay(wallet, params, () => {
        readPeer(wallet, params.to);
        const own = askingAddress(wallet, params.from_address);
        const payload = wallet.messenger.requestPayload(readAddress(wallet, own, 'from_address').payload, own);
        return { to: params.to, payload, including: own, more: { own_address: own } };
      }),
  ),
  chat_accept: method(
    'Messenger',
    'Accepts a request: spends from the address that was asked',
    object({ chat: chatField, ...terms }),
    (wallet, params) =>
      pay(wallet, params, () => {
        const chat = wallet.messenger.find(params.chat);
        const payload = wallet.messenger.acceptPayload(chat);
        const more = { ...withWhom(chat), requester_messenger_id: wallet.messenger.messengerId(chat) };
        return { to: chat.peer, payload, including: chat.own, more };
      }),
  ),
  chat_send: method(
    'Messenger',
    'Writes a message',
    object({ chat: chatField, text: text({ minLength: 1, maxLength: MAX_MESSAGE_TEXT }), ...terms }),
    (wallet, params) =>
      pay(wallet, params, () => {
        const chat = wallet.messenger.find(params.chat);
        const { length } = utf8(params.text);
        if (length > MAX_MESSAGE_TEXT)
          throw new WalletError('payload_too_long', `${length} bytes of text, at most ${MAX_MESSAGE_TEXT} fit`, {
            field: 'text',
          });
        const payload = wallet.messenger.messagePayload(chat, params.text);
        return { to: chat.peer, payload, more: withWhom(chat) };
      }),
  ),
  chat_messages: method(
    'Messenger',
    'What was said in a chat, oldest first',
    object({ chat: chatField, cursor: optional(cursorField), limit: optional(limitField(100, 1000)) }),
    async (wallet, { chat: word, cursor, limit = 100 }) => {
      await wallet.journal.settled();
      refuseWhileRescanning(wallet);
      const chat = wallet.messenger.find(word);
      const { messages, next } = await wallet.store.chatMessages(chat.request, cursor, limit);
      return {
        ...chatDocument(wallet, chat),
        messages: await Promise.all(
          messages.map(async (message) => ({
            height: message.height,
            transaction: message.transaction,
            own: message.isOwn,
            sent_millis: message.sentMillis,
            text: await wallet.messenger.textOf(chat, message),
          })),
        ),
        indexed_height: wallet.book.meta.indexedHeight,
        ...(next === undefined ? {} : { next_cursor: next }),
      };
    },
  ),
};

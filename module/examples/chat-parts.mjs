/**
 * A long history of chats, read in parts. `messengerChats` takes at most 65,536 entries in a call, and strangers can send any number of them to an address. A chat depends on its own entries alone, so the entries
 * are divided by chat, and those of no chat are left out. The answer is that of one call. Used by chat.mjs.
 */

const MOST_ENTRIES = 65_536;

/** Kind and type at the beginning of a payload. */
const REQUEST = '0201';
const ACCEPT = '0202';
const MESSAGE = '0203';
const typeOf = ({ payload_hex }) => payload_hex.slice(0, 4);

/** What names the chat of an entry: 16 bytes of the request's transaction, which accepts and messages have behind kind and type. */
const nameOf = (entry) => (typeOf(entry) === REQUEST ? entry.transaction_id : entry.payload_hex.slice(4)).slice(0, 32);

const inOrder = (a, b) => Number(a.height) - Number(b.height) || (a.transaction_id < b.transaction_id ? -1 : 1);

/** Of each chat of these addresses its request with its accepts, and its messages. Strangers cannot sign an accept for the address that was asked. */
function chatsIn(entries, own) {
  const chats = new Map();
  const ordered = entries
    .filter(({ senders, recipient }) => own.has(recipient) || senders.some((sender) => own.has(sender)))
    .sort(inOrder);
  for (const entry of ordered)
    if (typeOf(entry) === REQUEST) chats.set(nameOf(entry), { request: entry, heads: [entry], messages: [] });
  for (const entry of ordered) {
    const chat = chats.get(nameOf(entry));
    if (chat === undefined) continue;
    const { request, heads, messages } = chat;
    const isAccept = entry.senders.includes(request.recipient) && request.senders.includes(entry.recipient);
    if (typeOf(entry) === ACCEPT && isAccept && heads.length < 9) heads.push(entry);
    if (typeOf(entry) === MESSAGE) messages.push(entry);
  }
  return [...chats.values()];
}

/** Lists of at most `most` entries. A chat that is longer is in several lists, each with its request and accepts. */
function* partsOf(chats, most) {
  let part = [];
  for (const { heads, messages } of chats) {
    const room = most - heads.length;
    for (let from = 0; from === 0 || from < messages.length; from += room) {
      const piece = [...heads, ...messages.slice(from, from + room)];
      if (part.length + piece.length > most) {
        yield part;
        part = [];
      }
      for (const entry of piece) part.push(entry);
    }
  }
  if (part.length > 0) yield part;
}

/** The nonce of a message: one that its author, or anybody, sends again counts once. */
const noncesOf = (entries) => new Map(entries.map((entry) => [entry.transaction_id, entry.payload_hex.slice(36, 84)]));

/** One document for each chat, with the messages of all its parts. */
function joined(documents, nonces) {
  const chats = new Map();
  for (const document of documents) {
    const chat = chats.get(document.request_transaction);
    if (chat === undefined) chats.set(document.request_transaction, document);
    else chat.messages.push(...document.messages);
  }
  for (const chat of chats.values()) {
    const seen = new Set();
    chat.messages = chat.messages.sort(inOrder).filter(({ own, transaction_id }) => {
      const box = `${own} ${nonces.get(transaction_id)}`;
      return !seen.has(box) && seen.add(box);
    });
    chat.messages.sort(
      (a, b) => Number(a.height) - Number(b.height) || Number(a.sent_millis) - Number(b.sent_millis) || inOrder(a, b),
    );
  }
  return [...chats.values()];
}

/** Of the requests of one address to another that nobody has accepted only the newest. */
function shown(chats) {
  const place = ({ height, request_transaction: transaction_id }) => ({ height, transaction_id });
  const ordered = chats.sort((a, b) => inOrder(place(a), place(b)));
  const pairOf = ({ role, own_address, peer_address }) => `${role} ${own_address} ${peer_address}`;
  const newest = new Map();
  for (const chat of ordered) if (chat.state === 'requested') newest.set(pairOf(chat), chat);
  return ordered.filter((chat) => chat.state !== 'requested' || newest.get(pairOf(chat)) === chat);
}

/** The chats of any number of entries, as `messengerChats` gives them. */
export function chatsOfAll(root, entries, addresses, most = MOST_ENTRIES) {
  const read = (part) => JSON.parse(root.messengerChats(JSON.stringify(part), JSON.stringify(addresses)));
  if (entries.length <= most) return read(entries);
  const parts = [...partsOf(chatsIn(entries, new Set(addresses)), most)];
  return shown(joined(parts.flatMap(read), noncesOf(entries)));
}

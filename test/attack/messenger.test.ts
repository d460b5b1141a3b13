/**
 * What strangers and a hostile partner do to chats: repeat, reorder, cut short, fill up, ask and accept in another's name, use another's key. What was said stays the
 * same, nobody says anything in another's name, and nothing takes long.
 */
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { decodeMessengerPayload, encodeMessengerPayload } from '../../protocol/messenger/payload.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { count } from '../level.ts';
import { acquaint, type Entry, entryOf, heard, Party, say } from '../module/chat-bed.ts';
import { loadModule, type Module, watchedModule } from '../module/load.ts';
import { inTheOthersName } from '../wallet/messenger/strangers.ts';

let module: Module;
let [a, b, mallory] = [] as unknown as [Party, Party, Party];
let entries: Entry[] = [];
let told: string[] = [];
beforeAll(async () => {
  module = await loadModule();
  [a, b, mallory] = [new Party(module), new Party(module), new Party(module)];
  entries = acquaint(a, b);
  for (let i = 0; i < 12; i++) entries.push(say(i % 2 === 0 ? a : b, i % 2 === 0 ? b : a, entries, `line ${i}`));
  told = heard(b, entries, a);
  expect(told).toHaveLength(12);
});

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((value) => [randomBytes(4).readUInt32LE(), value] as const)
    .sort(([x], [y]) => x - y)
    .map(([, value]) => value);

const unchanged = (more: readonly Entry[]): void => {
  expect(heard(b, shuffled([...entries, ...more]), a)).toEqual(told);
  const swapped = told.map((line) => (line.startsWith('>') ? `<${line.slice(1)}` : `>${line.slice(1)}`));
  expect(heard(a, shuffled([...entries, ...more]), b)).toEqual(swapped);
};

test('replay: every payload again, by a stranger and by its author, to either side and to others', () => {
  const again = entries.flatMap(({ payload_hex }) =>
    [a, b, mallory].flatMap((from) => [a, b, mallory].map((to) => entryOf(from, to, payload_hex))),
  );
  unchanged(again);
  expect(mallory.chats([...entries, ...again]).flatMap(({ messages }) => messages)).toEqual([]);
});

test('reorder: entries in any order, twice over, and in one cut', () => {
  unchanged(entries);
  for (let i = 0; i < 10; i++) unchanged([]);
  // All of a conversation in one cut: then the authors' times decide.
  const cut = entries.map((entry) => ({ ...entry, height: '7' }));
  expect(heard(b, shuffled(cut), a)).toEqual(told);
});

test('junk of every size, of every kind and type, random and made of true payloads', () => {
  const junk: Entry[] = [];
  for (let length = 0; length <= 2048; length += length < 80 ? 1 : 61)
    for (const head of ['', '00', '01', '02', '0201', '0202', '0203'])
      junk.push(
        entryOf(mallory, length % 2 === 0 ? a : b, head + randomBytes(length).toString('hex').slice(head.length)),
      );
  for (const { payload_hex: payload } of entries.slice(0, 4)) {
    const bytes = payload.length / 2;
    for (let at = 0; at < bytes; at += at < 120 ? 1 : 53) {
      junk.push(entryOf(at % 2 === 0 ? a : mallory, at % 3 === 0 ? a : b, payload.slice(0, 2 * at)));
      const flipped = fromHex(payload).map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte));
      junk.push(entryOf(at % 2 === 0 ? b : mallory, at % 3 === 0 ? b : a, toHex(flipped)));
    }
    junk.push(entryOf(mallory, b, `${payload}00`));
  }
  unchanged(junk);
});

test('a payload of the messenger on a payment of more than one atom is an ordinary payment', () => {
  const [c, d] = [new Party(module), new Party(module)];
  const more = entryOf(c, d, c.root.messengerRequest(c.address), { amount: '2' });
  expect(d.chats([more])).toEqual([]);
  expect(d.chats([{ ...more, amount: '1' }])).toHaveLength(1);
});

test('a request in another’s name: who did not sign as that address asks for nothing', () => {
  const [c, d] = [new Party(module), new Party(module)];
  // Mallory's key with the address of c, c's whole request paid by Mallory, and Mallory's own address unsigned.
  const forged = [
    entryOf(mallory, d, mallory.root.messengerRequest(c.address)),
    entryOf(mallory, d, c.root.messengerRequest(c.address)),
    entryOf(c, d, mallory.root.messengerRequest(mallory.address)),
    entryOf(c, d, c.root.messengerRequest(c.address), { senders: [] }),
  ];
  expect(d.chats(forged)).toEqual([]);
  expect(c.chats(forged)).toEqual([]);
  // Its own to itself is no chat either.
  expect(c.chats([entryOf(c, c, c.root.messengerRequest(c.address))])).toEqual([]);
});

test('an accept in another’s name: only who was asked accepts, and only once', () => {
  const [c, d] = [new Party(module), new Party(module)];
  const request = entryOf(c, d, c.root.messengerRequest(c.address));
  // Mallory takes the request for one of her own and accepts it.
  const stolen = mallory.chats([{ ...request, recipient: mallory.address }]);
  const payload = mallory.root.messengerAccept(JSON.stringify(stolen[0]));
  const forged = [
    entryOf(mallory, c, payload),
    entryOf(mallory, c, payload, { senders: [mallory.address, b.address] }),
  ];
  expect(c.chats([request, ...forged])[0]).toMatchObject({ state: 'requested' });
  const accept = entryOf(d, c, d.root.messengerAccept(d.with(c, [request])));
  // By d itself, but another one and later: the first stays.
  const second = entryOf(d, c, payload);
  const all = [request, ...forged, accept, second];
  all.push(say(c, d, all, 'only d reads this'), say(d, c, all, 'and c this'));
  expect(heard(c, shuffled(all), d)).toEqual(['> only d reads this', '< and c this']);
  expect(heard(d, shuffled(all), c)).toEqual(['< only d reads this', '> and c this']);
  const hers = mallory.chats(shuffled([{ ...request, recipient: mallory.address }, ...forged, ...all]), [
    mallory.address,
    d.address,
  ]);
  expect(hers.flatMap(({ messages }) => messages)).toEqual([]);
});

test('key reuse: another’s key in a request of one’s own opens a chat in which its sender can neither read nor write', () => {
  const d = new Party(module);
  const key = (decodeMessengerPayload(fromHex(a.root.messengerRequest(a.address))) as { key: Uint8Array }).key;
  const sender = (
    decodeMessengerPayload(fromHex(mallory.root.messengerRequest(mallory.address))) as { sender: Uint8Array }
  ).sender;
  const request = entryOf(mallory, d, toHex(encodeMessengerPayload({ type: 'request', sender, key })));
  const all = [request, entryOf(d, mallory, d.root.messengerAccept(d.with(mallory, [request])))];
  all.push(say(d, mallory, all, 'who are you?'));
  all.push(say(mallory, d, all, 'I am a'));
  expect(heard(d, all, mallory)).toEqual(['> who are you?']);
  // Her wallet shows what she wrote herself, sealed with a key that nobody else has, and nothing that d wrote.
  expect(heard(mallory, all, d).filter((line) => line.startsWith('<'))).toEqual([]);
  expect(a.chats(all)).toEqual([]);
  // The same two again: each request is a chat with keys of its own.
  const twice = [...entries, ...acquaint(a, b)];
  const names = b.chats(twice).map(({ chat }) => chat);
  expect(new Set(names).size).toBe(2);
  const [first, second] = b.chats(twice).map((chat) => JSON.stringify(chat));
  const crossed = b.root
    .messengerMessage(first as string, 'to the first', 1)
    .replace(names[0] as string, names[1] as string);
  expect(a.chats([...twice, entryOf(b, a, crossed)]).flatMap(({ messages }) => messages)).toHaveLength(12);
  const right = b.root.messengerMessage(second as string, 'to the second', 1);
  expect(a.chats([...twice, entryOf(b, a, right)]).flatMap(({ messages }) => messages)).toHaveLength(13);
});

test('a hostile partner has both keys of the chat: what it writes in the other’s name is not shown to the other as its own', () => {
  const root = new WalletRoot(phraseOfEntropy(Buffer.from(b.entropy, 'hex')), '', 'development');
  const [chat] = b.chats(entries).map(({ request_transaction: request }) => request) as [string];
  const { key } = decodeMessengerPayload(fromHex((entries[0] as Entry).payload_hex)) as { key: Uint8Array };
  const about = { request: chat, key: toHex(key), requester: a.address, accepter: b.address };
  const payload = inTheOthersName(root, about, 'I owe b a thousand coins');
  // Paid by b to itself; a reads it because another output of the transaction is for a.
  const forged = entryOf(b, b, payload);
  expect(heard(a, [...entries, forged], b)).not.toContain('> I owe b a thousand coins');
  // The same box as if b had waited for a nonce of a, or paid by a stranger.
  const by = [entryOf(mallory, b, payload), entryOf(b, b, payload, { height: '0' })];
  expect(heard(a, [...entries, ...by], b)).toEqual(heard(a, entries, b));
  // Written and paid for by a, it is a's.
  expect(heard(a, [...entries, entryOf(a, b, payload)], b)).toContain('> I owe b a thousand coins');
});

test('a hostile partner: times of the far future and the past move nothing out of its cut', () => {
  const [c, d] = [new Party(module), new Party(module)];
  const all = acquaint(c, d);
  const far = say(c, d, all, 'from the year 287396', Number.MAX_SAFE_INTEGER);
  const early = say(c, d, all, 'from 1970', 0);
  // Heights come first: an author cannot move a message to another place of the conversation than its cut.
  expect(heard(d, [...all, far, early], c)).toEqual(['< from the year 287396', '< from 1970']);
  expect(heard(d, [...all, { ...far, height: '9999' }, { ...early, height: '9999' }], c)).toEqual([
    '< from 1970',
    '< from the year 287396',
  ]);
});

test('a flood of requests, accepts and messages costs nothing but reading them: no key is worked out for strangers', () => {
  const flood: Entry[] = [];
  const payload = mallory.root.messengerRequest(mallory.address);
  const [, accept, message] = entries as [Entry, Entry, Entry];
  for (let i = 0; i < count({ quick: 100, full: 500, deep: 21_000 }); i++) {
    flood.push(entryOf(mallory, b, payload));
    flood.push(entryOf(mallory, b, message.payload_hex.slice(0, 36) + randomBytes(48).toString('hex')));
    flood.push(entryOf(mallory, b, accept.payload_hex.slice(0, 100) + randomBytes(1088).toString('hex')));
  }
  const chats = b.chats([...entries, ...flood]);
  expect(chats.find(({ peer_address }) => peer_address === a.address)?.messages).toHaveLength(12);
  expect(chats.filter(({ state }) => state === 'accepted')).toHaveLength(1);
});

test('junk for all open chats in turn: the keys of each chat are worked out once', async () => {
  let opened = 0;
  const { module: watched } = await watchedModule((_, { openChat }) => ({
    openChat: (...words: number[]) => {
      opened++;
      return (openChat as (...words: number[]) => number)(...words);
    },
  }));
  const [c, d, e] = [new Party(watched), new Party(watched), new Party(watched)];
  const all = [...acquaint(c, d), ...acquaint(c, e)];
  const names = [all[0], all[2]].map((entry) => (entry as Entry).transaction_id.slice(0, 32));
  for (let i = 0; i < 300; i++) all.push(entryOf(mallory, c, `0203${names[i % 2]}${randomBytes(60).toString('hex')}`));
  opened = 0;
  expect(c.chats(all)).toHaveLength(2);
  expect(opened).toBe(2);
});

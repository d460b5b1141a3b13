/** A history of chats that is read in parts (examples/chat-parts.mjs): however small the parts, the answer is that of one call. */
import { beforeAll, expect, test } from 'vitest';
import type { WalletRoot } from '../../module/package/index.d.ts';
import { acquaint, type ChatDocument, type Entry, entryOf, Party, say } from './chat-bed.ts';
import { codeOf, loadModule, type Module, PACKAGE } from './load.ts';

type ChatsOfAll = (
  root: WalletRoot,
  entries: readonly Entry[],
  addresses: readonly string[],
  most?: number,
) => ChatDocument[];
let module: Module;
let chatsOfAll: ChatsOfAll;
beforeAll(async () => {
  module = await loadModule();
  ({ chatsOfAll } = (await import(/* @vite-ignore */ new URL('examples/chat-parts.mjs', PACKAGE).href)) as {
    chatsOfAll: ChatsOfAll;
  });
});

test('chats, junk, repeated messages and requests of strangers: in parts of any size the same as at once', () => {
  const [me, anna, bert, stranger] = [0, 1, 2, 3].map(() => new Party(module)) as [Party, Party, Party, Party];
  const withAnna = acquaint(me, anna);
  const withBert = acquaint(bert, me);
  const talk: Entry[] = [];
  for (let i = 0; i < 9; i++) {
    talk.push(say(i % 2 ? me : anna, i % 2 ? anna : me, withAnna, `anna ${i}`, 100 - i));
    talk.push(say(i % 3 ? bert : me, i % 3 ? me : bert, withBert, `bert ${i}`));
  }
  const [first, , , fourth] = talk as [Entry, Entry, Entry, Entry];
  const junk = [
    // Somebody sends a message again, much later; an accept of somebody else; a message to a chat that is not there.
    entryOf(stranger, me, first.payload_hex),
    entryOf(stranger, me, fourth.payload_hex, { recipient: fourth.recipient }),
    entryOf(stranger, me, (withAnna[1] as Entry).payload_hex),
    entryOf(stranger, me, `${first.payload_hex.slice(0, 4)}${'ab'.repeat(16)}${first.payload_hex.slice(36)}`),
    entryOf(stranger, anna, first.payload_hex),
    ...[1, 2, 3].map(() => entryOf(stranger, me, stranger.root.messengerRequest(stranger.address))),
    entryOf(me, bert, me.root.messengerRequest(me.address)),
  ];
  // An accept and messages of one cut.
  const sameCut = talk.map((entry) => ({ ...entry, height: String(7_000_000 + (Number(entry.height) % 3)) }));
  for (const entries of [
    [...withAnna, ...withBert, ...talk, ...junk],
    [...junk, ...sameCut, ...withBert, ...withAnna],
  ]) {
    const whole = me.chats(entries);
    expect(whole.map(({ state }) => state).sort()).toEqual(['accepted', 'accepted', 'requested', 'requested']);
    expect(whole.flatMap(({ messages }) => messages)).toHaveLength(18);
    for (const most of [3, 4, 5, 8, 13, entries.length - 1, entries.length])
      expect(chatsOfAll(me.root, entries, [me.address], most)).toEqual(whole);
  }
});

test('more entries than one call takes: most of them are of no chat', () => {
  const [me, anna, stranger] = [0, 1, 2].map(() => new Party(module)) as [Party, Party, Party];
  const entries = acquaint(me, anna);
  entries.push(say(anna, me, entries, 'hello'));
  const junk = entryOf(stranger, me, (entries[2] as Entry).payload_hex);
  const flood = Array.from({ length: 65_536 }, (_, i) => ({
    ...junk,
    transaction_id: i.toString(16).padStart(96, '0'),
    payload_hex: `0203${'cd'.repeat(16)}${junk.payload_hex.slice(36)}`,
  }));
  const all = [...flood, ...entries];
  expect(codeOf(() => me.chats(all))).toBe('out_of_range');
  expect(chatsOfAll(me.root, all, [me.address])).toEqual(me.chats(entries));
});

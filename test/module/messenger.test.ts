/** The messenger's functions of the module: the vectors, a conversation, its rebuilding from the words, limits, and the wallet's own keys as the other side. */
import { beforeAll, expect, test } from 'vitest';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import type { Chat } from '../../protocol/messenger/chats.ts';
import {
  decodeMessage,
  decodeMessengerPayload,
  encodeMessage,
  encodeMessengerPayload,
} from '../../protocol/messenger/payload.ts';
import vectors from '../../vectors/messenger.json' with { type: 'json' };
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { ChatKeys } from '../../wallet/messenger/chat-keys.ts';
import { acquaint, entryOf, heard, Party, say } from './chat-bed.ts';
import { codeOf, loadModule, type Module } from './load.ts';

let module: Module;
beforeAll(async () => {
  module = await loadModule();
});

test('the vectors: keys, request, accept, and every message read by both sides', () => {
  const [a, b] = [new Party(module, vectors.requester.entropy), new Party(module, vectors.accepter.entropy)];
  expect([a.address, b.address]).toEqual([vectors.requester.address, vectors.accepter.address]);
  expect(a.root.messengerId(a.address)).toBe(vectors.messenger_id);
  expect(a.root.messengerRequest(a.address)).toBe(vectors.request_payload_hex);
  const request = entryOf(a, b, vectors.request_payload_hex, { transaction_id: vectors.request_transaction });
  expect(b.root.messengerAccept(b.with(a, [request]))).toBe(vectors.accept_payload_hex);
  const accept = entryOf(b, a, vectors.accept_payload_hex);
  const messages = vectors.messages.map(({ author, payload_hex }) =>
    author === 'requester' ? entryOf(a, b, payload_hex) : entryOf(b, a, payload_hex),
  );
  for (const [party, peer, name] of [
    [a, b, 'requester'],
    [b, a, 'accepter'],
  ] as const)
    expect(heard(party, [request, accept, ...messages], peer)).toEqual(
      vectors.messages.map(({ author, text }) => `${author === name ? '>' : '<'} ${text}`),
    );
  for (const { payload_hex } of [{ payload_hex: vectors.request_payload_hex }, ...vectors.messages]) {
    expect(module.isMessengerPayload(payload_hex)).toBe(true);
    expect(toHex(encodeMessengerPayload(decodeMessengerPayload(fromHex(payload_hex))))).toBe(payload_hex);
  }
  for (const { payload_hex, code, says } of vectors.bad) {
    expect(module.isMessengerPayload(payload_hex)).toBe(false);
    expect([says, codeOf(() => decodeMessengerPayload(fromHex(payload_hex)))]).toEqual([says, code]);
  }
});

test('nothing is used that the oldest Node of package.json does not have', () => {
  const newer = [
    [Map, 'groupBy'],
    [Object, 'groupBy'],
    [Promise, 'withResolvers'],
    [Array, 'fromAsync'],
    [Iterator.prototype, 'map'],
    [Iterator.prototype, 'find'],
    [Iterator.prototype, 'toArray'],
    [Set.prototype, 'union'],
  ] as const;
  const kept = newer.map(([holder, name]) => [holder, name, Object.getOwnPropertyDescriptor(holder, name)] as const);
  try {
    for (const [holder, name] of newer) Reflect.deleteProperty(holder, name);
    const [a, b] = [new Party(module), new Party(module)];
    const entries = acquaint(a, b);
    entries.push(say(a, b, entries, 'hello'));
    expect(heard(b, entries, a)).toEqual(['< hello']);
  } finally {
    for (const [holder, name, property] of kept) Object.defineProperty(holder, name, property as PropertyDescriptor);
  }
});

test('a conversation, the same for both, and again from the words alone in another copy of the module', () => {
  const [a, b] = [new Party(module), new Party(module)];
  const entries = acquaint(a, b);
  expect(a.chats(entries)[0]).toMatchObject({ role: 'requester', state: 'accepted', peer_address: b.address });
  expect(b.chats(entries.slice(0, 1))[0]).toMatchObject({
    role: 'accepter',
    state: 'requested',
    requester_messenger_id: a.root.messengerId(a.address),
  });
  for (let i = 0; i < 10; i++) entries.push(say(i % 3 === 0 ? b : a, i % 3 === 0 ? a : b, entries, `line ${i}`));
  const told = heard(a, entries, b);
  expect(told).toHaveLength(10);
  expect(heard(b, entries, a)).toEqual(
    told.map((line) => (line.startsWith('>') ? `<${line.slice(1)}` : `>${line.slice(1)}`)),
  );
  const [again, other] = [new Party(module, a.entropy), new Party(module, b.entropy)];
  expect(heard(again, entries, b)).toEqual(told);
  expect(heard(other, entries, a)).toEqual(heard(b, entries, a));
  // The accept again is the very same, and with other words nothing can be read.
  expect(other.root.messengerAccept(other.with(a, entries.slice(0, 1)))).toBe(entries[1]?.payload_hex);
  expect(new Party(module).chats(entries, [a.address])[0]?.messages).toEqual([]);
  for (const party of [a, b, again, other]) party.root.free();
});

test('the wallet on node:crypto and noble is the other side', () => {
  const a = new Party(module);
  const keys = new ChatKeys(new WalletRoot(phraseOfEntropy(fromHex('42'.repeat(32))), '', 'development'));
  const b = new Party(module, '42'.repeat(32));
  const request = entryOf(a, b, a.root.messengerRequest(a.address));
  const payload = decodeMessengerPayload(fromHex(request.payload_hex)) as { key: Uint8Array };
  const chat: Chat = {
    request: request.transaction_id,
    height: 1,
    role: 'accepter',
    own: b.address,
    peer: a.address,
    keyHex: toHex(payload.key),
    accept: null,
  };
  const ciphertext = keys.accept(chat);
  const accept = entryOf(
    b,
    a,
    toHex(encodeMessengerPayload({ type: 'accept', request: fromHex(chat.request), ciphertext })),
  );
  const sealed = keys.seal(chat, new Uint8Array(24).fill(7), encodeMessage(5, 'from the wallet'));
  const name = fromHex(chat.request.slice(0, 32));
  const message = entryOf(b, a, toHex(encodeMessengerPayload({ type: 'message', chat: name, sealed })));
  const entries = [request, accept, message];
  expect(heard(a, entries, b)).toEqual(['< from the wallet']);
  const answer = decodeMessengerPayload(fromHex(say(a, b, entries, 'from the module').payload_hex)) as {
    sealed: Uint8Array;
  };
  expect(decodeMessage(keys.open(chat, false, answer.sealed) as Uint8Array).text).toBe('from the module');
});

test('limits are reported, and a text that does not fit is refused with its length', () => {
  const limits = JSON.parse(module.messengerLimits()) as Record<string, string>;
  expect(limits).toEqual({
    text_bytes: '1982',
    payload_bytes: '2048',
    request_bytes: '1235',
    accept_bytes: '1138',
    amount: '1',
  });
  const [a, b] = [new Party(module), new Party(module)];
  const entries = acquaint(a, b);
  const chat = a.with(b, entries);
  expect(a.root.messengerMessage(chat, 'x'.repeat(1982), 0)).toHaveLength(2 * 2048);
  expect(() => a.root.messengerMessage(chat, `é${'x'.repeat(1981)}`, 0)).toThrow(
    '1983 bytes of text, at most 1982 fit',
  );
  expect(codeOf(() => a.root.messengerMessage(chat, '', 0))).toBe('out_of_range');
  expect(codeOf(() => a.root.messengerMessage(chat, 'half a pair \ud800', 0))).toBe('bad_utf8');
  const open = a.with(b, entries.slice(0, 1));
  expect(codeOf(() => a.root.messengerMessage(open, 'x', 0))).toBe('chat_not_accepted');
  expect(codeOf(() => a.root.messengerAccept(open))).toBe('chat_own_request');
  expect(codeOf(() => b.root.messengerAccept(b.with(a, entries)))).toBe('chat_already_accepted');
  expect(codeOf(() => a.root.messengerRequest(module.burnAddress('development')))).toBe('not_a_key_address');
  expect(codeOf(() => a.root.messengerId(module.burnAddress('mainnet')))).toBe('address_network');
});

/** Floods of messenger transactions on a wallet: what is kept is bounded, what was said stays, and an accepted chat is found again whatever came in between. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { encodeMessengerPayload } from '../../protocol/messenger/payload.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { ChatKeys } from '../../wallet/messenger/chat-keys.ts';
import { MAX_WAITING_REQUESTS } from '../../wallet/messenger/messenger.ts';
import { count } from '../level.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import { bring, type Sending } from '../wallet/messenger/strangers.ts';
import { fundedWallet, openTestWallet, type TestWallet } from '../wallet/open-wallet.ts';

const COIN = 100_000_000n;
const keys = new ChatKeys(new WalletRoot(phraseOfEntropy(randomBytes(32)), '', 'development'));
const address = (): string => formatAddress(new Uint8Array([0, ...randomBytes(48)]), 'development');
const key = keys.publicKey(address());

function request(from: string, to: string): Sending {
  const { payload: sender } = parseAddress(from, 'development');
  return { from: [from], to, payload: toHex(encodeMessengerPayload({ type: 'request', sender, key })) };
}

const chatsOf = async ({ call }: TestWallet) => (await call('chats')).chats as Record<string, unknown>[];
const firstAddress = async ({ call }: TestWallet): Promise<string> =>
  ((await call('addresses')).addresses as { address: string }[])[0]?.address as string;

test('requests of strangers: one of each address, the newest thousand, and the rest is forgotten on the disk too', async () => {
  const node = new FakeNode();
  const wallet = await fundedWallet(node, [5n * COIN], { name: 'flooded' });
  const own = await firstAddress(wallet);
  // One address that asks a hundred times has one place.
  const loud = address();
  bring(
    node,
    Array.from({ length: 100 }, () => request(loud, own)),
  );
  await wallet.turn();
  expect(await chatsOf(wallet)).toMatchObject([{ peer_address: loud }]);
  const more = count({ quick: 60, full: 300, deep: 5000 });
  const senders = Array.from({ length: MAX_WAITING_REQUESTS + more }, address);
  for (let i = 0; i < senders.length; i += 400)
    bring(
      node,
      senders.slice(i, i + 400).map((from) => request(from, own)),
    );
  await wallet.turn();
  const waiting = await chatsOf(wallet);
  expect(waiting).toHaveLength(MAX_WAITING_REQUESTS);
  expect(waiting.some(({ peer_address }) => peer_address === loud)).toBe(false);
  const { directory } = wallet;
  await wallet.wallet.close();
  const again = await openTestWallet(node, { name: 'flooded', directory });
  expect((await chatsOf(again)).map(({ chat }) => chat).sort()).toEqual(waiting.map(({ chat }) => chat).sort());
});

test('a request that a flood has pushed out while its accept was under way is a chat all the same, also from the words alone', async () => {
  const node = new FakeNode();
  const asker = await fundedWallet(node, [5n * COIN], { name: 'asker' });
  const wallet = await fundedWallet(node, [5n * COIN], { name: 'asked' });
  await asker.turn();
  const [from, own] = [await firstAddress(asker), await firstAddress(wallet)];
  await asker.call('chat_request', { to: own, request_id: 'ask' });
  node.seal();
  await asker.turn();
  await wallet.turn();
  await wallet.call('chat_accept', { chat: from, request_id: 'yes' });
  const accepts = [...node.mempool.keys()];
  for (let i = 0; i < 3; i++)
    bring(
      node,
      Array.from({ length: 400 }, () => request(address(), own)),
    );
  await wallet.turn();
  expect((await chatsOf(wallet)).some(({ peer_address }) => peer_address === from)).toBe(false);
  node.seal((name) => accepts.includes(name));
  for (const one of [asker, wallet]) await one.turn();
  await asker.call('chat_send', { chat: own, text: 'there you are', request_id: 'm1' });
  node.seal();
  for (const one of [asker, wallet]) await one.turn();
  const elsewhere = await openTestWallet(node, { name: 'asked' });
  for (let i = 0; i < 4; i++) await elsewhere.turn();
  for (const one of [wallet, elsewhere]) {
    const { messages } = (await one.call('chat_messages', { chat: from })) as { messages: { text: string }[] };
    expect(messages.map(({ text }) => text)).toEqual(['there you are']);
  }
});

test('junk for an open chat: replays, other nonces, other directions, cut short; nothing of it is kept', async () => {
  const node = new FakeNode();
  const [a, b] = [
    await fundedWallet(node, [5n * COIN], { name: 'a' }),
    await fundedWallet(node, [5n * COIN], { name: 'b' }),
  ];
  const [of, to] = [await firstAddress(a), await firstAddress(b)];
  const step = async (): Promise<void> => {
    node.seal();
    for (const one of [a, b]) await one.turn();
  };
  await a.turn();
  await a.call('chat_request', { to, request_id: 'ask' });
  await step();
  await b.call('chat_accept', { chat: of, request_id: 'yes' });
  await step();
  await a.call('chat_send', { chat: to, text: 'the truth', request_id: 'm1' });
  await step();
  const payloads = node.cuts.flatMap(({ transactions }) => transactions.map(({ payload_hex }) => payload_hex));
  const message = payloads.at(-1) as string;
  expect(payloads).toHaveLength(3);
  const junk: Sending[] = [];
  for (const payload of payloads)
    for (const recipient of [of, to])
      for (const from of [[address()], [of], [to], [of, to]]) junk.push({ from, to: recipient, payload });
  for (let at = 0; at < message.length / 2; at++) {
    junk.push({ from: [of], to, payload: message.slice(0, 2 * at) });
    const flipped = fromHex(message).map((byte, i) => (i === at ? byte ^ 1 : byte));
    junk.push({ from: [of], to, payload: toHex(flipped) });
  }
  for (let i = 0; i < count({ quick: 100, full: 1000, deep: 20_000 }); i++)
    junk.push({ from: [address()], to, payload: message.slice(0, 36) + randomBytes(60).toString('hex') });
  for (let i = 0; i < junk.length; i += 2000) bring(node, junk.slice(i, i + 2000));
  for (const one of [a, b]) await one.turn();
  for (const [one, peer] of [
    [a, to],
    [b, of],
  ] as const) {
    const { messages } = (await one.call('chat_messages', { chat: peer })) as { messages: { text: string }[] };
    expect(messages.map(({ text }) => text)).toEqual(['the truth']);
    expect((await chatsOf(one)).filter(({ state }) => state === 'open')).toHaveLength(1);
  }
  await b.call('chat_send', { chat: of, text: 'and still here', request_id: 'm2' });
  await step();
  expect(((await a.call('chat_messages', { chat: to })).messages as { text: string }[]).at(-1)?.text).toBe(
    'and still here',
  );
});

/** Chats of wallets on one chain: asking, accepting, writing, reading; the same again after a restart, a rescan, and from the words alone; what is refused. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { formatAddress, parseAddress } from '../../../protocol/address.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, openTestWallet, type TestWallet } from '../open-wallet.ts';
import { bring } from './strangers.ts';

const COIN = 100_000_000n;
const stranger = (): string => formatAddress(new Uint8Array([0, ...randomBytes(48)]), 'development');

type Bed = { readonly node: FakeNode; readonly a: TestWallet; readonly b: TestWallet };

async function step({ node, a, b }: Bed): Promise<void> {
  node.seal();
  await a.turn();
  await b.turn();
}

const firstAddress = async ({ call }: TestWallet): Promise<string> =>
  ((await call('addresses')).addresses as { address: string }[])[0]?.address as string;
const chatsOf = async ({ call }: TestWallet) => (await call('chats')).chats as Record<string, unknown>[];
const said = async ({ call }: TestWallet, chat: string): Promise<string[]> =>
  ((await call('chat_messages', { chat })).messages as { own: boolean; text: string }[]).map(
    ({ own, text }) => `${own ? '>' : '<'} ${text}`,
  );

async function open(): Promise<Bed> {
  const node = new FakeNode();
  const a = await fundedWallet(node, [5n * COIN, 3n * COIN], { name: 'alice' });
  const b = await fundedWallet(node, [5n * COIN, 3n * COIN], { name: 'bob' });
  await a.turn();
  return { node, a, b };
}

/** Asked, accepted and final. */
async function acquainted(): Promise<
  Bed & { readonly chat: string; readonly of: Readonly<Record<'a' | 'b', string>> }
> {
  const bed = await open();
  const { a, b } = bed;
  const of = { a: await firstAddress(a), b: await firstAddress(b) };
  expect(await a.call('chat_request', { to: of.b, request_id: 'ask' })).toMatchObject({ amount: '0.00000001' });
  await step(bed);
  await b.call('chat_accept', { chat: of.a, request_id: 'yes' });
  await step(bed);
  const [chat] = await chatsOf(a);
  expect(chat).toMatchObject({ state: 'open', peer_address: of.b });
  return { ...bed, chat: chat?.chat as string, of };
}

test('asking, accepting, writing, and the same conversation on both sides', async () => {
  const bed = await open();
  const { node, a, b } = bed;
  const to = await firstAddress(b);
  const quote = await a.call('chat_request', { to, request_id: 'ask', dry_run: true });
  expect(quote).toMatchObject({ submitted: false, amount: '0.00000001' });
  await a.call('chat_request', { to, request_id: 'ask' });
  expect(await a.call('chat_request', { to, request_id: 'ask' })).toMatchObject({ duplicate: true });
  expect(await chatsOf(a)).toEqual([]);
  await step(bed);
  const [asked] = await chatsOf(b);
  expect(await chatsOf(a)).toMatchObject([{ state: 'requested', requested_by: 'me', peer_address: to }]);
  expect(asked).toMatchObject({ state: 'incoming', requested_by: 'peer', own_address: to });
  const chat = asked?.chat as string;
  // Nobody writes before it is accepted and final.
  for (const { refusal } of [a, b])
    expect(await refusal('chat_send', { chat, text: 'too early', request_id: 'early' })).toMatchObject({
      word: 'chat_not_accepted',
    });
  expect(await a.refusal('chat_accept', { chat, request_id: 'own' })).toMatchObject({ word: 'chat_own_request' });
  expect(await b.call('chat_accept', { chat, request_id: 'yes', dry_run: true })).toMatchObject({
    chat,
    peer_address: asked?.peer_address,
    requester_messenger_id: asked?.requester_messenger_id,
  });
  await b.call('chat_accept', { chat, request_id: 'yes' });
  await step(bed);
  await a.call('chat_send', { chat, text: 'hello', request_id: 'm1' });
  await step(bed);
  await b.call('chat_send', { chat, text: 'hello to you ☂', request_id: 'm2' });
  await step(bed);
  await a.call('chat_send', { chat: to, text: 'x'.repeat(1982), request_id: 'm3' });
  await step(bed);
  expect(await said(a, chat)).toEqual(['> hello', '< hello to you ☂', `> ${'x'.repeat(1982)}`]);
  expect(await said(b, chat)).toEqual(['< hello', '> hello to you ☂', `< ${'x'.repeat(1982)}`]);
  // The same request again is answered, also when it could not be made now.
  expect(await b.call('chat_accept', { chat, request_id: 'yes' })).toMatchObject({
    duplicate: true,
    state: 'finalized',
  });
  expect(await b.refusal('chat_accept', { chat, request_id: 'again' })).toMatchObject({
    word: 'chat_already_accepted',
  });
  expect(await a.refusal('chat_send', { chat, text: 'é'.repeat(992), request_id: 'long' })).toMatchObject({
    word: 'payload_too_long',
    message: '1984 bytes of text, at most 1982 fit',
  });
  // Pages.
  const page = await a.call('chat_messages', { chat, limit: 2 });
  expect((await a.call('chat_messages', { chat, cursor: page.next_cursor })).messages).toHaveLength(1);
  // Payments of one atom, with `messenger` and without payload fields; each chat transaction says so in the history, too.
  const { payments } = (await b.call('received', { since_height: 0 })) as { payments: Record<string, unknown>[] };
  const chats = payments.filter(({ messenger }) => messenger === true);
  expect(chats).toHaveLength(3);
  for (const payment of chats) {
    expect(payment.amount).toBe('0.00000001');
    expect('payload_text' in payment).toBe(false);
  }
  const { entries } = (await a.call('history')) as { entries: Record<string, unknown>[] };
  expect(entries.filter(({ messenger }) => messenger === true)).toHaveLength(5);
  expect(node.mempool.size).toBe(0);
});

test('the same after a restart, after a rescan, and from the words alone', async () => {
  const bed = await acquainted();
  const { node, a, b, chat } = bed;
  for (let i = 0; i < 6; i++) {
    await (i % 2 === 0 ? a : b).call('chat_send', { chat, text: `line ${i}`, request_id: `m${i}` });
    // A stranger's junk in between.
    bring(node, [{ from: [stranger()], to: bed.of.a, payload: `02${toHex(randomBytes(40 + i))}` }]);
    await step(bed);
  }
  const told = await said(a, chat);
  expect(told).toHaveLength(6);
  const elsewhere = await openTestWallet(node, { name: 'alice' });
  for (let i = 0; i < 4; i++) await elsewhere.turn();
  expect(await said(elsewhere, chat)).toEqual(told);
  expect(await chatsOf(elsewhere)).toEqual(await chatsOf(a));
  await a.call('rescan');
  await expect.poll(() => a.wallet.follower.rescanning).toBe(false);
  expect(await said(a, chat)).toEqual(told);
  const { directory } = a;
  await a.wallet.close();
  const again = await openTestWallet(node, { name: 'alice', directory });
  expect(await said(again, chat)).toEqual(told);
  expect(await chatsOf(again)).toEqual(await chatsOf(elsewhere));
});

test('a request says in whose name; what cannot be asked or accepted is refused before anything is sent', async () => {
  const bed = await open();
  const { node, a, b } = bed;
  const [own, to] = [await firstAddress(a), await firstAddress(b)];
  const second = (await a.call('new_address', { label: 'second' })).address as string;
  const ask = (params: Record<string, unknown>) => a.refusal('chat_request', { to, request_id: 'x', ...params });
  expect(await ask({ to: own })).toMatchObject({ word: 'chat_with_oneself' });
  expect(await ask({ from_address: to })).toMatchObject({ word: 'address_not_mine' });
  expect(await ask({ from_address: second })).toMatchObject({ word: 'chat_address_empty' });
  const burn = formatAddress(new Uint8Array([2, ...new Uint8Array(48)]), 'development');
  expect(await ask({ to: burn })).toMatchObject({ word: 'address_invalid' });
  const group = formatAddress(new Uint8Array([1, ...randomBytes(48)]), 'development');
  expect(await ask({ to: group })).toMatchObject({ word: 'address_invalid' });
  for (const method of ['chat_accept', 'chat_messages'])
    expect(await a.refusal(method, { chat: to, ...(method === 'chat_accept' && { request_id: 'x' }) })).toMatchObject({
      word: 'chat_unknown',
    });
  // The address that was asked spends the very atom of the request, with a larger output for the fee.
  const fresh = (await b.call('new_address', { label: '' })).address as string;
  await a.call('chat_request', { to: fresh, request_id: 'fresh' });
  await step(bed);
  await b.call('chat_accept', { chat: own, request_id: 'yes' });
  const [accept] = node.mempool.values();
  expect(accept?.body.inputs).toHaveLength(2);
  await step(bed);
  expect(await chatsOf(a)).toMatchObject([{ state: 'open', peer_address: fresh }]);
  // Without that atom nobody could tell who accepted.
  await a.call('chat_request', { to: (await b.call('new_address', {})).address, request_id: 'third' });
  await step(bed);
  const [, third] = await chatsOf(b);
  await b.call('sweep', { to, request_id: 'sweep' });
  await step(bed);
  expect(await b.refusal('chat_accept', { chat: third?.chat, request_id: 'late' })).toMatchObject({
    word: 'chat_address_empty',
  });
  expect(parseAddress(third?.own_address as string).kind).toBe('key');
});

test('an accept without money is refused with what is needed and where to pay', async () => {
  const node = new FakeNode();
  const a = await fundedWallet(node, [5n * COIN], { name: 'alice' });
  const b = await openTestWallet(node, { name: 'bob' });
  const to = (await b.call('new_address', {})).address as string;
  await a.call('chat_request', { to, request_id: 'ask' });
  await step({ node, a, b });
  const [chat] = await chatsOf(b);
  expect(await b.refusal('chat_accept', { chat: chat?.chat, request_id: 'yes', dry_run: true })).toMatchObject({
    word: 'insufficient_funds',
    message: expect.stringMatching(
      new RegExp(`0[.]0\\d+ coins are needed, fee included, and 0[.]00000001 can be spent; pay to ${to}`),
    ),
  });
});

test('a request id that was used answers `dry_run` with what became of it', async () => {
  const bed = await open();
  const { a } = bed;
  const to = await firstAddress(bed.b);
  const orders = {
    send: { to, amount: '1' },
    send_many: { recipients: [{ to, amount: '0.5' }] },
    chat_request: { to },
    burn: { amount: '0.25' },
    sweep: { to },
  };
  for (const [method, params] of Object.entries(orders)) {
    const order = { ...params, request_id: method };
    expect(await a.call(method, { ...order, dry_run: true })).toMatchObject({ submitted: false, duplicate: false });
    const { transaction } = await a.call(method, order);
    await step(bed);
    const again = await a.call(method, { ...order, dry_run: true });
    expect(again, method).toMatchObject({ transaction, duplicate: true, state: 'finalized' });
  }
});

test('a payload of the messenger on a larger payment hides nothing: it is a payment like others', async () => {
  const bed = await acquainted();
  const { node, b, of } = bed;
  const [waiting] = [...node.cuts]
    .reverse()
    .flatMap(({ transactions }) => transactions.map(({ payload_hex }) => payload_hex));
  bring(node, [
    { from: [stranger()], to: of.b, payload: waiting as string, amount: 5n * COIN },
    { from: [stranger()], to: of.b, payload: '02', amount: 1n },
  ]);
  await step(bed);
  const { payments } = (await b.call('received', { since_height: node.height - 2 })) as {
    payments: Record<string, unknown>[];
  };
  expect(payments.map(({ amount, messenger, payload_text }) => [amount, messenger, payload_text]).sort()).toEqual([
    ['0.00000001', undefined, null],
    ['5.00000000', undefined, null],
  ]);
});

/** The examples of the package as a program imports them, against a real node. Those that pay from a page and from a shell: package.slow.test.ts. */
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseAddress } from '../../protocol/address.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { ApiBed } from '../api/api-bed.ts';
import type { ChatDocument } from './chat-bed.ts';
import { loadModule, type Module, PACKAGE } from './load.ts';

const COIN = 100_000_000n;
let module: Module;
beforeAll(async () => {
  module = await loadModule();
});

type Act = (...words: unknown[]) => Promise<never>;
type Example = Readonly<
  Record<'request' | 'show' | 'prove' | 'verify' | 'addressOf' | 'credits' | 'pay' | 'accept' | 'send' | 'read', Act> &
    Record<'keyOf' | 'groupOf' | 'propose' | 'review' | 'sign', Act>
>;
const example = async (name: string): Promise<Example> =>
  (await import(/* @vite-ignore */ new URL(`examples/${name}.mjs`, PACKAGE).href)) as Example;

function person(index = 0): { readonly words: string; readonly address: string } {
  const words = phraseOfEntropy(randomBytes(32));
  const root = module.WalletRoot.fromMnemonic(words, '', 'development');
  const address = module.addressFromPublicKey(root.derivePublicKey(0, 'receive', index), 'development');
  root.free();
  return { words, address };
}

type Funded = { readonly address: string; readonly coins: bigint };
const nodeFor = (...addresses: string[]): Promise<ApiBed> =>
  nodeWith(addresses.map((address) => ({ address, coins: 10n })));

async function nodeWith(outputs: readonly Funded[]): Promise<ApiBed> {
  const fund = outputs.map(({ address, coins }) => ({
    address: parseAddress(address, 'development').payload,
    amount: coins * COIN,
  }));
  const bed = await ApiBed.open({ bed: { genesis: { fund } } });
  onTestFinished(() => bed.close());
  return bed;
}

/** Outputs on three pages of the node: all of `large` coins must be found. The order of outputs is that of their ids, so the large ones are anywhere. */
const threePages = (address: string, large: number): Funded[] =>
  Array.from({ length: 250 }, (_, i) => ({ address, coins: i < large ? 10n : 1n }));

async function seal({ bed }: ApiBed): Promise<void> {
  await bed.mine(parseAddress(module.burnAddress('development')).payload);
  await bed.seal();
}

test('proof.mjs: a request, its proof, and what does not hold', async () => {
  const { request, show, prove, verify } = await example('proof');
  const { words, address } = person();
  const asked = await request(address, 'payout address of customer 17');
  const shown = String(await show(asked)).split('\n');
  expect(shown).toContain(`address  ${address}`);
  expect(shown).toContain('purpose  "payout address of customer 17"');
  // A request that somebody else wrote by hand draws no line and moves no cursor.
  const forged = JSON.stringify({ ...JSON.parse(asked), purpose: 'x\naddress  other\u001b[2J\u202e' });
  expect(String(await show(forged)).split('\n')).toHaveLength(4);
  expect(await show(forged)).toMatch(/^[ -~\n]+$/);
  const proof = await prove(asked, words);
  expect(await verify(asked, proof)).toBe(address);
  await expect(verify(asked, proof, Date.now() + 3_600_000)).rejects.toMatchObject({ code: 'expired' });
  await expect(prove(asked, person().words)).rejects.toMatchObject({ code: 'address_not_this_key' });
  await expect(verify(await request(address, 'something else'), proof)).rejects.toMatchObject({
    code: 'other_challenge',
  });
});

test('deposits.mjs: every payment to a customer once, from the height where the last reading ended', async () => {
  const [{ addressOf, credits }, { pay }] = [await example('deposits'), await example('payment')];
  const [payer, exchange] = [person(), person()];
  const bed = await nodeFor(payer.address);
  const customers = [await addressOf(bed.base, 17, exchange.words), await addressOf(bed.base, 18, exchange.words)];
  expect(new Set([...customers, exchange.address])).toHaveLength(3);
  const before = (await credits(bed.base, 0, customers)) as { height: number; credits: unknown[] };
  expect(before.credits).toEqual([]);
  const transaction = await pay(bed.base, payer.words, customers[1], '1.25');
  await seal(bed);
  const after = (await credits(bed.base, before.height, customers)) as typeof before;
  expect(after.credits).toEqual([
    { address: customers[1], coins: '1.25000000', transaction, output: 0, height: after.height },
  ]);
  expect(await credits(bed.base, after.height, customers)).toEqual({ height: after.height, credits: [] });
});

test('chat.mjs: asked, accepted, written and read by both, from the words and the chain', async () => {
  const chat = await example('chat');
  const [anna, bert] = [person(), person()];
  const bed = await nodeFor(anna.address, bert.address);
  const step = async (act: Promise<unknown>): Promise<void> => {
    expect(await act).toMatch(/^[0-9a-f]{96}$/);
    await seal(bed);
  };
  const said = async (words: string) =>
    ((await chat.read(bed.base, words)) as ChatDocument[]).map(({ state, messages }) => [
      state,
      ...messages.map(({ own, text }) => `${own ? '>' : '<'} ${text}`),
    ]);
  await step(chat.request(bed.base, bert.address, anna.words));
  expect(await said(bert.words)).toEqual([['requested']]);
  await expect(chat.send(bed.base, bert.address, 'early', anna.words)).rejects.toMatchObject({
    code: 'chat_not_accepted',
  });
  await step(chat.accept(bed.base, anna.address, bert.words));
  await step(chat.send(bed.base, anna.address, 'hello', bert.words));
  await step(chat.send(bed.base, bert.address, 'and back', anna.words));
  expect(await said(anna.words)).toEqual([['accepted', '< hello', '> and back']]);
  expect(await said(bert.words)).toEqual([['accepted', '> hello', '< and back']]);
});

test('chat.mjs: where both have asked, the request of the other is accepted and the accepted chat is written in', async () => {
  const chat = await example('chat');
  const [anna, bert] = [person(), person()];
  const bed = await nodeFor(anna.address, bert.address);
  const steps = [
    () => chat.request(bed.base, bert.address, anna.words),
    () => chat.request(bed.base, anna.address, bert.words),
    () => chat.accept(bed.base, bert.address, anna.words),
    () => chat.send(bed.base, bert.address, 'hello', anna.words),
  ];
  for (const step of steps) {
    expect(await step()).toMatch(/^[0-9a-f]{96}$/);
    await seal(bed);
  }
  const said = (await chat.read(bed.base, bert.words)) as ChatDocument[];
  expect(said.flatMap(({ messages }) => messages.map(({ text }) => text))).toEqual(['hello']);
});

test('payment.mjs: the largest outputs of all pages, and what to do where they are too small', async () => {
  const { pay } = await example('payment');
  const [payer, shop] = [person(), person()];
  const bed = await nodeWith(threePages(payer.address, 8));
  const paid = async (to: string, coins: string): Promise<void> => {
    expect(await pay(bed.base, payer.words, to, coins)).toMatch(/^[0-9a-f]{96}$/);
    await seal(bed);
  };
  await expect(pay(bed.base, payer.words, shop.address, '400')).rejects.toThrow(
    /holds 322\.0+ coins, and 400\.\d+ are needed with the fee/,
  );
  const refusal = await pay(bed.base, payer.words, shop.address, '85').catch((error: Error) => error.message);
  expect(refusal).toMatch(/at most 8 outputs, and the 8 largest .* hold 80\.0+ of the 85\.\d+ coins/);
  // As the refusal says: a payment to the own address makes one output of eight.
  await paid(payer.address, /pay (79\.\d{8}) coins to /.exec(refusal)?.[1] as string);
  await paid(shop.address, '85');
  expect((await bed.client.addressBalance({ address: shop.address })).balance).toBe(String(85n * COIN));
});

test('payment.mjs: what a waiting transaction spends is not chosen again', async () => {
  const { pay } = await example('payment');
  const [payer, shop] = [person(), person()];
  const bed = await nodeFor(payer.address, payer.address);
  for (let i = 0; i < 2; i++) expect(await pay(bed.base, payer.words, shop.address, '1')).toMatch(/^[0-9a-f]{96}$/);
  await expect(pay(bed.base, payer.words, shop.address, '1')).rejects.toThrow(/holds nothing.*2 outputs are spent by/);
  await seal(bed);
  await pay(bed.base, payer.words, shop.address, '1');
});

test('multisig.mjs: as many of the largest outputs as fit into a transaction', async () => {
  const { keyOf, groupOf, propose, review, sign, send } = await example('multisig');
  const [members, shop] = [[person(), person(), person()], person()] as const;
  const keys = await Promise.all(members.map(({ words }) => keyOf(words, 'development')));
  const { descriptor, address } = (await groupOf(2, keys, 'development')) as { descriptor: string; address: string };
  const bed = await nodeWith(threePages(address, 5));
  await expect(propose(bed.base, descriptor, shop.address, '51')).rejects.toThrow(/at most 5 outputs/);
  const proposal = await propose(bed.base, descriptor, shop.address, '49');
  const { inputs, template_digest } = (await review(bed.base, proposal)) as Record<string, unknown>;
  expect(inputs).toHaveLength(5);
  const signed = members.slice(1).map(({ words }) => sign(bed.base, proposal, template_digest, words));
  expect(await send(bed.base, await Promise.all(signed))).toMatch(/^[0-9a-f]{96}$/);
  await seal(bed);
  expect((await bed.client.addressBalance({ address: shop.address })).balance).toBe(String(49n * COIN));
  const again = () => propose(bed.base, descriptor, shop.address, '1', proposal);
  await expect(again()).rejects.toThrow(/input 0 is spent/);
});

test('multisig.mjs: a package in place of an earlier one spends its first output, and at most one of both is paid', async () => {
  const { keyOf, groupOf, propose, review, sign, send } = await example('multisig');
  const [members, shop] = [[person(), person(), person()], person()] as const;
  const keys = await Promise.all(members.map(({ words }) => keyOf(words, 'development')));
  const { descriptor, address } = (await groupOf(2, keys, 'development')) as { descriptor: string; address: string };
  const bed = await nodeWith([10n, 20n, 30n].map((coins) => ({ address, coins })));
  const old = await propose(bed.base, descriptor, shop.address, '25');
  const next = await propose(bed.base, descriptor, shop.address, '55', old);
  const last = await propose(bed.base, descriptor, shop.address, '2', next);
  const completed = async (proposal: unknown) => {
    const { template_digest, inputs } = (await review(bed.base, proposal)) as Record<string, unknown>;
    const signed = await Promise.all(
      members.slice(1).map(({ words }) => sign(bed.base, proposal, template_digest, words)),
    );
    return { signed, first: (inputs as unknown[])[0] };
  };
  const [one, two, three] = [await completed(old), await completed(next), await completed(last)];
  expect([two.first, three.first]).toEqual([one.first, one.first]);
  await send(bed.base, three.signed);
  for (const { signed } of [one, two]) await expect(send(bed.base, signed)).rejects.toThrow(/^4\d\d: /);
  await seal(bed);
  expect((await bed.client.addressBalance({ address: shop.address })).balance).toBe(String(2n * COIN));
});

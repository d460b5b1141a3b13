/** The examples of the package for proofs, deposits and chats, as a program imports them, against a real node. Those that pay from a page and from a shell: package.slow.test.ts. */
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
  Record<'request' | 'prove' | 'verify' | 'addressOf' | 'credits' | 'pay' | 'accept' | 'send' | 'read', Act>
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

async function nodeFor(...addresses: string[]): Promise<ApiBed> {
  const fund = addresses.map((address) => ({
    address: parseAddress(address, 'development').payload,
    amount: 10n * COIN,
  }));
  const bed = await ApiBed.open({ bed: { genesis: { fund } } });
  onTestFinished(() => bed.close());
  return bed;
}

async function seal({ bed }: ApiBed): Promise<void> {
  await bed.mine(parseAddress(module.burnAddress('development')).payload);
  await bed.seal();
}

test('proof.mjs: a request, its proof, and what does not hold', async () => {
  const { request, prove, verify } = await example('proof');
  const { words, address } = person();
  const asked = await request(address, 'payout address of customer 17');
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

/** What a caller of the protocol module can be made to believe, and what is left in memory after a refusal. */
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { acquaint, entryOf, Party, say } from '../module/chat-bed.ts';
import { codeOf, loadModule, type Module, memoryOf, PACKAGE, watchedModule } from '../module/load.ts';
import { manifestOf } from '../module/payment.ts';

type Network = Parameters<Module['parseAddress']>[1];

let module: Module;
beforeAll(async () => {
  module = await loadModule();
});

function rootOf() {
  const root = module.WalletRoot.fromEntropy(randomBytes(32).toString('hex'), '', 'development');
  onTestFinished(() => root.free());
  return root;
}

test('a message that a multisig address paid for is not one of its members: such an address is not taken as own', () => {
  const [a, b, third] = [new Party(module), new Party(module), new Party(module)];
  const keys = [a, b, third].map(({ root }) => root.derivePublicKey(0, 'receive', 0));
  const shared = module.multisigAddress(module.createMultisigDescriptor(2, JSON.stringify(keys)), 'development');
  const entries = acquaint(a, b);
  expect(codeOf(() => a.chats(entries, [a.address, shared]))).toBe('not_a_key_address');
  const forged = entryOf(a, b, a.root.messengerMessage(a.with(b, entries), 'I owe you', 1), { senders: [shared] });
  expect(JSON.parse(a.with(b, [...entries, forged])).messages).toEqual([]);
  expect(JSON.parse(a.with(b, [...entries, say(a, b, entries, 'hello')])).messages).toHaveLength(1);
});

test('an empty network is no network, and an empty password no password', () => {
  const root = rootOf();
  const address = module.addressFromPublicKey(root.derivePublicKey(0, 'receive', 0), 'development');
  for (const read of [
    (network: Network) => module.parseAddress(address, network),
    (network: Network) => module.parsePaymentUri(`svc:${address}`, network),
  ]) {
    expect(codeOf(() => read('' as never))).toBe('wrong_network');
    for (const any of [null, undefined]) expect(codeOf(() => read(any))).not.toBe('wrong_network');
  }
  expect(codeOf(() => module.sealWalletFile(root, '', 10))).toBe('out_of_range');
});

test('what only looks like a wallet root is refused with a code', () => {
  const { prototype } = module.WalletRoot;
  for (const value of [Object.create(prototype), {}, null, undefined, 7]) {
    expect(codeOf(() => module.sealWalletFile(value, 'x', 10))).toBe('root_freed');
    expect(codeOf(() => prototype.fingerprint.call(value))).toBe('root_freed');
    expect(codeOf(() => prototype.free.call(value))).toBe('root_freed');
  }
});

test('scrypt without memory leaves no password behind', async () => {
  const { module: copy, instances } = await watchedModule((number) => (number === 1 ? { scrypt: () => 0 } : {}));
  const root = copy.WalletRoot.fromEntropy('11'.repeat(32), '', 'development');
  expect(codeOf(() => copy.sealWalletFile(root, 'a password of the test', 10))).toBe('module_memory');
  root.free();
  expect(instances).toHaveLength(2);
  for (const one of instances) expect(Buffer.from(memoryOf(one)).indexOf('a password of the test')).toBe(-1);
});

test('the examples believe no node that asks for an absurd fee', async () => {
  const dear = JSON.stringify({ ...JSON.parse(manifestOf()), min_fee_per_mass: '1500000' });
  vi.stubGlobal('fetch', async () => new Response(dear));
  onTestFinished(() => void vi.unstubAllGlobals());
  const { manifestOf: read } = (await import(/* @vite-ignore */ new URL('examples/node.mjs', PACKAGE).href)) as {
    manifestOf(api: string): Promise<string>;
  };
  await expect(read('http://node')).rejects.toThrow('1500000 atoms per mass');
});

/** What is left in the memory of the module after its secrets were used: nothing of them. */
import { randomBytes } from 'node:crypto';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect, test } from 'vitest';
import { WalletRoot as OwnRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy, seedOfPhrase } from '../../wallet/keys/phrase.ts';
import { acquaint, heard, Party, say } from './chat-bed.ts';
import { codeOf, memoryOf, watchedModule } from './load.ts';
import { manifestOf, paymentOf } from './payment.ts';

/** Which parts of 12 bytes of a secret stand somewhere. A word of the phrase has 8 at most: the list of all words is there, and no secret. */
function traces(memory: Uint8Array, secrets: Readonly<Record<string, Uint8Array>>): string[] {
  const bytes = Buffer.from(memory.buffer, memory.byteOffset, memory.byteLength);
  return Object.entries(secrets).flatMap(([name, secret]) => {
    const places = Array.from({ length: Math.floor((secret.length - 8) / 4) }, (_, i) => 4 * i);
    return places.filter((at) => bytes.indexOf(secret.subarray(at, at + 12)) >= 0).map((at) => `${name} ${at}`);
  });
}

const PASSPHRASE = 'Zwei Maultaschen, bitte: 47114711';
const PASSWORD = 'a password of the test 08150815';

test('no secret is left after free(): not the entropy, the passphrase, a seed, a key, or the password', async () => {
  const { module, instances } = await watchedModule();
  const entropy = randomBytes(32);
  const phrase = phraseOfEntropy(entropy);
  const wallet = new OwnRoot(phrase, PASSPHRASE, 'development');
  const seed = wallet.seed({ account: 0, branch: 'receive', index: 5 });
  const { secretKey } = ml_dsa65.keygen(seed);
  const secrets = {
    entropy,
    'entropy in hex': Buffer.from(entropy.toString('hex')),
    phrase: Buffer.from(phrase),
    passphrase: Buffer.from(PASSPHRASE),
    'phrase seed': seedOfPhrase(phrase, PASSPHRASE),
    'key seed': seed,
    // K, and s1 and s2 as the standard packs them.
    'secret key': secretKey.subarray(32, 64),
    password: Buffer.from(PASSWORD),
  };
  const root = module.WalletRoot.fromMnemonic(phrase, PASSPHRASE, 'development');
  const main = instances[0] as WebAssembly.Instance;
  // Held while the root is open, and found: the search works.
  expect(traces(memoryOf(main), secrets).map((trace) => trace.replace(/ \d+$/, ''))).toContain('entropy');
  root.fingerprint();
  root.sign(0, 'receive', 5, 'ab'.repeat(48), true);
  root.signPossession(0, 2_147_483_647, module.burnAddress('development'), manifestOf());
  const file = module.sealWalletFile(root, PASSWORD, 10);
  expect(codeOf(() => module.openWalletFile(file, 'another'))).toBe('file_password');
  const again = module.openWalletFile(file, PASSWORD);
  expect(again.derivePublicKey(0, 'receive', 5)).toBe(root.derivePublicKey(0, 'receive', 5));
  again.free();
  root.free();
  // The main instance and those that scrypt had.
  expect(instances.length).toBeGreaterThanOrEqual(4);
  for (const instance of instances) expect(traces(memoryOf(instance), secrets)).toEqual([]);
});

test('secret polynomials are gone too: what the memory holds after a signature is the same whatever the key was', async () => {
  const { module, instances } = await watchedModule();
  const main = instances[0] as WebAssembly.Instance;
  const left = () => {
    const payment = paymentOf(module, randomBytes(32).toString('hex'));
    // The exchange buffer holds the last signature and message, which are public: overwritten by a hash of one length.
    module.transactionId(payment.body, manifestOf());
    const memory = Buffer.from(memoryOf(main));
    const from = (main.exports.exchange as () => number)();
    memory.fill(0, from, from + (main.exports.exchangeBytes as () => number)());
    return memory;
  };
  expect(left().equals(left())).toBe(true);
});

test('nothing of a chat is left: not its keys, a seed, a coin or a text', async () => {
  const { module, instances } = await watchedModule();
  const main = instances[0] as WebAssembly.Instance;
  const text = 'meet me at the bridge at noon';
  const left = () => {
    const [a, b] = [new Party(module), new Party(module)];
    const entries = acquaint(a, b);
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const)
      entries.push(say(from, to, entries, text));
    expect(heard(b, entries, a)).toEqual([`< ${text}`, `> ${text}`]);
    for (const { root } of [a, b]) root.free();
    const memory = Buffer.from(memoryOf(main));
    expect(traces(memory, { text: Buffer.from(text) })).toEqual([]);
    const from = (main.exports.exchange as () => number)();
    memory.fill(0, from, from + (main.exports.exchangeBytes as () => number)());
    return memory;
  };
  // The exchange buffer holds payloads and keys that are public; the rest is the same whatever the words were.
  expect(left().equals(left())).toBe(true);
});

test('a freed root, and what is no root, is refused', async () => {
  const { module } = await watchedModule();
  const root = module.WalletRoot.fromEntropy('00'.repeat(32), '', 'development');
  root.free();
  root.free();
  for (const work of [
    () => root.fingerprint(),
    () => root.derivePublicKey(0, 'receive', 0),
    () => root.sign(0, 'receive', 0, 'ab'.repeat(48), true),
    () => root.signPossession(0, 2_147_483_647, module.burnAddress('development'), manifestOf()),
    () => root.messengerId(module.burnAddress('development')),
    () => root.messengerRequest('x'),
    () => root.messengerAccept('x'),
    () => root.messengerMessage('x', 'x', 1),
    () => root.messengerChats('[]', '[]'),
    () => module.sealWalletFile(root, 'x', 10),
    () => module.sealWalletFile({} as never, 'x', 10),
    () => Reflect.construct(module.WalletRoot as never, [Symbol('x'), 0, 'development']),
  ])
    expect(codeOf(work)).toBe('root_freed');
});

test('32 roots are open at most, and freed ones make room', async () => {
  const { module } = await watchedModule();
  const roots = [];
  let refused = '';
  while (refused === '')
    try {
      roots.push(module.WalletRoot.fromEntropy('11'.repeat(32), '', 'development'));
    } catch (error) {
      refused = (error as { code: string }).code;
    }
  expect([roots.length, refused]).toEqual([32, 'roots_exhausted']);
  roots[7]?.free();
  roots[7] = module.WalletRoot.fromEntropy('22'.repeat(32), '', 'mainnet');
  expect(new Set(roots.map((root) => root.fingerprint())).size).toBe(2);
  for (const root of roots) root.free();
});

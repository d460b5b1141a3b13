/**
 * Every function with every argument missing, of the wrong type, out of range, damaged, or of another chain and network; wallet files cut short, made longer and with
 * flipped bits. Whatever comes in, what comes out is an answer or an error with a code: no crash, no hang, no other exception.
 */
import { beforeAll, expect, test } from 'vitest';
import { MODULE_ERRORS } from '../../module/module-error.ts';
import { PROTOCOL_ERROR_CODES } from '../../protocol/errors.ts';
import { count } from '../level.ts';
import { acquaint, entryOf, Party } from './chat-bed.ts';
import { codeOf, loadModule, type Module } from './load.ts';
import { hex, MANIFEST, manifestOf, paymentOf, requestOf } from './payment.ts';

type Call = {
  readonly name: string;
  readonly work: (...words: never[]) => unknown;
  readonly good: readonly unknown[];
  readonly optional?: number;
};

/** A chat without the fields that are for people. */
function neededOf(chatJson: string): string {
  const chat = JSON.parse(chatJson) as Record<string, unknown>;
  const names = ['role', 'request_transaction', 'own_address', 'peer_address', 'requester_key', 'accept_ciphertext'];
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, chat[name]])));
}

let module: Module;
let calls: Call[] = [];
let file = '';
const entropy = hex(32);

beforeAll(async () => {
  module = await loadModule();
  const root = module.WalletRoot.fromEntropy(entropy, '', 'development');
  const { body, wire, spent, spends, witness, signature, publicKey, address, message } = paymentOf(module, entropy);
  const request = module.addressProofRequest(address, 'development', 1, 2);
  const proof = root.proveAddress(0, 'receive', 0, request);
  const witnesses = JSON.stringify([witness]);
  const bond = {
    validator_id: 'ab'.repeat(48),
    owner_address: address,
    reward_address: address,
    amount: '10000000000',
  };
  const staking = requestOf(module, { operation: { type: 'bond', data: bond } });
  const stakingBody = module.encodeTransactionBody(staking, MANIFEST);
  const phrase = module.mnemonicFromEntropy(entropy);
  const headers = {
    'x-svc-envelope-version': '1',
    'x-svc-node-identity': hex(48),
    'x-svc-request-nonce': hex(32),
    'x-svc-tip-height': '5',
    'x-svc-signature': hex(3309),
  };
  const response = JSON.stringify({
    method: 'GET',
    target: '/',
    request_body_hex: '',
    status: '200',
    response_body_hex: '',
    nonce: hex(32),
    headers,
  });
  const [self, other] = [new Party(module, entropy), new Party(module)];
  const entries = acquaint(self, other);
  const chat = neededOf(self.with(other, entries));
  const asked = [entryOf(other, self, other.root.messengerRequest(other.address))];
  const askedChat = neededOf(self.with(other, asked));
  self.root.free();
  other.root.free();
  file = module.sealWalletFile(root, 'x', 10);
  const keys = [0, 1, 2].map((index) => root.derivePublicKey(0, 'receive', index));
  const members = JSON.stringify(keys);
  const descriptor = module.createMultisigDescriptor(2, members);
  const proposal = module.createMultisigPackage(descriptor, body, '["500000000"]', MANIFEST);
  const { template_digest: digest } = JSON.parse(module.reviewMultisigPackage(proposal, MANIFEST)) as {
    template_digest: string;
  };
  const [toSign] = JSON.parse(module.multisigPackageSigningMessages(proposal, digest, MANIFEST)) as [string];
  const signatureOf = (index: number): string => root.sign(0, 'receive', index, toSign, true);
  const add = (to: string, index: number): string =>
    module.addMultisigPackageSignatures(to, keys[index] as string, `["${signatureOf(index)}"]`, MANIFEST);
  const partly = add(proposal, 0);
  const complete = add(partly, 1);
  const call = (name: string, work: (...words: never[]) => unknown, good: readonly unknown[], optional = 0): Call => ({
    name,
    work,
    good,
    optional,
  });
  const m = module;
  calls = [
    call('validateManifest', m.validateManifest, [MANIFEST]),
    call('encodeTransactionBody', m.encodeTransactionBody, [requestOf(m), MANIFEST]),
    call('encodeTransactionBody with an operation', m.encodeTransactionBody, [staking, MANIFEST]),
    call('inspectTransactionBody', m.inspectTransactionBody, [body, MANIFEST]),
    call('transactionId', m.transactionId, [body, MANIFEST]),
    call('quoteTransaction', m.quoteTransaction, [stakingBody, MANIFEST]),
    call('quoteTransactionWithInputProfiles', m.quoteTransactionWithInputProfiles, [body, '["inline"]', MANIFEST]),
    call('quoteTransactionWithWitnesses', m.quoteTransactionWithWitnesses, [body, witnesses, MANIFEST]),
    call('spendMessage', m.spendMessage, [body, 0, spent, MANIFEST]),
    call('operationMessage', m.operationMessage, [stakingBody, MANIFEST]),
    call('possessionMessage', m.possessionMessage, [publicKey, address, MANIFEST]),
    call('encodeWitness', m.encodeWitness, [publicKey, signature]),
    call('encodeWitnessWithProfile', m.encodeWitnessWithProfile, ['inline', publicKey, signature]),
    call('assembleTransaction', m.assembleTransaction, [body, witnesses, MANIFEST]),
    call('inspectTransaction', m.inspectTransaction, [wire, MANIFEST]),
    call('verifyTransaction', (a, b, d) => m.verifyTransaction(a, b, null, d), [wire, spends, MANIFEST]),
    call(
      'verifyTransactionWithReferencedKeys',
      (a, b, c, d) => m.verifyTransactionWithReferencedKeys(a, b, null, c, d),
      [wire, spends, `["${publicKey}"]`, MANIFEST],
    ),
    call('createMultisigDescriptor', m.createMultisigDescriptor, [2, members]),
    call('validateMultisigDescriptor', m.validateMultisigDescriptor, [descriptor]),
    call('multisigAddress', m.multisigAddress, [descriptor, 'development']),
    call('encodeMultisigInlineWitness', m.encodeMultisigInlineWitness, [
      descriptor,
      `[{"member":"0","signature":"${signature}"},{"member":"2","signature":"${signature}"}]`,
    ]),
    call('createMultisigPackage', m.createMultisigPackage, [descriptor, body, '["500000000"]', MANIFEST]),
    call('decodeMultisigPackage', m.decodeMultisigPackage, [proposal, MANIFEST]),
    call('reviewMultisigPackage', m.reviewMultisigPackage, [proposal, MANIFEST]),
    call('multisigPackageSigningMessages', m.multisigPackageSigningMessages, [proposal, digest, MANIFEST]),
    call('addMultisigPackageSignatures', m.addMultisigPackageSignatures, [
      proposal,
      publicKey,
      `["${signatureOf(0)}"]`,
      MANIFEST,
    ]),
    call('combineMultisigPackages', m.combineMultisigPackages, [JSON.stringify([proposal, partly]), MANIFEST]),
    call('completeMultisigPackage', m.completeMultisigPackage, [complete, MANIFEST]),
    call('addressFromPublicKey', m.addressFromPublicKey, [publicKey, 'development']),
    call('parseAddress', m.parseAddress, [address, 'development'], 1),
    call('burnAddress', m.burnAddress, ['mainnet']),
    call('parsePaymentUri', m.parsePaymentUri, [`svc:${address}?amount=1`, 'development'], 1),
    call('parseAmount', m.parseAmount, ['1.25']),
    call('formatAmount', m.formatAmount, ['125']),
    call('encodeRecipientPayloads', m.encodeRecipientPayloads, ['[{"output_index":"0","payload_hex":"ab"}]']),
    call('decodeRecipientPayloads', m.decodeRecipientPayloads, ['0101000100ab']),
    call('isMessengerPayload', m.isMessengerPayload, [root.messengerRequest(address)]),
    call('messengerId', (a) => root.messengerId(a), [address]),
    call('messengerRequest', (a) => root.messengerRequest(a), [address]),
    call('messengerAccept', (a) => root.messengerAccept(a), [askedChat]),
    call('messengerMessage', (a, b, c) => root.messengerMessage(a, b, c), [chat, 'text', 1]),
    call('messengerChats', (a, b) => root.messengerChats(a, b), [JSON.stringify(entries), JSON.stringify([address])]),
    call('mnemonicFromEntropy', m.mnemonicFromEntropy, [entropy]),
    call('mnemonicEntropy', m.mnemonicEntropy, [phrase]),
    call('fromEntropy', (a, b, c) => m.WalletRoot.fromEntropy(a, b, c).free(), [entropy, '', 'development']),
    call('fromMnemonic', (a, b, c) => m.WalletRoot.fromMnemonic(a, b, c).free(), [phrase, '', 'development']),
    call('derivePublicKey', (...words) => root.derivePublicKey(...(words as unknown as [0, 'receive', 0])), [
      0,
      'receive',
      0,
    ]),
    call('sign', (...words) => root.sign(...(words as unknown as [0, 'receive', 0, string, true])), [
      0,
      'receive',
      0,
      message,
      true,
    ]),
    call('signPossession', (...words) => root.signPossession(...(words as unknown as [0, 0, string, string])), [
      0,
      2_147_483_647,
      address,
      MANIFEST,
    ]),
    call('proveAddress', (...words) => root.proveAddress(...(words as unknown as [0, 'receive', 0, string])), [
      0,
      'receive',
      0,
      request,
    ]),
    call('addressVerificationWords', m.addressVerificationWords, [address]),
    call('addressProofRequest', m.addressProofRequest, [address, 'development', 1, 2, 'why'], 1),
    call('verifyAddressProof', m.verifyAddressProof, [request, proof, 'development', 1]),
    call('sealWalletFile', m.sealWalletFile, [root, 'x', 10], 1),
    call('openWalletFile', (a, b) => m.openWalletFile(a, b).free(), [file, 'x']),
    call('serviceIdentityForPublicKey', m.serviceIdentityForPublicKey, [publicKey]),
    call('verifyServiceResponse', m.verifyServiceResponse, [response, publicKey, hex(48), hex(48)]),
  ];
  return () => root.free();
});

const KNOWN = new Set<string>([...MODULE_ERRORS, ...PROTOCOL_ERROR_CODES]);
const isFine = (code: string): boolean => code === 'nothing refused' || KNOWN.has(code);
const outcome = (call: Call, words: readonly unknown[]): string => codeOf(() => call.work(...(words as never[])));
const withWord = (words: readonly unknown[], at: number, word: unknown): unknown[] =>
  words.map((old, i) => (i === at ? word : old));

const JUNK: readonly unknown[] = [
  ...[undefined, null, true, 17, -1, 1.5, Number.NaN, 2 ** 53, 10n, Symbol('x'), {}, [], () => 1, new Uint8Array(3)],
  ...[
    '',
    ' ',
    '0',
    '-1',
    'zz',
    '00',
    'AB',
    'null',
    '[]',
    '{}',
    '"',
    '[[[[[[[[1]]]]]]]]',
    '\ud800',
    '\0',
    '{"__proto__":{}}',
    '18446744073709551616',
    'x'.repeat(100_000),
  ],
];

test('the good arguments are good, but for an answer that nobody signed', () => {
  for (const call of calls)
    expect([call.name, outcome(call, call.good)]).toEqual([
      call.name,
      call.name === 'verifyServiceResponse' ? 'answer_nonce' : 'nothing refused',
    ]);
});

test('junk in place of every argument, and every argument left out', () => {
  for (const call of calls)
    for (const [at] of call.good.entries()) {
      for (const junk of JUNK) {
        // The usual cost of scrypt: a good call, and a long one.
        if (junk === undefined && call.name === 'sealWalletFile' && at === 2) continue;
        const code = outcome(call, withWord(call.good, at, junk));
        expect(isFine(code), `${call.name}, argument ${at}, ${String(junk).slice(0, 20)}: ${code}`).toBe(true);
      }
      if (at < call.good.length - (call.optional ?? 0))
        expect(outcome(call, withWord(call.good, at, undefined)), `${call.name}, argument ${at} missing`).not.toBe(
          'nothing refused',
        );
    }
});

/** Every place inside a JSON value, as a path. */
function placesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, entry]) => placesOf(entry, [...path, name]))];
}

function changed(
  json: string,
  path: readonly string[],
  change: (holder: Record<string, unknown>, name: string) => void,
): string {
  const document = JSON.parse(json) as Record<string, unknown>;
  let holder = document;
  for (const name of path.slice(0, -1)) holder = holder[name] as Record<string, unknown>;
  change(holder, path.at(-1) as string);
  return JSON.stringify(document);
}

const isJson = (word: unknown): word is string => typeof word === 'string' && /^[[{]/.test(word);

test('every field of every document missing, of another type, out of range; and one too many', () => {
  const values = [null, 0, -1, 1.5, true, '', 'x', '-1', '1e3', '00', '99999999999999999999', [], {}, [1], { a: 1 }];
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      if (!isJson(word)) continue;
      const judge = (text: string, what: string): string => {
        const code = outcome(call, withWord(call.good, at, text));
        expect(isFine(code), `${call.name}, argument ${at}, ${what}: ${code}`).toBe(true);
        return code;
      };
      for (const path of placesOf(JSON.parse(word))) {
        if (path.length === 0) continue;
        const gone = judge(
          changed(word, path, (holder, name) =>
            Array.isArray(holder) ? holder.splice(Number(name), 1) : delete holder[name],
          ),
          `without ${path}`,
        );
        // An entry of a list may be missing, and so may an operation.
        if (!/^\d+$/.test(path.at(-1) as string) && path.join() !== 'operation')
          expect(gone, `${call.name} without ${path}`).not.toBe('nothing refused');
        for (const value of values)
          judge(
            changed(word, path, (holder, name) => void Object.assign(holder, { [name]: value })),
            `${path} = ${JSON.stringify(value)}`,
          );
      }
      if (word.startsWith('{') && call.name !== 'openWalletFile') {
        const more = judge(JSON.stringify({ ...(JSON.parse(word) as object), one_more: 1 }), 'one field more');
        // A manifest of a newer node may say more, and so does a chat that is shown to people.
        const mayHaveMore = word === MANIFEST || 'accept_ciphertext' in (JSON.parse(word) as object);
        if (!mayHaveMore) expect(more, call.name).toBe('field_unknown');
      }
      judge(word.slice(0, -1), 'cut short');
      judge(`${word}x`, 'text behind it');
    }
});

test('hex that is cut short, too long, upper case, or has a flipped bit', () => {
  const rounds = count({ quick: 2, full: 12, deep: 1000 });
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      if (typeof word !== 'string' || word.length < 12 || !/^([0-9a-f]{2})+$/.test(word)) continue;
      for (let i = 0; i < rounds; i++) {
        const place = Math.floor(Math.random() * (word.length / 2));
        const byte = Number.parseInt(word.slice(2 * place, 2 * place + 2), 16) ^ (1 << (i & 7));
        const flipped = word.slice(0, 2 * place) + byte.toString(16).padStart(2, '0') + word.slice(2 * place + 2);
        for (const text of [
          flipped,
          word.slice(0, 2 * place),
          word.slice(0, 2 * place + 1),
          `${word}00`,
          word + word,
          word.toUpperCase(),
        ]) {
          const code = outcome(call, withWord(call.good, at, text));
          expect(isFine(code), `${call.name}, argument ${at}: ${code}`).toBe(true);
        }
      }
    }
});

test('arguments of another chain, network or wallet', () => {
  const other = manifestOf({ network: 'testnet' });
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      if (word === MANIFEST && call.name !== 'validateManifest') {
        const code = outcome(call, withWord(call.good, at, other));
        // What names no address is the same on every network; the chain decides.
        expect(['nothing refused', 'address_network', 'wrong_network'], call.name).toContain(code);
      }
      if (word === 'development') expect(isFine(outcome(call, withWord(call.good, at, 'mainnet')))).toBe(true);
    }
  const spends = call('verifyTransaction').good[1] as string;
  const foreign = spends.replace(/dsvc1[a-z0-9]+/, module.burnAddress('testnet'));
  expect(outcome(call('verifyTransaction'), withWord(call('verifyTransaction').good, 1, foreign))).toBe(
    'address_network',
  );
  expect(outcome(call('parseAddress'), withWord(call('parseAddress').good, 1, 'mainnet'))).toBe('address_network');
  expect(outcome(call('verifyAddressProof'), withWord(call('verifyAddressProof').good, 2, 'mainnet'))).toBe(
    'wrong_network',
  );
});
const call = (name: string): Call => calls.find((one) => one.name === name) as Call;

test('wallet files that are cut short, made longer, or have a flipped bit are refused', () => {
  const open = (text: string): string => codeOf(() => module.openWalletFile(text, 'x').free());
  expect(open(file)).toBe('nothing refused');
  const rounds = count({ quick: 20, full: 150, deep: 100_000 });
  const bytes = Buffer.from(file);
  for (let i = 0; i < rounds; i++) {
    const at = Math.floor(Math.random() * bytes.length);
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] as number) ^ (1 << Math.floor(Math.random() * 8));
    const text = flipped.toString('latin1');
    const code = open(text);
    // White space between the fields is not part of what is sealed, nor are the cost and names that lie outside what a file may have.
    const isSame = (() => {
      try {
        return JSON.stringify(JSON.parse(text)) === JSON.stringify(JSON.parse(file));
      } catch {
        return false;
      }
    })();
    expect(isSame ? ['nothing refused'] : ['file_damaged', 'file_password', 'file_cost', 'bad_utf8'], text).toContain(
      code,
    );
    // Without the line break at its end it is the same file.
    const shorter = file.slice(0, at % file.trimEnd().length);
    if (i % 10 === 0) expect(['file_damaged', 'file_password']).toContain(open(shorter));
  }
  expect(open(file + ' '.repeat(70_000))).toBe('too_long');
  expect(open(file.replace(/"box": "/, `"box": "${'00'.repeat(20_000)}`))).toBe('file_damaged');
  expect(open(file.replace(/"salt": "/, `"salt": "${'00'.repeat(2000)}`))).toBe('file_damaged');
});

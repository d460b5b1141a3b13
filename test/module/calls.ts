/** Every function of the module with good arguments, for tests that make one of them bad. */
import { acquaint, entryOf, Party } from './chat-bed.ts';
import { codeOf, type Module } from './load.ts';
import { hex, MANIFEST, paymentOf, requestOf } from './payment.ts';

export type Call = {
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

export function callsOf(module: Module): { calls: readonly Call[]; file: string; free: () => void } {
  const entropy = hex(32);
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
  const file = module.sealWalletFile(root, 'x', 10);
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
  const calls = [
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
  return { calls, file, free: () => root.free() };
}

export const outcome = (call: Call, words: readonly unknown[]): string =>
  codeOf(() => call.work(...(words as never[])));
export const withWord = (words: readonly unknown[], at: number, word: unknown): unknown[] =>
  words.map((old, i) => (i === at ? word : old));

/** Every place inside a JSON value, as a path. */
export function placesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, entry]) => placesOf(entry, [...path, name]))];
}

export function changed(
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

export const isJson = (word: unknown): word is string => typeof word === 'string' && /^[[{]/.test(word);

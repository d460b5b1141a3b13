/** Every function of the specification's table that is there, by name, against the wallet's and the node's own code. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { answerMessage, serviceIdentity } from '../../protocol/api/signed-answer.ts';
import { fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { possessionMessage } from '../../protocol/staking/names.ts';
import {
  addressVerificationWords,
  plainRequest,
  verifyAddressProof,
  type WireRequest,
} from '../../protocol/transactions/address-proof.ts';
import vectors from '../../vectors/module.json' with { type: 'json' };
import walletVectors from '../../vectors/wallet.json' with { type: 'json' };
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { signingKey, signMessage, verifySignature } from '../../wallet/keys/signing.ts';
import { openWalletFile, sealWalletFile } from '../../wallet/keys/wallet-file.ts';
import { callsOf, isJson, placesOf } from './calls.ts';
import { codeOf, loadModule, type Module, PACKAGE } from './load.ts';
import { hex, MANIFEST, manifestOf, type Payment, paymentOf, requestOf } from './payment.ts';

/** The rows of the specification. */
const TABLE = {
  Manifest: 'validateManifest',
  Bodies:
    'encodeTransactionBody inspectTransactionBody transactionId quoteTransaction quoteTransactionWithInputProfiles quoteTransactionWithWitnesses',
  Authorization:
    'spendMessage operationMessage possessionMessage encodeWitness encodeWitnessWithProfile encodeMultisigInlineWitness assembleTransaction inspectTransaction verifyTransaction verifyTransactionWithReferencedKeys',
  Multisig:
    'createMultisigDescriptor validateMultisigDescriptor multisigAddress createMultisigPackage decodeMultisigPackage reviewMultisigPackage multisigPackageSigningMessages addMultisigPackageSignatures combineMultisigPackages completeMultisigPackage',
  Text: 'addressFromPublicKey parseAddress burnAddress parsePaymentUri parseAmount formatAmount',
  'Recipient payloads': 'encodeRecipientPayloads decodeRecipientPayloads',
  Messenger: 'messengerLimits isMessengerPayload',
  Keys: 'mnemonicFromEntropy mnemonicEntropy WalletRoot',
  'Address ownership': 'addressVerificationWords addressProofRequest verifyAddressProof',
  'Wallet file': 'sealWalletFile openWalletFile',
  'Service answers': 'serviceIdentityForPublicKey verifyServiceResponse',
};
const ROOT_METHODS =
  'fingerprint derivePublicKey sign signPossession proveAddress free messengerId messengerRequest messengerAccept messengerMessage messengerChats';

let module: Module;
let payment: Payment;
const entropy = hex(32);
beforeAll(async () => {
  module = await loadModule();
  payment = paymentOf(module, entropy);
});
const read = <T = Record<string, unknown>>(json: string): T => JSON.parse(json) as T;

test('exports, types and README name the same functions', () => {
  const names = Object.values(TABLE).flatMap((row) => row.split(' '));
  expect(Object.keys(module).sort()).toEqual([...names, 'default'].sort());
  const types = readFileSync(new URL('index.d.ts', PACKAGE), 'utf8');
  const declared = [...types.matchAll(/^export (?:function|class) (\w+)/gm)].map((match) => match[1]);
  expect(declared.sort()).toEqual([...names].sort());
  for (const name of ROOT_METHODS.split(' ')) expect(module.WalletRoot.prototype).toHaveProperty(name);
  const readme = readFileSync(new URL('README.md', PACKAGE), 'utf8');
  for (const name of [...names, ...ROOT_METHODS.split(' ')]) expect(readme).toContain(`\`${name}`);
});

test('release.json has the SHA-256 of every file of the package', () => {
  const { sha256 } = read<{ sha256: Record<string, string> }>(readFileSync(new URL('release.json', PACKAGE), 'utf8'));
  const files = readdirSync(PACKAGE, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(Object.keys(sha256)).toHaveLength(files.length - 1);
  expect(sha256['svc_wasm_bg.wasm']).toMatch(/^[0-9a-f]{64}$/);
});

test('manifest: another chain, protocol version, rule set or other limits are refused (rule 1)', () => {
  expect(read(module.validateManifest(MANIFEST))).toMatchObject({
    network: 'development',
    min_fee_per_mass: '10',
    max_inputs: '8',
  });
  expect(module.validateManifest(manifestOf({ a_new_field: 1 }))).toBe(module.validateManifest(MANIFEST));
  const { body, wire, spends, spent } = payment;
  for (const [more, code] of [
    [{ chain_id: 'ac'.repeat(48) }, 'wrong_chain'],
    [{ protocol_version: 2 }, 'unsupported_version'],
    [{ rule_set: 2 }, 'unsupported_version'],
    [{ max_inputs: 9 }, 'manifest_other_rules'],
  ] as const) {
    const other = manifestOf(more);
    const works = [
      () => module.inspectTransactionBody(body, other),
      () => module.transactionId(body, other),
      () => module.quoteTransaction(body, other),
      () => module.quoteTransactionWithInputProfiles(body, '["inline"]', other),
      () => module.quoteTransactionWithWitnesses(body, `["${payment.witness}"]`, other),
      () => module.spendMessage(body, 0, spent, other),
      () => module.operationMessage(body, other),
      () => module.assembleTransaction(body, `["${payment.witness}"]`, other),
      () => module.inspectTransaction(wire, other),
      () => module.verifyTransaction(wire, spends, null, other),
      () => module.verifyTransactionWithReferencedKeys(wire, spends, null, '[]', other),
    ];
    for (const work of works) expect(codeOf(work)).toBe(code);
  }
  // The bytes themselves of another protocol version and rule set.
  expect(codeOf(() => module.transactionId(`0200${body.slice(4)}`, MANIFEST))).toBe('unsupported_version');
  expect(codeOf(() => module.transactionId(`01000200${body.slice(8)}`, MANIFEST))).toBe('unsupported_version');
});

test('the wallet vectors: spend message, transaction id, address proof', () => {
  const { signature, address_proof } = walletVectors;
  const chain = signature.body.slice(8, 104);
  const manifest = manifestOf({ chain_id: chain });
  const spent = JSON.stringify({
    address: formatAddress(fromHex(signature.spent.address), 'development'),
    amount: '500000000',
  });
  expect(module.transactionId(signature.body, manifest)).toBe(signature.transaction_id);
  expect(module.spendMessage(signature.body, '0', spent, manifest)).toBe(signature.spend_message);
  const again = read(module.inspectTransactionBody(signature.body, manifest));
  const { valid_from_height, valid_until_height, inputs, outputs, payload_hex } = again;
  const request = JSON.stringify({ valid_from_height, valid_until_height, inputs, outputs, payload_hex });
  expect(module.encodeTransactionBody(request, manifest)).toBe(signature.body);
  const proof = JSON.stringify({
    version: 1,
    address: address_proof.request.address,
    challenge: address_proof.request.challenge,
    public_key: signature.public_key,
    signature: address_proof.signature,
  });
  const requestJson = JSON.stringify(address_proof.request);
  expect(read(module.verifyAddressProof(requestJson, proof, 'development', 1_700_000_000_001))).toEqual({
    address: address_proof.request.address,
  });
  expect(codeOf(() => module.verifyAddressProof(requestJson, proof, 'development', 1_800_000_000_001))).toBe('expired');
  expect(() => module.verifyAddressProof(requestJson, proof, 'development', 1_800_000_000_001)).toThrow(
    /make a new one/,
  );
  expect(codeOf(() => module.verifyAddressProof(requestJson, proof, 'mainnet', 0))).toBe('wrong_network');
});

test('a payment: quote, sign, assemble, verify; the quote is exact and the fee counts', () => {
  const { body, wire, spends, witness } = payment;
  const quote = read(module.quoteTransaction(body, MANIFEST));
  const verified = read(module.verifyTransaction(wire, spends, '', MANIFEST));
  expect(verified).toMatchObject({ ...quote, fee: '375000000', transaction_id: module.transactionId(body, MANIFEST) });
  expect(quote.wire_bytes).toBe(String(wire.length / 2));
  expect(read(module.quoteTransactionWithWitnesses(body, `["${witness}"]`, MANIFEST))).toEqual(quote);
  expect(read(module.quoteTransactionWithInputProfiles(body, '["inline"]', MANIFEST))).toEqual(quote);
  expect(read(module.inspectTransaction(wire, MANIFEST))).toMatchObject({
    witnesses: [{ profile: 'inline', public_key: payment.publicKey, signature: payment.signature }],
  });
  const spent = (amount: bigint) => `[${JSON.stringify({ address: payment.address, amount: amount.toString() })}]`;
  const least = 125_000_000n + BigInt(quote.minimum_fee as string);
  // Another amount is another message: the fee is looked at first, the signature then.
  expect(codeOf(() => module.verifyTransaction(wire, spent(least - 1n), null, MANIFEST))).toBe('fee_below_minimum');
  expect(codeOf(() => module.verifyTransaction(wire, spent(least), null, MANIFEST))).toBe('signature_invalid');
  expect(() => module.verifyTransaction(wire, spent(least), null, MANIFEST)).toThrow(/^signature 0 .* previous output/);
  expect(codeOf(() => module.verifyTransaction(wire, spent(1n), null, MANIFEST))).toBe('amounts_exceed_inputs');
  const stranger = `[${JSON.stringify({ address: module.burnAddress('development'), amount: '500000000' })}]`;
  expect(codeOf(() => module.verifyTransaction(wire, stranger, null, MANIFEST))).toBe('witness_key_mismatch');
});

test('a referenced key (rule 5): smaller, and verified with the registered keys only', () => {
  const { body, signature, spends, publicKey } = payment;
  const witness = module.encodeWitnessWithProfile('referenced', null, signature);
  const wire = module.assembleTransaction(body, `["${witness}"]`, MANIFEST);
  const quote = read(module.quoteTransactionWithInputProfiles(body, '["referenced"]', MANIFEST));
  const judged = (keys: string[]) =>
    module.verifyTransactionWithReferencedKeys(wire, spends, null, JSON.stringify(keys), MANIFEST);
  expect(read(judged([publicKey]))).toMatchObject(quote);
  expect(wire.length).toBe(payment.wire.length - 2 * 1952);
  expect(codeOf(() => judged([]))).toBe('witness_key_unregistered');
  expect(codeOf(() => judged([hex(1952)]))).toBe('witness_key_unregistered');
  expect(codeOf(() => module.verifyTransaction(wire, spends, null, MANIFEST))).toBe('witness_key_unregistered');
  expect(codeOf(() => module.encodeWitnessWithProfile('referenced', publicKey, signature))).toBe('field_unknown');
  expect(codeOf(() => module.encodeWitnessWithProfile('inline', null, signature))).toBe('field_missing');
  expect(codeOf(() => module.encodeWitnessWithProfile('other' as 'inline', null, signature))).toBe(
    'unsupported_profile',
  );
});

test('staking operations: the witness of the owner follows those of the inputs, and a possession is proven', () => {
  const root = module.WalletRoot.fromEntropy(entropy, '', 'development');
  const owner = payment.address;
  const [INDEX, spent] = [2_147_483_647, payment.spent];
  const key = root.derivePublicKey(0, 'receive', INDEX);
  const endpoint = `01${'00'.repeat(32)}00`;
  const data = {
    consensus_key: key,
    possession: root.signPossession(0, INDEX, owner, MANIFEST),
    owner_address: owner,
    reward_address: owner,
    amount: '10000000000000',
    commission_bps: '500',
    endpoint_hex: endpoint,
  };
  const bodyOf = (more: object) =>
    module.encodeTransactionBody(
      requestOf(module, { operation: { type: 'register', data: { ...data, ...more } } }),
      MANIFEST,
    );
  const rich = spent.replace('500000000', '10000500000000');
  const wireOf = (body: string) => {
    const inputs = root.sign(0, 'receive', 0, module.spendMessage(body, 0, rich, MANIFEST), true);
    const operation = root.sign(0, 'receive', 0, module.operationMessage(body, MANIFEST), false);
    const witnesses = [inputs, operation].map((signature) => module.encodeWitness(payment.publicKey, signature));
    return module.assembleTransaction(body, JSON.stringify(witnesses), MANIFEST);
  };
  const wire = wireOf(bodyOf({}));
  expect(read(module.verifyTransaction(wire, `[${rich}]`, owner, MANIFEST)).operation).toEqual({
    type: 'register',
    data,
  });
  expect(codeOf(() => module.verifyTransaction(wire, `[${rich}]`, null, MANIFEST))).toBe('field_missing');
  const burn = module.burnAddress('development');
  expect(codeOf(() => module.verifyTransaction(wire, `[${rich}]`, burn, MANIFEST))).toBe('witness_key_mismatch');
  const lying = wireOf(bodyOf({ possession: payment.signature }));
  expect(codeOf(() => module.verifyTransaction(lying, `[${rich}]`, owner, MANIFEST))).toBe('operation_proof_invalid');
  expect(codeOf(() => module.verifyTransaction(payment.wire, payment.spends, owner, MANIFEST))).toBe(
    'operation_missing',
  );
  expect(codeOf(() => module.operationMessage(payment.body, MANIFEST))).toBe('operation_missing');
  const message = possessionMessage(
    fromHex('ab'.repeat(48)),
    keyAddressPayload(fromHex(payment.publicKey)),
    fromHex(key),
  );
  expect(module.possessionMessage(key, owner, MANIFEST)).toBe(toHex(message));
  expect(verifySignature(fromHex(key), message, fromHex(data.possession))).toBe(true);
  // A consensus key is no address, and an address no consensus key.
  expect(codeOf(() => root.sign(0, 'receive', INDEX, 'ab'.repeat(48), true))).toBe('key_index');
  expect(codeOf(() => root.signPossession(0, 0, owner, MANIFEST))).toBe('key_index');
  root.free();
});

test('text: addresses, links, amounts', () => {
  const { address } = payment;
  expect(read(module.parseAddress(address))).toMatchObject({ network: 'development', kind: 'key' });
  expect(codeOf(() => module.parseAddress(address, 'mainnet'))).toBe('address_network');
  expect(read(module.parseAddress(module.burnAddress('mainnet'), 'mainnet'))).toMatchObject({ kind: 'burn' });
  expect([module.parseAmount('1.25'), module.formatAmount('125000000')]).toEqual(['125000000', '1.25000000']);
  for (const { uri, request } of vectors.payment_uris.good) expect(read(module.parsePaymentUri(uri))).toEqual(request);
  for (const { uri, code } of vectors.payment_uris.bad)
    expect([uri, codeOf(() => module.parsePaymentUri(uri))]).toEqual([uri, code]);
});

test('fingerprints and payloads per recipient are those of the vectors', () => {
  for (const { entropy: of, network, fingerprint } of vectors.fingerprints) {
    const root = module.WalletRoot.fromEntropy(of, '', network as 'development');
    expect(root.fingerprint()).toBe(fingerprint);
    root.free();
  }
  for (const { payloads, payload_hex } of vectors.recipient_payloads.good) {
    expect(module.encodeRecipientPayloads(JSON.stringify(payloads))).toBe(payload_hex);
    expect(read(module.decodeRecipientPayloads(payload_hex))).toEqual(payloads);
  }
  for (const { payload_hex, code } of vectors.recipient_payloads.bad)
    expect([payload_hex, codeOf(() => module.decodeRecipientPayloads(payload_hex))]).toEqual([payload_hex, code]);
});

test('no function of the module gives a number: every integer of its documents is decimal text', () => {
  const { calls, free } = callsOf(module);
  let documents = 0;
  for (const { name, work, good } of calls) {
    // A wallet file is a format of its own, with the settings of its key derivation; the made-up answer is refused.
    if (name === 'sealWalletFile' || name === 'verifyServiceResponse') continue;
    const answer = work(...(good as never[]));
    if (!isJson(answer)) continue;
    documents++;
    const numbers = placesOf(read(answer)).filter((path) => {
      const value = path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], read(answer));
      return typeof value === 'number';
    });
    expect(numbers, name).toEqual([]);
  }
  expect(documents).toBeGreaterThan(15);
  free();
  expect(read(module.addressProofRequest(payment.address, 'development', 1000, '2000'))).toMatchObject({
    version: '1',
    created_millis: '1000',
    expires_millis: '2000',
  });
});

test('ownership: either side asks and answers, the wallet’s code and the module', () => {
  const root = module.WalletRoot.fromEntropy(entropy, '', 'development');
  const request = module.addressProofRequest(payment.address, 'development', 1000, '2000', 'a test');
  const proof = root.proveAddress(0, 'receive', 0, request);
  const edge = { network: 'development', nowMillis: 1500, verify: verifySignature } as const;
  expect(verifyAddressProof(plainRequest(read<WireRequest>(request)), read(proof), edge)).toEqual({
    valid: true,
    address: payment.address,
  });
  expect(read(module.verifyAddressProof(request, proof, 'development', 1500))).toEqual({ address: payment.address });
  expect(codeOf(() => root.proveAddress(0, 'receive', 1, request))).toBe('address_not_this_key');
  const other = module.addressProofRequest(payment.address, 'development', 1000, 2000);
  expect(codeOf(() => module.verifyAddressProof(other, proof, 'development', 1500))).toBe('other_challenge');
  expect(codeOf(() => module.verifyAddressProof(request.replace('a test', 'b test'), proof, 'development', 1500))).toBe(
    'wrong_signature',
  );
  const multisig = formatAddress(
    Uint8Array.from({ length: 49 }, (_, i) => (i === 0 ? 1 : 7)),
    'development',
  );
  expect(codeOf(() => module.addressProofRequest(multisig, 'development', 1, 2))).toBe('address_kind');
  expect(
    codeOf(() => module.verifyAddressProof(request.replace(payment.address, multisig), proof, 'development', 1500)),
  ).toBe('not_a_key_address');
  const words = addressVerificationWords(keyAddressPayload(fromHex(payment.publicKey)));
  expect(read(module.addressVerificationWords(payment.address))).toEqual(words);
  root.free();
});

test('wallet files: each program opens what the other sealed', async () => {
  for (const passphrase of ['', 'kein Geld für Diebe "\\ 🦊']) {
    const bytes = randomBytes(32);
    const sealed = await sealWalletFile({ entropy: bytes, passphrase }, 'testnet', 'pässword', 10);
    const root = module.openWalletFile(sealed, 'pässword');
    const same = module.WalletRoot.fromMnemonic(phraseOfEntropy(bytes), passphrase, 'testnet');
    expect([root.network, root.fingerprint()]).toEqual(['testnet', same.fingerprint()]);
    const opened = await openWalletFile(module.sealWalletFile(root, 'another', '10'), 'another');
    expect([opened.network, toHex(opened.secrets.entropy), opened.secrets.passphrase]).toEqual([
      'testnet',
      toHex(bytes),
      passphrase,
    ]);
    expect(module.mnemonicEntropy(module.mnemonicFromEntropy(toHex(bytes)))).toBe(toHex(bytes));
    root.free();
    same.free();
  }
  const dear = (await sealWalletFile({ entropy: randomBytes(32), passphrase: '' }, 'testnet', 'x', 10)).replace(
    '"log2_n": 10',
    '"log2_n": 19',
  );
  expect(codeOf(() => module.openWalletFile(dear, 'x'))).toBe('file_cost');
});

test('signed answers of a node', async () => {
  const key = signingKey(randomBytes(32));
  const [method, target, chain] = ['GET', '/v1/chain/head', 'ef'.repeat(48)];
  const [nonce, body] = [hex(32), utf8('{"height":5}')];
  const envelope = {
    method,
    target,
    requestBody: new Uint8Array(0),
    status: 200,
    answerBody: body,
    nonce: fromHex(nonce),
    chainId: fromHex(chain),
    finalizedHeight: 5,
  };
  const signature = toHex(await signMessage(key, answerMessage(envelope)));
  const identity = toHex(serviceIdentity(key.publicKey));
  const headers = {
    'X-SVC-Envelope-Version': '1',
    'x-svc-node-identity': identity,
    'x-svc-request-nonce': nonce,
    'x-svc-tip-height': '5',
    'x-svc-signature': signature,
  };
  const response = (more: object = {}) =>
    JSON.stringify({
      method,
      target,
      request_body_hex: '',
      status: '200',
      response_body_hex: toHex(body),
      nonce,
      headers,
      ...more,
    });
  const judged = (text: string, pinned = identity, of = chain) =>
    module.verifyServiceResponse(text, toHex(key.publicKey), pinned, of);
  expect(module.serviceIdentityForPublicKey(toHex(key.publicKey))).toBe(identity);
  expect(read(judged(response()))).toEqual({ finalized_height: '5' });
  expect(codeOf(() => judged(response({ status: '201' })))).toBe('answer_signature');
  expect(codeOf(() => judged(response({ response_body_hex: '00' })))).toBe('answer_signature');
  expect(codeOf(() => judged(response(), identity, 'ee'.repeat(48)))).toBe('answer_signature');
  expect(codeOf(() => judged(response(), 'ee'.repeat(48)))).toBe('answer_identity');
  expect(codeOf(() => judged(response({ nonce: hex(32) })))).toBe('answer_nonce');
  expect(codeOf(() => judged(response({ headers: {} })))).toBe('answer_unsigned');
  expect(() => judged(response({ headers: {} }))).toThrow(/send x-svc-request-nonce/);
  expect(() => judged(JSON.parse(response()))).toThrow('response must be JSON text');
  expect(codeOf(() => judged(response({ headers: { ...headers, 'X-SVC-Envelope-Version': '2' } })))).toBe(
    'answer_envelope',
  );
});

/**
 * Random transactions through the module, the wallet's and the node's code: same bytes, and for whole and damaged ones the same verdicts. The node's part is what it does
 * with a submission before it looks into its ledger.
 */
import { beforeAll, expect, test } from 'vitest';
import { type ReadTransaction, readTransaction } from '../../node/ledger/work-block.ts';
import { VerifiedTransactions } from '../../node/mempool/witness-check.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { bondedBy, encodeOperation } from '../../protocol/staking/operation.ts';
import { minimumFee } from '../../protocol/transactions/fee.ts';
import {
  encodeTransaction,
  encodeTransactionBody,
  type Output,
  type SingleWitness,
  spendMessage,
  type TransactionBody,
  transactionId,
} from '../../protocol/transactions/transaction.ts';
import { WalletRoot as OwnRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { type SigningKey, signingKey } from '../../wallet/keys/signing.ts';
import { repeats, seed } from '../level.ts';
import { randomBytesOf } from '../random.ts';
import { codeOf, loadModule, type Module } from './load.ts';
import { manifestOf } from './payment.ts';

const CHAIN = 'ab'.repeat(48);
const MANIFEST = manifestOf({ chain_id: CHAIN });
const KEYS = 4;
const randomBytes = randomBytesOf(seed);
const entropy = randomBytes(32);
let module: Module;
let keys: SigningKey[] = [];

beforeAll(async () => {
  module = await loadModule();
  const root = new OwnRoot(phraseOfEntropy(entropy), '', 'development');
  keys = Array.from({ length: KEYS }, (_, index) => signingKey(root.seed({ account: 0, branch: 'receive', index })));
});

const below = (limit: number): number => randomBytes(4).readUInt32LE() % limit;
const some = <T>(most: number, make: (i: number) => T): T[] =>
  Array.from({ length: below(most + 1) }, (_, i) => make(i));
const payloadOf = (key: number): Uint8Array<ArrayBuffer> => keyAddressPayload((keys[key] as SigningKey).publicKey);

type Draft = {
  readonly body: TransactionBody;
  readonly spends: readonly Output[];
  readonly signers: readonly number[];
  readonly owner: number;
};

function randomDraft(): Draft {
  const owner = below(KEYS);
  const inputs = Array.from({ length: 1 + below(3) }, () => ({
    transactionId: new Uint8Array(randomBytes(48)),
    outputIndex: below(10),
  }));
  const outputs = some(4, () => ({ address: payloadOf(below(KEYS)), amount: 1n + BigInt(below(1_000_000)) }));
  const bond = {
    name: 'bond',
    validator: new Uint8Array(randomBytes(48)),
    owner: payloadOf(owner),
    rewardAddress: payloadOf(0),
    amount: 10_000_000_000n,
  } as const;
  const from = below(1000);
  const body = {
    chainId: fromHex(CHAIN),
    validFromHeight: from,
    validUntilHeight: from + below(1000),
    inputs,
    outputs,
    payload: below(2) === 0 ? new Uint8Array(0) : Uint8Array.of(0, ...randomBytes(below(50))),
    ...(below(4) === 0 && { operation: encodeOperation(bond) }),
  };
  const signers = inputs.map(() => below(KEYS));
  // Now and then too little, or hardly enough.
  const each = below(3) === 0 ? BigInt(below(200_000)) + 1n : 20_000_000_000n;
  return { body, spends: signers.map((key) => ({ address: payloadOf(key), amount: each })), signers, owner };
}

function requestOf(
  { chainId: _, inputs, outputs, payload, operation, ...heights }: TransactionBody,
  { owner }: Draft,
): string {
  return JSON.stringify({
    valid_from_height: String(heights.validFromHeight),
    valid_until_height: String(heights.validUntilHeight),
    inputs: inputs.map((input) => ({
      transaction_id: toHex(input.transactionId),
      output_index: String(input.outputIndex),
    })),
    outputs: outputs.map(({ address, amount }) => ({
      address: formatAddress(address, 'development'),
      amount: amount.toString(),
    })),
    payload_hex: toHex(payload),
    ...(operation && {
      operation: {
        type: 'bond',
        data: {
          validator_id: toHex(operation.data.subarray(0, 48)),
          owner_address: formatAddress(payloadOf(owner), 'development'),
          reward_address: formatAddress(payloadOf(0), 'development'),
          amount: '10000000000',
        },
      },
    }),
  });
}

const documentOf = (spends: readonly Output[]): string =>
  JSON.stringify(
    spends.map(({ address, amount }) => ({
      address: formatAddress(address, 'development'),
      amount: amount.toString(),
    })),
  );

/** What the node says of a submission whose inputs it knows. */
function nodeVerdict(wire: Bytes, spends: readonly Output[], owner: Bytes): string {
  let read: ReadTransaction;
  try {
    read = readTransaction(wire, fromHex(CHAIN));
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return error.code;
  }
  if (read.body.inputs.length !== spends.length) return 'out_of_range';
  const paidIn = spends.reduce((sum, { amount }) => sum + amount, 0n);
  const paidOut = read.body.outputs.reduce((sum, { amount }) => sum + amount, bondedBy(read.operation));
  if (paidOut > paidIn) return 'amounts_exceed_inputs';
  if (paidIn - paidOut < minimumFee(read.mass)) return 'fee_below_minimum';
  const unspent = spends.map((output) => ({ ...output, source: 'regular', height: 0 }) as never);
  const registered = (address: Bytes) =>
    keys.map(({ publicKey }) => publicKey).find((key) => toHex(keyAddressPayload(key)) === toHex(address));
  const signers = read.operation && { signer: { address: owner }, proofs: [] };
  const verdict = new VerifiedTransactions().check(read, unspent, registered, signers);
  return verdict === 'valid' ? 'nothing refused' : verdict;
}

test('bodies, identifiers, messages, quotes and wire forms have the same bytes', () => {
  for (let i = 0; i < repeats({ quick: 20, full: 150, deep: 20_000 }); i++) {
    const draft = randomDraft();
    const { body, spends } = draft;
    const own = encodeTransactionBody(body);
    const encoded = module.encodeTransactionBody(requestOf(body, draft), MANIFEST);
    expect(encoded).toBe(toHex(own));
    expect(module.transactionId(encoded, MANIFEST)).toBe(toHex(transactionId(body)));
    const spent = JSON.parse(documentOf(spends)) as object[];
    for (const [index, output] of spends.entries())
      expect(module.spendMessage(encoded, index, JSON.stringify(spent[index]), MANIFEST)).toBe(
        toHex(spendMessage(own, index, output)),
      );
    const { valid_from_height, inputs, outputs, payload_hex, operation, valid_until_height } = JSON.parse(
      module.inspectTransactionBody(encoded, MANIFEST),
    );
    const again = JSON.stringify({ valid_from_height, valid_until_height, inputs, outputs, payload_hex, operation });
    expect(module.encodeTransactionBody(again, MANIFEST)).toBe(encoded);
    const witnesses = Array.from({ length: body.inputs.length + (body.operation ? 1 : 0) }, (): SingleWitness => {
      const signature = new Uint8Array(randomBytes(3309));
      return below(2) === 0
        ? { profile: 'referenced', signature }
        : { profile: 'inline', publicKey: new Uint8Array(randomBytes(1952)), signature };
    });
    const words = witnesses.map((witness) =>
      module.encodeWitnessWithProfile(
        witness.profile,
        witness.profile === 'inline' ? toHex(witness.publicKey) : null,
        toHex(witness.signature),
      ),
    );
    const wire = encodeTransaction({ body, witnesses });
    expect(module.assembleTransaction(encoded, JSON.stringify(words), MANIFEST)).toBe(toHex(wire));
    const { mass } = readTransaction(wire, fromHex(CHAIN));
    const quote = { wire_bytes: String(wire.length), mass: String(mass), minimum_fee: minimumFee(mass).toString() };
    const profiles = JSON.stringify(witnesses.map(({ profile }) => profile));
    expect(JSON.parse(module.quoteTransactionWithInputProfiles(encoded, profiles, MANIFEST))).toEqual(quote);
    expect(JSON.parse(module.quoteTransactionWithWitnesses(encoded, JSON.stringify(words), MANIFEST))).toEqual(quote);
  }
});

test('whole and damaged transactions have the same verdict here and at the node', () => {
  const root = module.WalletRoot.fromEntropy(toHex(entropy), '', 'development');
  const verdicts = new Map<string, number>();
  for (let i = 0; i < repeats({ quick: 6, full: 40, deep: 5000 }); i++) {
    const draft = randomDraft();
    const { body, spends, signers, owner } = draft;
    const encoded = module.encodeTransactionBody(requestOf(body, draft), MANIFEST);
    const spent = JSON.parse(documentOf(spends)) as object[];
    const signed = signers.map(
      (key, index) =>
        [
          key,
          root.sign(
            0,
            'receive',
            key,
            module.spendMessage(encoded, index, JSON.stringify(spent[index]), MANIFEST),
            true,
          ),
        ] as const,
    );
    if (body.operation)
      signed.push([owner, root.sign(0, 'receive', owner, module.operationMessage(encoded, MANIFEST), false)]);
    const words = signed.map(([key, signature]) => {
      const publicKey = toHex((keys[below(20) === 0 ? below(KEYS) : key] as SigningKey).publicKey);
      return below(3) === 0
        ? module.encodeWitnessWithProfile('referenced', null, signature)
        : module.encodeWitness(publicKey, signature);
    });
    const wire = fromHex(module.assembleTransaction(encoded, JSON.stringify(words), MANIFEST));
    for (const damaged of [wire, ...Array.from({ length: 4 }, () => damage(wire))]) {
      const of = formatAddress(payloadOf(owner), 'development');
      // The module gets the owner of the operation, and refuses one where there is no operation.
      const isStaking = (() => {
        try {
          return readTransaction(damaged, fromHex(CHAIN)).operation !== undefined;
        } catch {
          return body.operation !== undefined;
        }
      })();
      const known = JSON.stringify(keys.map(({ publicKey }) => toHex(publicKey)));
      const here = codeOf(() =>
        module.verifyTransactionWithReferencedKeys(
          toHex(damaged),
          documentOf(spends),
          isStaking ? of : null,
          known,
          MANIFEST,
        ),
      );
      const node = nodeVerdict(damaged, spends, payloadOf(owner));
      // A bond that names another owner than the given one has no owner to sign for it.
      if (!(isStaking && here === 'witness_key_mismatch')) expect(here).toBe(node);
      verdicts.set(node, (verdicts.get(node) ?? 0) + 1);
    }
  }
  expect(verdicts.get('nothing refused')).toBeGreaterThan(0);
  expect(verdicts.size).toBeGreaterThan(3);
  root.free();
});

function damage(wire: Bytes): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(wire);
  const kind = below(5);
  if (kind === 0) return bytes.slice(0, below(bytes.length));
  if (kind === 1) return Uint8Array.from([...bytes, ...randomBytes(1 + below(8))]);
  // Half of the rest in the body, where every byte means something.
  const at = kind === 2 ? below(bytes.length) : below(Math.min(bytes.length, 300));
  bytes[at] = (bytes[at] as number) ^ (1 << below(8));
  return bytes;
}

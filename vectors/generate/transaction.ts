/** Transaction vectors: bodies, identifiers, messages to sign, wire forms, mass and fee, and refused bytes. */
import { burnAddressPayload } from '../../protocol/address.ts';
import { concat, toHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { encodeOperation } from '../../protocol/staking/operation.ts';
import { massOf, minimumFee, shapeOf } from '../../protocol/transactions/fee.ts';
import {
  encodeTransaction,
  encodeTransactionBody,
  PUBLIC_KEY_BYTES,
  SIGNATURE_BYTES,
  type SingleWitness,
  spendMessage,
  type TransactionBody,
  transactionId,
  type Witness,
  witnessCount,
} from '../../protocol/transactions/transaction.ts';
import { pattern } from './pattern.ts';

const chainId = id(LABELS.chain, utf8('vectors'));
const address = (i: number) => concat(Uint8Array.of(0), pattern(`recipient/${i}`, 48));

const bodies: TransactionBody[] = [
  {
    chainId,
    validFromHeight: 0,
    validUntilHeight: 1000,
    inputs: [{ transactionId: pattern('input/0', 48), outputIndex: 0 }],
    outputs: [{ address: address(0), amount: 1n }],
    payload: new Uint8Array(0),
  },
  {
    chainId,
    validFromHeight: 7,
    validUntilHeight: 5_000_000_000,
    inputs: Array.from({ length: 8 }, (_, i) => ({ transactionId: pattern(`input/${i}`, 48), outputIndex: i * 1000 })),
    outputs: Array.from({ length: 8 }, (_, i) => ({ address: address(i), amount: 10n ** BigInt(i + 1) })),
    payload: concat(Uint8Array.of(0), utf8('invoice 42 ä')),
  },
  {
    chainId,
    validFromHeight: 1,
    validUntilHeight: 1,
    inputs: [{ transactionId: pattern('input/9', 48), outputIndex: 4_294_967_295 }],
    outputs: [{ address: burnAddressPayload(), amount: 20_000_000_000_000_000n }],
    payload: new Uint8Array(0),
    operation: encodeOperation({ name: 'withdraw', position: pattern('operation', 48) }),
  },
];

const witnessOf = (profile: SingleWitness['profile'], i: number): Witness =>
  profile === 'inline'
    ? { profile, publicKey: pattern(`public/${i}`, PUBLIC_KEY_BYTES), signature: pattern(`sig/${i}`, SIGNATURE_BYTES) }
    : { profile, signature: pattern(`sig/${i}`, SIGNATURE_BYTES) };

export function sampleTransactions() {
  return bodies.map((body, i) => {
    const profiles = Array.from({ length: witnessCount(body) }, (_, k) =>
      (i + k) % 2 === 0 ? ('inline' as const) : ('referenced' as const),
    );
    return { body, profiles, wire: encodeTransaction({ body, witnesses: profiles.map(witnessOf) }) };
  });
}

export function transactionVectors(): unknown {
  return sampleTransactions().map(({ body, profiles, wire }) => {
    const bytes = encodeTransactionBody(body);
    const spent = { address: address(7), amount: 123_456_789n };
    const mass = massOf(shapeOf(body, profiles));
    return {
      chain_id: toHex(body.chainId),
      valid_from_height: body.validFromHeight,
      valid_until_height: body.validUntilHeight,
      inputs: body.inputs.map((i) => ({ transaction_id: toHex(i.transactionId), output_index: i.outputIndex })),
      outputs: body.outputs.map((o) => ({ address: toHex(o.address), amount: o.amount.toString() })),
      payload: toHex(body.payload),
      operation: body.operation === undefined ? null : { type: body.operation.type, data: toHex(body.operation.data) },
      body: toHex(bytes),
      transaction_id: toHex(transactionId(body)),
      spent: { address: toHex(spent.address), amount: spent.amount.toString() },
      spend_messages: body.inputs.map((_, index) => toHex(spendMessage(bytes, index, spent))),
      witness_profiles: profiles,
      wire: toHex(wire),
      mass,
      minimum_fee: minimumFee(mass).toString(),
    };
  });
}

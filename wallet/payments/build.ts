/**
 * Builds a signed transaction from a plan (specification: Payment build order): body, spend message per input,
 * signatures, wire form, and a check of the finished bytes against the plan before they may leave the program.
 */
import { keyAddressPayload, parseAddress } from '../../protocol/address.ts';
import { type Bytes, concat, equalBytes, fromHex, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import {
  decodeTransaction,
  encodeTransaction,
  encodeTransactionBody,
  type Output,
  operationMessage,
  type SingleWitness,
  spendMessage,
  type TransactionBody,
  transactionId,
} from '../../protocol/transactions/transaction.ts';
import { checkSignature, type SigningKey, signMessage } from '../keys/signing.ts';
import { type OperationRecord, type OwnedOutput, outpointOf, type Recipient } from '../state/records.ts';
import type { Profile } from './selection.ts';

export type Draft = {
  readonly inputs: readonly OwnedOutput[];
  readonly profiles: readonly Profile[];
  readonly recipients: readonly Recipient[];
  readonly change: bigint;
  readonly changeAddress: string;
  readonly payload: Bytes;
  readonly validFromHeight: number;
  readonly validUntilHeight: number;
  readonly operation?: { readonly record: OperationRecord; readonly profile: Profile };
};

export type Terms = { readonly network: NetworkName; readonly chainId: Bytes };

function bodyOf(draft: Draft, terms: Terms): TransactionBody {
  const outputs: Output[] = draft.recipients.map(({ to, amount }) => ({
    address: parseAddress(to, terms.network).payload,
    amount,
  }));
  if (draft.change > 0n)
    outputs.push({ address: parseAddress(draft.changeAddress, terms.network).payload, amount: draft.change });
  return {
    chainId: terms.chainId,
    validFromHeight: draft.validFromHeight,
    validUntilHeight: draft.validUntilHeight,
    inputs: draft.inputs.map(({ key }) => {
      const { transaction, output } = outpointOf(key);
      return { transactionId: fromHex(transaction), outputIndex: output };
    }),
    outputs,
    payload: draft.payload,
    ...(draft.operation && {
      operation: { type: draft.operation.record.type, data: fromHex(draft.operation.record.dataHex) },
    }),
  };
}

/** A signature that a draft needs: one per input, then that of its operation's owner. */
type Need = { readonly what: string; readonly address: string; readonly profile: Profile; readonly message: Bytes };

function needsOf(draft: Draft, bodyBytes: Bytes, terms: Terms): Need[] {
  const needs = draft.inputs.map((input, i): Need => {
    const spent = { address: parseAddress(input.address, terms.network).payload, amount: input.amount };
    const message = spendMessage(bodyBytes, i, spent);
    return { what: `input ${i}`, address: input.address, profile: draft.profiles[i] as Profile, message };
  });
  if (draft.operation === undefined) return needs;
  const { record, profile } = draft.operation;
  return [...needs, { what: 'the operation', address: record.owner, profile, message: operationMessage(bodyBytes) }];
}

export type Signed = { readonly transaction: string; readonly wire: Uint8Array<ArrayBuffer> };

export async function signDraft(draft: Draft, terms: Terms, keyOf: (address: string) => SigningKey): Promise<Signed> {
  const body = bodyOf(draft, terms);
  const bodyBytes = encodeTransactionBody(body);
  const witnesses = await Promise.all(
    needsOf(draft, bodyBytes, terms).map(async ({ address, profile, message }): Promise<SingleWitness> => {
      const key = keyOf(address);
      const signature = await signMessage(key, message);
      return profile === 'inline' ? { profile, publicKey: key.publicKey, signature } : { profile, signature };
    }),
  );
  const wire = encodeTransaction({ body, witnesses });
  await verifyDraft(wire, draft, terms, (address) => keyOf(address).publicKey);
  return { transaction: toHex(transactionId(body)), wire };
}

/** Decodes the wire form again. A difference is a bug or a hardware fault: nothing may be sent. */
async function verifyDraft(
  wire: Bytes,
  draft: Draft,
  terms: Terms,
  publicKeyOf: (address: string) => Bytes,
): Promise<void> {
  const { body, witnesses } = decodeTransaction(wire, terms.chainId);
  const bodyBytes = encodeTransactionBody(body);
  if (!equalBytes(bodyBytes, encodeTransactionBody(bodyOf(draft, terms))))
    throw new Error('the signed transaction differs from its plan');
  const check = async ({ what, address, message }: Need, i: number): Promise<void> => {
    const witness = witnesses[i] as SingleWitness;
    const publicKey = witness.profile === 'inline' ? witness.publicKey : publicKeyOf(address);
    if (!equalBytes(keyAddressPayload(publicKey), parseAddress(address, terms.network).payload))
      throw new Error(`${what} is signed by another key`);
    if (!(await checkSignature(publicKey, message, witness.signature)))
      throw new Error(`the signature of ${what} does not verify`);
  };
  await Promise.all(needsOf(draft, bodyBytes, terms).map(check));
}

/** Kind byte 0 and UTF-8: a text that the recipient sees. */
export const textPayload = (text: string): Uint8Array<ArrayBuffer> =>
  text === '' ? new Uint8Array(0) : concat(Uint8Array.of(0), new TextEncoder().encode(text));

/** How the wallet shows multisig addresses and packages: amounts in coins, members by their numbers in the descriptor. */
import { formatAddress } from '../../protocol/address.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { type Bytes, equalBytes, fromUtf8, toHex } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { attempt } from '../../protocol/errors.ts';
import { operationDocument } from '../../protocol/staking/operation-document.ts';
import { minimumFee } from '../../protocol/transactions/fee.ts';
import type { MultisigDescriptor } from '../../protocol/transactions/multisig.ts';
import {
  type MultisigPackage,
  missingSignatures,
  packageFee,
  packageMass,
} from '../../protocol/transactions/multisig-package.ts';
import { PAYLOAD_KINDS } from '../../protocol/transactions/transaction.ts';
import { descriptorOf, packageHex } from '../multisig/multisig.ts';
import type { MultisigRecord } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import type { Answer } from './method.ts';

export function watchedGroup(wallet: Wallet, address: string): MultisigRecord {
  const record = wallet.multisig.watched(address);
  if (record === undefined)
    throw new WalletError('multisig_unknown', 'this is no multisig address that this wallet watches', {
      field: 'address',
    });
  return record;
}

/** As the protocol module writes it. */
export const descriptorDocument = ({ threshold, keys }: MultisigDescriptor) => ({
  threshold: String(threshold),
  members: keys.map((key) => toHex(key)),
});

export function groupDocument(wallet: Wallet, record: MultisigRecord): Answer {
  const descriptor = descriptorOf(record);
  return {
    address: record.address,
    label: record.label,
    threshold: descriptor.threshold,
    members: descriptor.keys.length,
    own_members: wallet.multisig.ownMembers(descriptor),
    descriptor: descriptorDocument(descriptor),
    created_millis: record.createdMillis,
  };
}

export async function groupBalance(wallet: Wallet, record: MultisigRecord): Promise<Answer> {
  const { total, outputs, reserved, unconfirmed, indexedHeight } = await wallet.multisig.balance(record);
  return {
    balance: formatCoins(total),
    spendable: formatCoins(total > reserved ? total - reserved : 0n),
    reserved: formatCoins(reserved),
    unconfirmed: formatCoins(unconfirmed),
    outputs,
    indexed_height: indexedHeight,
  };
}

export async function groupHistory(
  wallet: Wallet,
  record: MultisigRecord,
  cursor: string | undefined,
  limit: number,
): Promise<Answer> {
  const page = await wallet.multisig.history(record, cursor, Math.min(limit, 256));
  return {
    entries: page.events.map(({ finalized_height, kind, amount, transaction_id, outpoint }) => ({
      height: finalized_height,
      transaction: transaction_id,
      output: outpoint.output_index,
      kind,
      amount: formatCoins(BigInt(amount)),
    })),
    indexed_height: page.indexed_height,
    ...(page.next_cursor === undefined ? {} : { next_cursor: page.next_cursor }),
  };
}

function payloadText(payload: Bytes): string | null {
  if (payload[0] !== PAYLOAD_KINDS.text) return null;
  const text = attempt(() => fromUtf8(payload.subarray(1)));
  return text.ok ? text.value : null;
}

/** The data that a person must see before signing (specification: Rule 6). */
export function reviewDocument(wallet: Wallet, of: MultisigPackage): Answer {
  const { body, amounts, address, descriptor, network, signed } = of;
  const { manifest, finalizedHeight } = wallet.follower.node;
  const operation = body.operation && operationDocument(body.operation, network);
  return {
    address: formatAddress(address, network),
    watched: wallet.multisig.watched(formatAddress(address, network)) !== undefined,
    transaction: toHex(id(LABELS.transaction, of.bodyBytes)),
    recipients: body.outputs.map((output) => ({
      to: formatAddress(output.address, network),
      amount: formatCoins(output.amount),
      change: equalBytes(output.address, address),
    })),
    fee: formatCoins(packageFee(of)),
    minimum_fee: manifest === null ? null : formatCoins(minimumFee(packageMass(of), BigInt(manifest.min_fee_per_mass))),
    mass: packageMass(of),
    inputs: body.inputs.map(({ transactionId, outputIndex }, i) => ({
      transaction: toHex(transactionId),
      output: outputIndex,
      amount: formatCoins(amounts[i] as bigint),
    })),
    valid_from_height: body.validFromHeight,
    valid_until_height: body.validUntilHeight,
    cuts_left: manifest === null ? null : Math.max(0, body.validUntilHeight - finalizedHeight),
    payload_text: payloadText(body.payload),
    payload_hex: toHex(body.payload),
    operation: operation?.type ?? null,
    operation_data: operation?.data ?? null,
    descriptor: descriptorDocument(descriptor),
    template_digest: toHex(of.digest),
    witness_profile: of.profile,
    signed_by: signed.map(({ member }) => member),
    own_members: wallet.multisig.ownMembers(descriptor),
    missing_signatures: missingSignatures(of),
  };
}

export const packageDocument = (wallet: Wallet, of: MultisigPackage): Answer => ({
  package: packageHex(of),
  ...reviewDocument(wallet, of),
});

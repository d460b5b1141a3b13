/** Payments in the mempool: which of them concern an address, and the cursor of a page of them. */

import type { PendingPayment } from '../../protocol/api/documents.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import type { MempoolView, PendingTransaction } from '../full-node.ts';
import { asBuffer } from '../index/index-keys.ts';
import type { ApiContext } from './api-context.ts';

/** Four bytes of an address: enough to skip nearly all other addresses without formatting them. */
export const shortName = (payload: Bytes): number =>
  ((payload[1] as number) << 24) |
  ((payload[2] as number) << 16) |
  ((payload[3] as number) << 8) |
  (payload[4] as number);

/** Whether a transaction may be about one of the addresses with these short names. Called for every waiting transaction. */
export const mayConcern = ({ body, spends }: PendingTransaction, names: ReadonlySet<number>): boolean => {
  for (const { address } of body.outputs) if (names.has(shortName(address))) return true;
  for (const { address } of spends) if (names.has(shortName(address))) return true;
  return false;
};

export const PENDING_PLACE_BYTES = 8 + ID_BYTES;

export function pendingPlace({ seenMillis, id }: PendingTransaction): Buffer {
  const bytes = Buffer.alloc(PENDING_PLACE_BYTES);
  bytes.writeBigUInt64BE(BigInt(seenMillis), 0);
  bytes.set(id, 8);
  return bytes;
}

/**
 * Pending transactions after a cursor. The mempool lists in the order of arrival. If the cursor's transaction has left,
 * all of its millisecond are repeated: better twice than not at all.
 */
export function* waitingAfter(
  mempool: Pick<MempoolView, 'list' | 'get'>,
  place: Bytes | undefined,
): Iterable<PendingTransaction> {
  const millis = place === undefined ? 0 : Number(asBuffer(place).readBigUInt64BE(0));
  const id = place?.subarray(8);
  let isBehind = id === undefined || mempool.get(id) === undefined;
  for (const transaction of mempool.list()) {
    if (transaction.seenMillis < millis) continue;
    if (isBehind || transaction.seenMillis > millis) yield transaction;
    else isBehind = equalBytes(transaction.id, id as Bytes);
  }
}

export function pendingOf(
  context: ApiContext,
  transaction: PendingTransaction,
  wanted: Map<string, string>,
): PendingPayment[] {
  const own = (payload: Bytes): string | undefined => wanted.get(nativeHex(payload));
  const concerns = ({ address }: { readonly address: Bytes }): boolean => own(address) !== undefined;
  // Reading its state takes a read of the store: done only for real matches, because short names can be made to
  // collide.
  if (!transaction.body.outputs.some(concerns) && !transaction.spends.some(concerns)) return [];
  const status = context.node.chain.transactionStatus(transaction.id);
  const lifecycle =
    status?.lifecycle === 'receiving' || status?.lifecycle === 'registered' ? status.lifecycle : 'processing';
  const common = {
    transaction_id: nativeHex(transaction.id),
    lifecycle,
    first_seen_millis: transaction.seenMillis,
  } as const;
  const payments: PendingPayment[] = [];
  transaction.body.outputs.forEach((output, output_index) => {
    const address = own(output.address);
    if (address !== undefined)
      payments.push({
        address,
        direction: 'incoming',
        outpoint: { transaction_id: common.transaction_id, output_index },
        amount: output.amount.toString(),
        ...common,
      });
  });
  for (const spend of transaction.spends) {
    const address = own(spend.address);
    if (address !== undefined)
      payments.push({
        address,
        direction: 'outgoing',
        outpoint: { transaction_id: nativeHex(spend.outpoint.transactionId), output_index: spend.outpoint.outputIndex },
        amount: spend.amount.toString(),
        ...common,
      });
  }
  return payments;
}

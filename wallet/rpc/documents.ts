/**
 * How the wallet shows its records to callers (docs/wallet.md, Results): amounts in coins with 8 decimals, names as the
 * specification writes them.
 */
import { formatCoins } from '../../protocol/amount.ts';
import { fromHex, fromUtf8 } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { isMessengerPayload, MESSENGER_AMOUNT } from '../../protocol/messenger/payload.ts';
import { PAYLOAD_KINDS } from '../../protocol/transactions/transaction.ts';
import { isPayment } from '../chain/cut-effects.ts';
import type { Outcome } from '../payments/answers.ts';
import type { Quote } from '../payments/planning.ts';
import type { Book } from '../state/book.ts';
import {
  type AddressRecord,
  type HistoryEntry,
  type OperationRecord,
  type OutgoingRecord,
  type OwnedOutput,
  outpointOf,
  type RequestRecord,
} from '../state/records.ts';
import { operationFields } from './staking-documents.ts';

type WithOperation = { readonly operation?: OperationRecord | undefined };

type Placed = { readonly output: number; readonly amount: bigint };

/**
 * `payload_text` comes from the sender and must be escaped when shown. Messenger payments have no payload fields. Only payments of one atom are messenger payments (rule 1): callers that
 * ignore those must not lose a larger payment with a messenger payload.
 */
function payloadFields(payloadHex: string, to: Placed | undefined): { payload_text?: string | null; messenger?: true } {
  const payload = fromHex(payloadHex);
  if (to?.output === 0 && to.amount === MESSENGER_AMOUNT && isMessengerPayload(payload)) return { messenger: true };
  if (payload.length === 0 || payload[0] !== PAYLOAD_KINDS.text) return { payload_text: null };
  const text = attempt(() => fromUtf8(payload.subarray(1)));
  return { payload_text: text.ok ? text.value : null };
}

/** In a sent transaction, output 0 is the first recipient. */
const firstOutput = ({ spent, outputs, recipients }: HistoryEntry): Placed | undefined =>
  spent === 0n
    ? outputs.find(({ output }) => output === 0)
    : recipients[0] && { output: 0, amount: recipients[0].amount };

/** Not payments: they were this wallet's before. */
const OWN_MONEY: ReadonlySet<HistoryEntry['kind']> = new Set(['genesis', 'withdrawn']);

export function paymentsOf(entry: HistoryEntry, book: Pick<Book, 'address'>): Record<string, unknown>[] {
  return entry.outputs
    .filter((output) => !OWN_MONEY.has(entry.kind) && isPayment(entry, output))
    .map((output) => ({
      transaction: entry.transaction,
      output: output.output,
      address: output.address,
      label: book.address(output.address)?.label ?? '',
      amount: formatCoins(output.amount),
      height: entry.height,
      source: entry.kind === 'reward' ? 'reward' : 'regular',
      ...payloadFields(entry.payloadHex, output),
      senders: entry.senders,
    }));
}

export const historyDocument = (entry: HistoryEntry): Record<string, unknown> => ({
  height: entry.height,
  transaction: entry.transaction,
  kind: entry.kind,
  amount: formatCoins(entry.received - entry.spent),
  received: formatCoins(entry.received),
  spent: formatCoins(entry.spent),
  fee: entry.fee === null ? null : formatCoins(entry.fee),
  recipients: entry.recipients.map(({ address, amount }) => ({ to: address, amount: formatCoins(amount) })),
  request_id: entry.requestId,
  ...payloadFields(entry.payloadHex, firstOutput(entry)),
});

export const addressDocument = (record: AddressRecord): Record<string, unknown> => ({
  address: record.address,
  label: record.label,
  branch: record.branch,
  index: record.index,
  used: record.used,
  created_millis: record.createdMillis,
});

export const outputDocument = (output: OwnedOutput, reservedFor: string | undefined): Record<string, unknown> => {
  const { transaction, output: index } = outpointOf(output.key);
  return {
    transaction,
    output: index,
    address: output.address,
    amount: formatCoins(output.amount),
    height: output.height,
    source: output.source,
    reserved_for: reservedFor ?? null,
  };
};

export const outgoingDocument = (record: OutgoingRecord): Record<string, unknown> => ({
  transaction: record.transaction,
  request_id: record.requestId,
  purpose: record.purpose,
  state: record.state,
  recipients: record.recipients.map(({ to, amount }) => ({ to, amount: formatCoins(amount) })),
  change: formatCoins(record.change),
  fee: formatCoins(record.fee),
  inputs: record.inputs.length,
  valid_until_height: record.validUntilHeight,
  created_millis: record.createdMillis,
  final_height: record.finalHeight,
  reason: record.reason,
  ...(record.operation && { operation: record.operation.kind, amount: formatCoins(record.operation.amount) }),
  ...operationFields(record.operation, record.transaction),
});

/** Pending until every transaction is final; void as soon as one of them is. */
export function stateOf(transactions: readonly OutgoingRecord[]): 'pending' | 'finalized' | 'void' {
  const paying = transactions.filter(({ purpose }) => purpose === 'pay');
  if (paying.some(({ state }) => state === 'void')) return 'void';
  return paying.length > 0 && paying.every(({ state }) => state === 'finalized') ? 'finalized' : 'pending';
}

/** What recipients get, or what an operation stakes, unstakes or withdraws. */
const amountOf = ({ recipients, operation }: Pick<RequestRecord, 'recipients'> & WithOperation): bigint =>
  operation?.amount ?? recipients.reduce((sum, { amount }) => sum + amount, 0n);

/** The send result of the specification, with additional fields. */
export function sendResult({ request, transactions, duplicate }: Outcome): Record<string, unknown> {
  const recipients = request.recipients.map(({ to, amount }) => ({ to, amount: formatCoins(amount) }));
  const paying = transactions.filter(({ purpose }) => purpose === 'pay');
  const transaction = paying.at(-1)?.transaction ?? null;
  return {
    kind: request.kind,
    ...(recipients.length === 1 ? { to: recipients[0]?.to } : {}),
    amount: formatCoins(amountOf(request)),
    fee: formatCoins(request.fee),
    fee_per_mass: request.feePerMass.toString(),
    transaction,
    ...operationFields(request.operation, transaction),
    submitted: true,
    duplicate,
    request_id: request.requestId,
    recipients,
    transactions: transactions.map(({ transaction }) => transaction),
    remaining_outputs: request.remainingOutputs,
    state: stateOf(transactions),
    reason: paying.find(({ state }) => state === 'void')?.reason ?? null,
  };
}

/** The current state of a request, in a listing. */
export function requestDocument(
  request: RequestRecord,
  transactions: readonly OutgoingRecord[],
): Record<string, unknown> {
  const { kind, amount, fee, transaction, recipients, state, reason } = sendResult({
    request,
    transactions,
    duplicate: true,
  });
  const heights = transactions.flatMap(({ finalHeight }) => finalHeight ?? []);
  return {
    request_id: request.requestId,
    kind,
    created_millis: request.createdMillis,
    recipients,
    amount,
    fee,
    transaction,
    ...operationFields(request.operation, transaction as string | null),
    state: request.state === 'failed' ? 'void' : state,
    reason: request.failure?.code ?? reason,
    final_height: state === 'pending' || heights.length === 0 ? null : Math.max(...heights),
  };
}

/** The answer to `dry_run`: a quote, or the state of a request whose id was used before. */
export const quoted = (
  { kind, requestId }: { readonly kind: string; readonly requestId: string },
  quote: Outcome | (Quote & WithOperation),
): Record<string, unknown> => ('request' in quote ? sendResult(quote) : quoteResult(kind, requestId, quote));

function quoteResult(kind: string, requestId: string | null, quote: Quote & WithOperation): Record<string, unknown> {
  const recipients = quote.recipients.map(({ to, amount }) => ({ to, amount: formatCoins(amount) }));
  return {
    kind,
    ...(recipients.length === 1 ? { to: recipients[0]?.to } : {}),
    amount: formatCoins(amountOf(quote)),
    fee: formatCoins(quote.fee),
    fee_per_mass: quote.feePerMass.toString(),
    transaction: null,
    ...operationFields(quote.operation, null),
    submitted: false,
    duplicate: false,
    request_id: requestId,
    recipients,
    transactions: [],
    transaction_count: quote.transactions,
  };
}

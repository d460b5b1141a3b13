/** Methods of the group Outgoing. All of them are harmless to repeat with the same `request_id`. */
import { burnAddressPayload, formatAddress } from '../../protocol/address.ts';
import { flag, type Infer, list, object, optional, text } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { MAX_PAYLOAD_BYTES } from '../../protocol/transactions/transaction.ts';
import { textPayload } from '../payments/build.ts';
import { MAX_MOVES, type MoveOrder, type PayOrder } from '../payments/planning.ts';
import { changeAddress } from '../state/address-book.ts';
import type { OwnedOutput, Recipient } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { quoted, requestDocument, sendResult } from './documents.ts';
import {
  type Answer,
  addressField,
  amountField,
  limitField,
  method,
  ownAddress,
  readAddress,
  readAmount,
  requestIdField,
  wish,
} from './method.ts';

export const MAX_RECIPIENTS = 7;

export const payloadField = text({
  maxLength: MAX_PAYLOAD_BYTES,
  description: 'text for the recipient, public on the chain',
});
const terms = {
  request_id: requestIdField,
  compound_first: optional(flag('merge outputs first when the payment needs more than 8')),
  subtract_fee: optional(flag('take the fee out of the amount')),
  payload_text: optional(payloadField),
  from_address: optional(addressField),
  dry_run: optional(flag('only say what it would cost')),
};

function readRecipient(wallet: Wallet, { to, amount }: { to: string; amount: string }, prefix = ''): Recipient {
  const address = readAddress(wallet, to, `${prefix}to`);
  if (address.kind === 'burn')
    throw new WalletError('burn_needs_method', 'that is the burn address: what is sent there is gone; use burn', {
      field: `${prefix}to`,
    });
  return { to, amount: readAmount(amount, `${prefix}amount`) };
}

export function readPayload(value: string | undefined): Uint8Array {
  const payload = textPayload(value ?? '');
  if (payload.length > MAX_PAYLOAD_BYTES)
    throw new WalletError('payload_too_long', `a text has at most ${MAX_PAYLOAD_BYTES - 1} bytes`, {
      field: 'payload_text',
    });
  return payload;
}

async function pay(wallet: Wallet, order: PayOrder, dryRun: boolean): Promise<Answer> {
  if (dryRun) return quoted(order, await wallet.outgoing.quotePay(order));
  const outcome = await wallet.outgoing.pay(order);
  return sendResult(outcome);
}

async function move(wallet: Wallet, order: MoveOrder, dryRun: boolean): Promise<Answer> {
  if (dryRun) return quoted(order, await wallet.outgoing.quoteMove(order));
  return sendResult(await wallet.outgoing.move(order));
}

function payOrder(
  wallet: Wallet,
  kind: PayOrder['kind'],
  recipients: readonly Recipient[],
  params: { readonly [K in keyof typeof terms]?: unknown },
): PayOrder {
  const fromAddress = params.from_address as string | undefined;
  if (fromAddress !== undefined) ownAddress(wallet, fromAddress, 'from_address');
  return {
    requestId: params.request_id as string,
    kind,
    recipients,
    payload: readPayload(params.payload_text as string | undefined),
    subtractFee: params.subtract_fee === true,
    compoundFirst: params.compound_first === true,
    fromAddress,
    params: wish(params),
  };
}

const sendParams = object({ to: addressField, amount: amountField, ...terms });
const recipientSchema = object({ to: addressField, amount: amountField });
/** The number of recipients is checked by hand: that gives a clearer error than the schema's. */
const sendManyParams = object({ recipients: list(recipientSchema), ...terms });

function readRecipients(wallet: Wallet, given: Infer<typeof sendManyParams>['recipients']): Recipient[] {
  if (given.length < 1 || given.length > MAX_RECIPIENTS)
    throw new WalletError('recipients_count', `1 to ${MAX_RECIPIENTS} recipients, not ${given.length}`, {
      field: 'recipients',
    });
  return given.map((one, i) => readRecipient(wallet, one, `recipients[${i}].`));
}

/** Largest first, in case not everything fits into one call. */
const largestFirst = (wallet: Wallet, address: string | undefined): readonly OwnedOutput[] =>
  [...wallet.book.available].filter((output) => address === undefined || output.address === address).reverse();

export const outgoingMethods = {
  requests: method(
    'Outgoing',
    'Requests by the beginning of their id, in the order of ids: what was paid under them',
    object({ prefix: requestIdField, cursor: optional(requestIdField), limit: optional(limitField(100, 1000)) }),
    async (wallet, { prefix, cursor, limit = 100 }) => {
      await wallet.outgoing.listed(prefix);
      const found = await wallet.store.requestsAfter(prefix, cursor, limit + 1);
      const page = found.slice(0, limit);
      const requests = await Promise.all(
        page.map(async (request) => requestDocument(request, await wallet.outgoing.transactionsOf(request))),
      );
      return {
        requests,
        request_table: wallet.book.meta.requestTable,
        indexed_height: wallet.book.meta.indexedHeight,
        ...(found.length > limit ? { next_cursor: page.at(-1)?.requestId } : {}),
      };
    },
  ),
  send: method('Outgoing', 'Pays one recipient', sendParams, (wallet, params) =>
    pay(wallet, payOrder(wallet, 'payment', [readRecipient(wallet, params)], params), params.dry_run === true),
  ),
  send_many: method('Outgoing', 'Pays up to seven recipients in one transaction', sendManyParams, (wallet, params) =>
    pay(
      wallet,
      payOrder(wallet, 'payment', readRecipients(wallet, params.recipients), params),
      params.dry_run === true,
    ),
  ),
  sweep: method(
    'Outgoing',
    `Moves everything to one address, ${MAX_MOVES} transactions a call`,
    object({
      to: addressField,
      from_address: optional(addressField),
      request_id: requestIdField,
      dry_run: terms.dry_run,
    }),
    (wallet, params) => {
      const { to, from_address: from, request_id: requestId, dry_run: dryRun } = params;
      if (readAddress(wallet, to, 'to').kind === 'burn')
        throw new WalletError('burn_needs_method', 'a sweep to the burn address would destroy everything', {
          field: 'to',
        });
      if (from !== undefined) ownAddress(wallet, from, 'from_address');
      const outputs = () => largestFirst(wallet, from);
      return move(
        wallet,
        { requestId, kind: 'sweep', to, outputs, single: true, most: MAX_MOVES, params: wish(params) },
        dryRun === true,
      );
    },
  ),
  burn: method(
    'Outgoing',
    'Destroys an amount for good',
    object({
      amount: amountField,
      request_id: requestIdField,
      compound_first: terms.compound_first,
      subtract_fee: terms.subtract_fee,
      payload_text: terms.payload_text,
      from_address: terms.from_address,
      dry_run: terms.dry_run,
    }),
    (wallet, params) => {
      const to = formatAddress(burnAddressPayload(), wallet.network);
      const recipients = [{ to, amount: readAmount(params.amount, 'amount') }];
      return pay(wallet, payOrder(wallet, 'burn', recipients, params), params.dry_run === true);
    },
  ),
  compound: method(
    'Outgoing',
    'Merges small outputs, eight into one, the smallest first',
    object({ address: optional(addressField), request_id: optional(requestIdField), dry_run: terms.dry_run }),
    (wallet, params) => {
      const { address, request_id: given, dry_run: dryRun } = params;
      if (address !== undefined) ownAddress(wallet, address, 'address');
      const requestId = given ?? `compound-${toHex(wallet.randomBytes(12))}`;
      const outputs = () => [...largestFirst(wallet, address)].reverse();
      const to = address ?? changeAddress(wallet.book);
      return move(
        wallet,
        { requestId, kind: 'compound', to, outputs, single: false, most: MAX_MOVES, params: wish(params) },
        dryRun === true,
      );
    },
  ),
};

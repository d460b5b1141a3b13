/** The wallet daemon over JSON-RPC (docs/wallet.md), as payouts see it: its codes become the answers of payout-wallet.ts. */
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { privateText } from '../../runtime/files/private-file.ts';
import { plainFetch, textOf } from '../../runtime/node-client/http-fetch.ts';
import type {
  ChainPayment,
  PaymentFate,
  PayoutWallet,
  Recipient,
  WalletAnswer,
  WalletPayment,
  WalletStatus,
} from './payout-wallet.ts';

export type WalletClientOptions = {
  /** Such as http://127.0.0.1:28703. */
  readonly url: string;
  readonly tokenFile: string;
  /** The pool's address: payments and merges spend its outputs alone and change returns to it (books rule 25). For reading it tells which are the pool's. */
  readonly address?: string;
  readonly timeoutMillis?: number;
};

type RpcError = {
  code: number;
  message: string;
  data?: { code?: string; field?: string; transaction?: string | null };
};
type RpcAnswer = { result?: unknown; error?: RpcError };

const TIMEOUT_MILLIS = 20_000;
const NODE_DOWN = -32001;
const OUTCOME_UNKNOWN = -32002;
const WALLET_HELD = -32003;
const NODE_REFUSED = -32004;
const REFUSED = -32000;
const NOT_FOUND_WORD = 'not_found';
/** Detail codes of -32003 and -32000 that payouts treat differently from their error code. */
const UNWRITABLE_WORD = 'state_unwritable';
const STOPPED_WORD = 'payments_stopped';
const PAGE = 1000;
/**
 * Parameters with the pool's own address: a wallet that refuses them is the wrong wallet, and no recipient is at fault.
 */
const OWN_FIELDS: ReadonlySet<string> = new Set(['address', 'from_address']);

function answerOf<T>({ code, message, data }: RpcError): WalletAnswer<T> {
  const reason = `${message} (${data?.code ?? code})`;
  switch (code) {
    case NODE_DOWN:
    case WALLET_HELD:
      // A failed disk write may have stored the payment anyway.
      return { kind: 'later', reason, isUnused: data?.code !== UNWRITABLE_WORD };
    case OUTCOME_UNKNOWN:
    case NODE_REFUSED:
      return { kind: 'unknown', reason, transactionId: data?.transaction ?? null };
    case REFUSED:
      if (data?.code === STOPPED_WORD) return { kind: 'later', reason, isUnused: true };
      return { kind: 'refused', reason, tooManyOutputs: data?.code === 'too_many_outputs' };
    default: {
      if (OWN_FIELDS.has(data?.field ?? '')) return { kind: 'later', reason, isUnused: true };
      const index = /^recipients\[(\d+)\]/.exec(data?.field ?? '')?.[1];
      return { kind: 'wrong', reason, recipient: index === undefined ? null : Number(index) };
    }
  }
}

const STATES: Readonly<Record<string, PaymentFate['state']>> = {
  pending: 'open',
  finalized: 'finalized',
  void: 'void',
};

type RpcRecipients = readonly { to: string; amount: string }[];
const recipientsOf = (list: RpcRecipients): Recipient[] =>
  list.map(({ to, amount }) => ({ address: to, amount: parseCoins(amount) }));

type RpcRequest = {
  request_id: string;
  created_millis: number;
  recipients: RpcRecipients;
  fee: string;
  transaction: string | null;
  state: string;
  reason: string | null;
  final_height: number | null;
};

function paymentOf(request: RpcRequest): WalletPayment {
  const fee = parseCoins(request.fee);
  const { state, reason, final_height: height } = request;
  const fate: PaymentFate =
    state === 'finalized' && height !== null
      ? { state, height, fee }
      : state === 'void'
        ? { state, reason: reason ?? 'void' }
        : { state: 'open' };
  return {
    requestId: request.request_id,
    recipients: recipientsOf(request.recipients),
    transactionId: request.transaction,
    fee,
    createdMillis: request.created_millis,
    fate,
  };
}

type RpcEntry = {
  height: number;
  transaction: string;
  kind: string;
  spent: string;
  fee: string | null;
  recipients: RpcRecipients;
  payload_text?: string | null;
  senders?: readonly string[];
};
type RpcSent = {
  state: string;
  final_height: number | null;
  reason: string | null;
  fee: string;
  recipients: RpcRecipients;
};
type RpcTransaction = { outgoing: RpcSent | null; finalized_height: number | null; history: RpcEntry | null };

function fateOf({ outgoing, finalized_height: seen, history }: RpcTransaction): PaymentFate {
  if (outgoing?.state === 'finalized' && outgoing.final_height !== null)
    return { state: 'finalized', height: outgoing.final_height, fee: parseCoins(outgoing.fee) };
  if (outgoing?.state === 'void') return { state: 'void', reason: outgoing.reason ?? 'void' };
  // A wallet that lost its requests still knows the payments on the chain.
  if (outgoing === null && seen !== null)
    return { state: 'finalized', height: seen, fee: history?.fee == null ? null : parseCoins(history.fee) };
  return { state: 'open' };
}

export function createWalletClient(options: WalletClientOptions): PayoutWallet {
  let id = 0;
  const own = options.address === undefined ? {} : { address: options.address };
  async function call<T>(method: string, params: object, read: (result: never) => T): Promise<WalletAnswer<T>> {
    let answer: RpcAnswer;
    try {
      // Read each time: the wallet may have made a new token, and the file may have become readable by others.
      const token = privateText(options.tokenFile, '--wallet-token-file').trim();
      const response = await plainFetch(`${options.url.replace(/\/+$/, '')}/v1/rpc`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: utf8(JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params })),
        signal: AbortSignal.timeout(options.timeoutMillis ?? TIMEOUT_MILLIS),
      });
      if (response.status === 401 || response.status === 403)
        return { kind: 'later', reason: `the wallet refused the token of ${options.tokenFile}`, isUnused: true };
      answer = JSON.parse(await textOf(response)) as RpcAnswer;
    } catch (error) {
      return { kind: 'later', reason: `no answer from the wallet: ${(error as Error).message}`, isUnused: false };
    }
    if (answer.error !== undefined) return answerOf(answer.error);
    return { kind: 'ok', value: read(answer.result as never) };
  }

  /** Reads pages of a listing until `more` returns false. */
  async function pages<P extends { next_cursor?: string }>(
    method: string,
    params: object,
    cursor: string | undefined,
    more: (page: P) => boolean,
  ): Promise<WalletAnswer<undefined>> {
    for (let next = cursor; ; ) {
      const from = next === undefined ? {} : { cursor: next };
      const page = await call(method, { ...params, limit: PAGE, ...from }, (result: P) => result);
      if (page.kind !== 'ok') return page;
      next = more(page.value) ? page.value.next_cursor : undefined;
      if (next === undefined) return { kind: 'ok', value: undefined };
    }
  }

  return {
    async status() {
      type Status = {
        request_table: string;
        indexed_height: number;
        caught_up: boolean;
        node_synced: boolean;
        validity_cuts: number;
        payments_stopped_message: string | null;
      };
      const status = await call('status', {}, (result: Status) => result);
      if (status.kind !== 'ok') return status;
      const { value } = status;
      return call(
        'balance',
        own,
        (result: { spendable: string; outputs: number }): WalletStatus => ({
          requestTable: value.request_table,
          outputs: result.outputs,
          spendable: parseCoins(result.spendable),
          indexedHeight: value.indexed_height,
          // A node that is still syncing shows only a beginning of the chain.
          isCaughtUp: value.caught_up && value.node_synced,
          validityCuts: value.validity_cuts,
          stopped: value.payments_stopped_message,
        }),
      );
    },
    sendMany: (requestId, recipients, payloadText) =>
      call(
        'send_many',
        {
          request_id: requestId,
          recipients: recipients.map(({ address, amount }) => ({ to: address, amount: formatCoins(amount) })),
          ...(payloadText == null ? {} : { payload_text: payloadText }),
          ...(options.address === undefined ? {} : { from_address: options.address }),
        },
        (result: { transaction: string; fee: string; recipients: RpcRecipients }) => ({
          transactionId: result.transaction,
          fee: parseCoins(result.fee),
          recipients: recipientsOf(result.recipients),
        }),
      ),
    compound: (requestId) =>
      call('compound', { request_id: requestId, ...own }, (result: { state: string; fee: string }) => ({
        state: STATES[result.state] ?? 'open',
        fee: parseCoins(result.fee),
      })),
    async fate(transactionId) {
      const answer = await call('transaction', { transaction: transactionId }, fateOf);
      // A wallet that does not know the transaction proves nothing about it.
      return answer.kind === 'refused' && answer.reason.includes(NOT_FOUND_WORD)
        ? { kind: 'later', reason: answer.reason, isUnused: false }
        : answer;
    },
    payment: (transactionId) =>
      call('transaction', { transaction: transactionId }, ({ outgoing, history }: RpcTransaction) => {
        const fee = outgoing?.fee ?? history?.fee ?? null;
        return {
          recipients: recipientsOf(outgoing?.recipients ?? history?.recipients ?? []),
          fee: fee === null ? null : parseCoins(fee),
        };
      }),
    async payments(prefix, after, through) {
      const found: WalletPayment[] = [];
      const done = await pages(
        'requests',
        { prefix },
        after,
        (page: { requests: RpcRequest[]; next_cursor?: string }) => {
          found.push(...page.requests.map(paymentOf));
          return through === undefined || (page.requests.at(-1)?.request_id ?? through) < through;
        },
      );
      return done.kind === 'ok' ? { kind: 'ok', value: found } : done;
    },
    async paidSince(height) {
      const found: ChainPayment[] = [];
      const done = await pages('history', {}, undefined, (page: { entries: RpcEntry[]; next_cursor?: string }) => {
        for (const entry of page.entries) {
          const { senders = [] } = entry;
          // The fee of a spend is in its transaction: without one, the node had deleted it when the wallet read the cut.
          const isUnread = entry.fee === null && parseCoins(entry.spent) > 0n;
          if (entry.height > height && (entry.recipients.length > 0 || isUnread))
            found.push({
              transactionId: entry.transaction,
              height: entry.height,
              recipients: recipientsOf(entry.recipients),
              fee: entry.fee === null ? null : parseCoins(entry.fee),
              payloadText: entry.payload_text ?? null,
              isUnread,
              isOther: options.address !== undefined && senders.length > 0 && !senders.includes(options.address),
            });
        }
        return (page.entries.at(-1)?.height ?? 0) > height;
      });
      return done.kind === 'ok' ? { kind: 'ok', value: found } : done;
    },
  };
}

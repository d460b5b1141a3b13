/** The wallet daemon over JSON-RPC (docs/wallet.md), as payouts see it: its codes become the answers of payout-wallet.ts. */
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { privateText } from '../../runtime/private-file.ts';
import type { PaymentFate, PayoutWallet, WalletAnswer } from './payout-wallet.ts';

export type WalletClientOptions = {
  /** Such as http://127.0.0.1:28703. */
  readonly url: string;
  readonly tokenFile: string;
  readonly timeoutMillis?: number;
};

type RpcError = { code: number; message: string; data?: { code?: string } };
type RpcAnswer = { result?: unknown; error?: RpcError };

const TIMEOUT_MILLIS = 20_000;
const NODE_DOWN = -32001;
const OUTCOME_UNKNOWN = -32002;
const WALLET_HELD = -32003;
const REFUSED = -32000;
const NOT_FOUND_WORD = 'not_found';

function answerOf<T>(error: RpcError): WalletAnswer<T> {
  const reason = `${error.message} (${error.data?.code ?? error.code})`;
  switch (error.code) {
    case NODE_DOWN:
    case WALLET_HELD:
      return { kind: 'later', reason };
    case OUTCOME_UNKNOWN:
      return { kind: 'unknown', reason };
    case REFUSED:
      return { kind: 'refused', reason, tooManyOutputs: error.data?.code === 'too_many_outputs' };
    default:
      return { kind: 'wrong', reason };
  }
}

const STATES: Readonly<Record<string, PaymentFate['state']>> = {
  pending: 'open',
  finalized: 'finalized',
  void: 'void',
};

export function createWalletClient(options: WalletClientOptions): PayoutWallet {
  let id = 0;
  async function call<T>(method: string, params: object, read: (result: never) => T): Promise<WalletAnswer<T>> {
    let answer: RpcAnswer;
    try {
      // Read anew each time: the wallet may have made another, and others may have got to read it.
      const token = privateText(options.tokenFile, '--wallet-token-file').trim();
      const response = await fetch(`${options.url.replace(/\/+$/, '')}/v1/rpc`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }),
        signal: AbortSignal.timeout(options.timeoutMillis ?? TIMEOUT_MILLIS),
      });
      if (response.status === 401 || response.status === 403)
        return { kind: 'later', reason: `the wallet refused the token of ${options.tokenFile}` };
      answer = (await response.json()) as RpcAnswer;
    } catch (error) {
      return { kind: 'later', reason: `no answer from the wallet: ${(error as Error).message}` };
    }
    if (answer.error !== undefined) return answerOf(answer.error);
    return { kind: 'ok', value: read(answer.result as never) };
  }

  return {
    async status() {
      const status = await call('status', {}, (result: { request_table: string; outputs: number }) => result);
      if (status.kind !== 'ok') return status;
      return call('balance', {}, (result: { spendable: string }) => ({
        requestTable: status.value.request_table,
        outputs: status.value.outputs,
        spendable: parseCoins(result.spendable),
      }));
    },
    sendMany: (requestId, recipients) =>
      call(
        'send_many',
        {
          request_id: requestId,
          recipients: recipients.map(({ address, amount }) => ({ to: address, amount: formatCoins(amount) })),
        },
        (result: { transaction: string; fee: string }) => ({
          transactionId: result.transaction,
          fee: parseCoins(result.fee),
        }),
      ),
    compound: (requestId) =>
      call('compound', { request_id: requestId }, (result: { state: string; fee: string }) => ({
        state: STATES[result.state] ?? 'open',
        fee: parseCoins(result.fee),
      })),
    async fate(transactionId) {
      type Known = { outgoing: { state: string; final_height: number | null; reason: string | null } | null };
      const answer = await call('transaction', { transaction: transactionId }, (result: Known): PaymentFate => {
        const sent = result.outgoing;
        if (sent?.state === 'finalized' && sent.final_height !== null)
          return { state: 'finalized', height: sent.final_height };
        if (sent?.state === 'void') return { state: 'void', reason: sent.reason ?? 'void' };
        return { state: 'open' };
      });
      // A wallet that does not know the transaction proves nothing about it.
      return answer.kind === 'refused' && answer.reason.includes(NOT_FOUND_WORD)
        ? { kind: 'later', reason: answer.reason }
        : answer;
    },
  };
}

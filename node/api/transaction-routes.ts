/** Routes about transactions: status, submission, manifest, and those of the newest cuts. */

import type { SubmissionResult } from '../../protocol/api/documents.ts';
import { MASS_PER_OUTPUT, MIN_FEE_PER_MASS } from '../../protocol/transactions/fee.ts';
import {
  MAX_INPUTS,
  MAX_OUTPUTS,
  MAX_PAYLOAD_BYTES,
  MAX_TRANSACTION_BYTES,
  PROTOCOL_VERSION,
  RULE_SET,
} from '../../protocol/transactions/transaction.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { fromNativeHex, nativeHex } from '../../runtime/native/native-hex.ts';
import { cutReference } from '../events.ts';
import type { CutRef, TransactionStatus } from '../full-node.ts';
import { type NodeError, retryAfterMillis, statusOf } from '../node-error.ts';
import { type ApiContext, type Handlers, JsonText } from './api-context.ts';
import { Refusal, refusal } from './api-error.ts';

const NO_CUT = 'null';
const KEPT_CUTS = 8_192;
const KEPT_STATUSES = 32_768;

/** Cached JSON that never changes: cut references, which thousands of statuses share, and final statuses. */
class FinalTexts {
  readonly #texts = new BoundedMap<number, string>(KEPT_CUTS);
  readonly #statuses = new BoundedMap<string, Buffer>(KEPT_STATUSES);

  status(id: string): Buffer | undefined {
    return this.#statuses.get(id);
  }

  keep(id: string, status: Buffer): void {
    this.#statuses.set(id, status);
  }

  text(context: ApiContext, cut: CutRef | undefined): string {
    if (cut === undefined) return NO_CUT;
    const { cutId, header, height } = cut;
    if (header !== undefined) return JSON.stringify(cutReference({ cutId, header }));
    let text = this.#texts.get(height);
    if (text === undefined) {
      const record = context.node.chain.cut(height);
      if (record === undefined) throw new Error(`cut ${height} of a status is not in the store`);
      text = JSON.stringify(cutReference(record));
      this.#texts.set(height, text);
    }
    return text;
  }
}
const cutTexts = new WeakMap<ApiContext['node'], FinalTexts>();

function textsOf(context: ApiContext): FinalTexts {
  let texts = cutTexts.get(context.node);
  if (texts === undefined) {
    texts = new FinalTexts();
    cutTexts.set(context.node, texts);
  }
  return texts;
}

/** The status document as text; `id` is the identifier in hex. */
export function statusJson(context: ApiContext, id: string, status: TransactionStatus): string {
  const texts = textsOf(context);
  const work = status.observedBlock === undefined ? 'null' : `{"block_id":"${nativeHex(status.observedBlock)}"}`;
  const failure = status.failure === undefined ? 'null' : `"${status.failure}"`;
  return (
    `{"api_version":1,"transaction_id":"${id}","lifecycle":"${status.lifecycle}","observed_work":${work},` +
    `"registered_cut":${texts.text(context, status.registeredCut)},` +
    `"finalized_cut":${texts.text(context, status.finalizedCut)},"failure":${failure}}`
  );
}

/** The status of a transaction as JSON; undefined when this node has not seen it. */
function statusOfTransaction(context: ApiContext, id: string): Buffer | undefined {
  const texts = textsOf(context);
  const known = texts.status(id);
  if (known !== undefined) return known;
  const status = context.node.chain.transactionStatus(Buffer.from(id, 'hex'));
  if (status === undefined) return undefined;
  const json = Buffer.from(statusJson(context, id, status), 'latin1');
  if (status.final) texts.keep(id, json);
  return json;
}

const COMMA = Buffer.from(',');

/** Whether a transaction refused by the ledger can still become valid. */
function failureOf(error: NodeError): 'conflict' | 'invalid' | 'expired' | 'dropped' {
  switch (error.code) {
    case 'input_spent':
    case 'input_conflict':
      return 'conflict';
    case 'transaction_expired':
      return 'expired';
    case 'mempool_full':
    case 'node_stopped':
      return 'dropped';
    default:
      return 'invalid';
  }
}

function refusedSubmission(error: NodeError): Refusal {
  const wait = retryAfterMillis(error);
  return new Refusal(statusOf(error), {
    api_version: 1,
    error: { code: error.code, message: error.message, failure: failureOf(error) },
    ...(wait === undefined ? {} : { retry_after_millis: wait }),
  });
}

export const transactionRoutes: Pick<
  Handlers,
  'transactionStatus' | 'transactionStatuses' | 'submitTransaction' | 'manifest' | 'recentTransactions'
> = {
  transactionStatus(context, { params }) {
    const status = statusOfTransaction(context, params.id);
    if (status === undefined) throw refusal('transaction_unknown', 'this server has not seen the transaction');
    return new JsonText(status);
  },

  transactionStatuses(context, { body }) {
    const unknown: string[] = [];
    const found: Buffer[] = [];
    for (const id of new Set(body.transaction_ids)) {
      const status = statusOfTransaction(context, id);
      if (status === undefined) unknown.push(`"${id}"`);
      else if (found.length === 0) found.push(status);
      else found.push(COMMA, status);
    }
    const begin = `{"api_version":1,"finalized_height":${context.node.chain.head().height},"statuses":[`;
    const end = `],"unknown":[${unknown.join(',')}]}`;
    return new JsonText(Buffer.concat([Buffer.from(begin), ...found, Buffer.from(end)]));
  },

  async submitTransaction(context, { body }): Promise<SubmissionResult> {
    const result = await context.node.submitTransaction(fromNativeHex(body.wire_hex.toLowerCase()), 'own');
    if (result.status === 'refused') throw refusedSubmission(result.error);
    return {
      api_version: 1,
      transaction_id: nativeHex(result.id),
      status: result.status,
      lifecycle: context.node.chain.transactionStatus(result.id)?.lifecycle ?? 'processing',
    };
  },

  manifest(context) {
    return {
      api_version: 1,
      network: context.node.chain.network.name,
      chain_id: nativeHex(context.node.chain.chainId),
      protocol_version: PROTOCOL_VERSION,
      rule_set: RULE_SET,
      finalized_height: context.node.chain.head().height,
      min_fee_per_mass: MIN_FEE_PER_MASS.toString(),
      mass_per_output: MASS_PER_OUTPUT,
      max_inputs: MAX_INPUTS,
      max_outputs: MAX_OUTPUTS,
      max_transaction_bytes: MAX_TRANSACTION_BYTES,
      max_payload_bytes: MAX_PAYLOAD_BYTES,
    };
  },

  async recentTransactions(context, { query }) {
    const { height, value } = await context.index.recentTransactions(query.limit ?? 50);
    return {
      api_version: 1,
      finalized_height: height,
      transactions: value.map((transaction) => ({
        transaction_id: nativeHex(transaction.id),
        block_id: nativeHex(transaction.blockId),
        finalized_height: transaction.height,
        outcome: transaction.outcome,
        fee: transaction.fee.toString(),
        amount: transaction.amount.toString(),
      })),
    };
  },
};

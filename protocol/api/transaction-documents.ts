/**
 * Documents about transactions: status, submission, manifest, proofs (specification: Transaction status document).
 */

import { described, type Infer, integer, list, nullable, object, oneOf, optional, text } from './schema.ts';
import {
  address,
  amount,
  cutReference,
  height,
  hex,
  identifier,
  MAX_BATCH_OUTPOINTS,
  MAX_BATCH_TRANSACTIONS,
  network,
  outpoint,
  version,
} from './values.ts';

export const LIFECYCLES = ['processing', 'receiving', 'registered', 'finalized', 'failed'] as const;
export const FAILURES = ['conflict', 'invalid', 'expired', 'dropped', 'no_effect'] as const;
export type Lifecycle = (typeof LIFECYCLES)[number];
export type Failure = (typeof FAILURES)[number];

export const transactionStatus = object(
  {
    api_version: version,
    transaction_id: identifier,
    lifecycle: oneOf(LIFECYCLES),
    observed_work: nullable(object({ block_id: identifier }, 'ObservedWork')),
    registered_cut: nullable(cutReference),
    finalized_cut: nullable(cutReference),
    failure: nullable(oneOf(FAILURES)),
  },
  'TransactionStatus',
);
export type TransactionStatus = Infer<typeof transactionStatus>;

/** Only these will never change again (specification: Transaction lifecycle, finality rule). */
export const isFinalStatus = (status: Pick<TransactionStatus, 'lifecycle' | 'failure' | 'finalized_cut'>): boolean =>
  status.lifecycle === 'finalized' ||
  (status.lifecycle === 'failed' &&
    (status.failure === 'conflict' || status.failure === 'expired') &&
    status.finalized_cut !== null);

export const transactionIdsBody = object(
  {
    api_version: optional(version),
    transaction_ids: list(identifier, { minItems: 1, maxItems: MAX_BATCH_TRANSACTIONS }),
  },
  'TransactionIds',
);
export const transactionStatuses = object(
  {
    api_version: version,
    finalized_height: height,
    statuses: list(transactionStatus),
    unknown: described(list(identifier), 'those of the request that this server has not seen'),
  },
  'TransactionStatuses',
);

export const outpointsBody = object(
  { api_version: optional(version), outpoints: list(outpoint, { minItems: 1, maxItems: MAX_BATCH_OUTPOINTS }) },
  'Outpoints',
);
export const utxoProof = object(
  {
    outpoint,
    output: described(nullable(object({ address, amount }, 'ProvenOutput')), 'null proves that there is none'),
    proof_hex: described(hex, 'path in the output set; see docs/api.md'),
  },
  'UtxoProof',
);
export const utxoProofs = object(
  {
    api_version: version,
    finalized_height: height,
    cut: cutReference,
    state_hex: described(hex, 'the state whose hash is the state root of the cut; it contains the output-set root'),
    proofs: list(utxoProof),
  },
  'UtxoProofs',
);

export const submissionBody = object(
  { api_version: version, wire_hex: text({ minLength: 2, maxLength: 2 * 65536, pattern: '^([0-9a-fA-F]{2})+$' }) },
  'Submission',
);
export const submissionResult = object(
  {
    api_version: version,
    transaction_id: identifier,
    status: described(oneOf(['accepted', 'known']), '`known`: it was here before; nothing was added'),
    lifecycle: oneOf(LIFECYCLES),
  },
  'SubmissionResult',
);
export type SubmissionResult = Infer<typeof submissionResult>;

export const manifest = object(
  {
    api_version: version,
    network,
    chain_id: identifier,
    protocol_version: integer(),
    rule_set: integer(),
    finalized_height: height,
    min_fee_per_mass: amount,
    mass_per_output: integer(),
    max_inputs: integer(),
    max_outputs: integer(),
    max_transaction_bytes: integer(),
    max_payload_bytes: integer(),
  },
  'Manifest',
);
export type Manifest = Infer<typeof manifest>;

const transactionFields = {
  transaction_id: identifier,
  block_id: described(identifier, 'work block that carried it'),
  finalized_height: height,
  outcome: described(oneOf(['finalized', ...FAILURES]), 'what the cut made of it'),
  fee: amount,
  mass: integer(),
  valid_from_height: height,
  valid_until_height: height,
  inputs: described(
    list(object({ outpoint, address: nullable(address), amount: nullable(amount) }, 'SpentOutput')),
    'address and amount are null where the transaction failed',
  ),
  outputs: list(object({ output_index: integer(), address, amount }, 'MadeOutput')),
  payload_hex: hex,
};
export const transaction = object(transactionFields, 'Transaction');
export type TransactionDocument = Infer<typeof transaction>;

export const recentTransactions = object(
  {
    api_version: version,
    finalized_height: height,
    transactions: described(
      list(
        object(
          {
            transaction_id: identifier,
            block_id: identifier,
            finalized_height: height,
            outcome: oneOf(['finalized', ...FAILURES]),
            fee: amount,
            amount: described(amount, 'sum of its outputs'),
          },
          'TransactionSummary',
        ),
      ),
      'newest first',
    ),
  },
  'RecentTransactions',
);

/**
 * Refusals of the node: values with a code and fields, never exceptions. The codes are listed in docs/errors.md;
 * `status` is the HTTP status.
 */

const STATUS = {
  request_malformed: 400,
  request_too_large: 413,
  route_unknown: 404,
  method_not_allowed: 405,
  origin_refused: 403,
  peer_refused: 403,
  request_timeout: 408,
  host_refused: 421,
  payout_invalid: 400,
  template_limit: 400,
  header_malformed: 400,
  body_malformed: 400,
  network_mismatch: 400,
  anchor_unknown: 400,
  anchor_mismatch: 400,
  state_root_mismatch: 400,
  target_mismatch: 400,
  timestamp_too_early: 400,
  timestamp_too_late: 400,
  parents_root_mismatch: 400,
  transactions_root_mismatch: 400,
  reward_root_mismatch: 400,
  parent_unknown: 400,
  body_used: 400,
  block_transaction_invalid: 400,
  pow_above_target: 400,
  block_too_late: 409,
  block_queue_full: 503,
  verifier_unavailable: 503,
  transaction_malformed: 400,
  transaction_not_valid_yet: 400,
  transaction_expired: 400,
  validator_unknown: 404,
  validator_inactive: 400,
  validator_slashed: 400,
  consensus_key_used: 409,
  change_pending: 409,
  position_unknown: 400,
  position_self_bond: 400,
  position_unbonding: 400,
  position_bonded: 400,
  position_locked: 409,
  position_empty: 400,
  unbond_amount: 400,
  heartbeat_epoch: 400,
  heartbeat_repeated: 409,
  evidence_expired: 400,
  evidence_early: 400,
  evidence_key_unknown: 400,
  operation_proof_invalid: 400,
  operation_conflict: 409,
  input_unknown: 400,
  input_spent: 409,
  input_conflict: 409,
  witness_key_mismatch: 400,
  witness_key_unregistered: 400,
  signature_invalid: 400,
  amounts_exceed_inputs: 400,
  fee_below_minimum: 400,
  mempool_full: 503,
  node_stopped: 503,
  node_not_synced: 503,
  too_busy: 503,
  internal: 500,
} as const;

export type NodeErrorCode = keyof typeof STATUS;
export const NODE_ERROR_CODES = Object.keys(STATUS) as NodeErrorCode[];

export type NodeError = {
  readonly code: NodeErrorCode;
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number>>;
};

export const nodeError = (
  code: NodeErrorCode,
  message: string,
  fields: Readonly<Record<string, string | number>> = {},
): NodeError => ({ code, message, fields });

export const statusOf = (error: NodeError): number => STATUS[error.code];

/** How long a client waits before it repeats a request that the node could not serve now (status 503). */
const RETRY_AFTER_MILLIS = 1_000;

export const retryAfterMillis = (error: NodeError): number | undefined =>
  statusOf(error) === 503 ? RETRY_AFTER_MILLIS : undefined;

/** The body of every refusal over HTTP. */
export const errorDocument = (error: NodeError) => ({
  api_version: 1,
  error: { code: error.code, message: error.message, ...error.fields },
  retry_after_millis: retryAfterMillis(error),
});

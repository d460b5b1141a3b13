/**
 * What the wallet refuses, as a code with a text for people. The codes stand in docs/errors.md with cause and remedy;
 * `rpc` is the JSON-RPC code a refusal has when it answers a call (docs/wallet.md, Errors).
 */
import { CodedError } from '../protocol/coded-error.ts';

export const WALLET_ERRORS = {
  phrase_length: -32602,
  phrase_word: -32602,
  phrase_checksum: -32602,
  file_exists: -32000,
  file_missing: -32000,
  file_unwritable: -32000,
  file_readable_by_others: -32000,
  file_damaged: -32000,
  file_password: -32000,
  wallet_locked: -32003,
  password_missing: -32000,
  token_readable_by_others: -32000,
  token_damaged: -32000,
  state_damaged: -32000,
  state_unwritable: -32003,
  remote_not_allowed: -32000,
  params_invalid: -32602,
  amount_invalid: -32602,
  address_invalid: -32602,
  address_not_mine: -32602,
  burn_needs_method: -32602,
  recipients_count: -32602,
  payload_too_long: -32602,
  chat_unknown: -32602,
  chat_with_oneself: -32602,
  chat_not_accepted: -32000,
  chat_already_accepted: -32000,
  chat_own_request: -32000,
  chat_address_empty: -32000,
  proof_request_invalid: -32602,
  multisig_unknown: -32602,
  multisig_not_member: -32602,
  multisig_package_invalid: -32602,
  multisig_descriptor_invalid: -32602,
  validator_unknown: -32602,
  position_unknown: -32602,
  stake_below_minimum: -32602,
  commission_invalid: -32602,
  endpoint_invalid: -32602,
  key_index_invalid: -32602,
  consensus_key_used: -32000,
  consensus_key_inactive: -32602,
  validator_not_mine: -32602,
  change_pending: -32000,
  heartbeat_repeated: -32000,
  validator_busy: -32003,
  unstake_amount: -32602,
  validator_inactive: -32000,
  position_self_bond: -32000,
  position_unbonding: -32000,
  position_bonded: -32000,
  position_locked: -32000,
  position_empty: -32000,
  epoch_changed: -32000,
  position_busy: -32003,
  insufficient_funds: -32000,
  too_many_outputs: -32000,
  amount_below_fee: -32000,
  fee_too_high: -32000,
  nothing_to_move: -32000,
  payments_stopped: -32000,
  merge_lost: -32000,
  funds_in_flight: -32003,
  wallet_busy: -32003,
  node_unreachable: -32001,
  node_not_synced: -32001,
  wallet_behind: -32001,
  node_other_chain: -32001,
  node_other_network: -32001,
  node_behind_wallet: -32001,
  chain_rolled_back: -32001,
  spend_not_on_record: -32001,
  outcome_unknown: -32002,
  node_refused: -32004,
  not_found: -32000,
  confirmation_missing: -32000,
} as const;

export type WalletErrorCode = keyof typeof WALLET_ERRORS;

export class WalletError extends CodedError<WalletErrorCode> {
  override readonly name = 'WalletError';

  get rpc(): number {
    return WALLET_ERRORS[this.code];
  }
}

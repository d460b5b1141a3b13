/** What the module refuses beside what the codec refuses (ProtocolError). Both are errors with a `code` of docs/errors.md. */
import { CodedError } from '../protocol/coded-error.ts';

export const MODULE_ERRORS = [
  'module_not_started',
  'module_memory',
  'root_freed',
  'roots_exhausted',
  'phrase_length',
  'phrase_word',
  'phrase_checksum',
  'key_index',
  'manifest_other_rules',
  'amounts_exceed_inputs',
  'fee_below_minimum',
  'witness_key_mismatch',
  'witness_key_unregistered',
  'signature_invalid',
  'operation_proof_invalid',
  'operation_missing',
  'address_not_this_key',
  'chat_not_accepted',
  'chat_already_accepted',
  'chat_own_request',
  'request_malformed',
  'proof_malformed',
  'not_a_key_address',
  'other_address',
  'other_challenge',
  'expired',
  'wrong_key',
  'wrong_signature',
  'file_damaged',
  'file_password',
  'file_cost',
  'answer_unsigned',
  'answer_envelope',
  'answer_nonce',
  'answer_identity',
  'answer_signature',
] as const;

export type ModuleErrorCode = (typeof MODULE_ERRORS)[number] | 'wrong_network';

export class ModuleError extends CodedError<ModuleErrorCode> {
  override readonly name = 'ModuleError';
}

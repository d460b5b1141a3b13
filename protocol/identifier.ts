/**
 * Identifiers (ledger rule 1): `id(label, bytes) = SHA-384(label || 0x00 || bytes)`, 48 bytes, written as 96 lower-case
 * hex characters. One label per kind of thing, so that no value of one kind can pass for another.
 */
import { sha384 } from '@noble/hashes/sha2.js';
import { type Bytes, concat, fromHex, utf8 } from './bytes.ts';

export const ID_BYTES = 48;

export const LABELS = {
  address: 'SVC_ADDRESS_V1',
  addressProof: 'SVC_ADDRESS_PROOF_V1',
  addressWords: 'SVC_ADDRESS_WORDS_V1',
  block: 'SVC_BLOCK_V1',
  body: 'SVC_BODY_V1',
  certificate: 'SVC_CERTIFICATE_V1',
  chain: 'SVC_CHAIN_V1',
  cut: 'SVC_CUT_V1',
  genesisOutput: 'SVC_GENESIS_OUTPUT_V1',
  merkleEmpty: 'SVC_MERKLE_EMPTY_V1',
  merkleLeaf: 'SVC_MERKLE_LEAF_V1',
  merkleNode: 'SVC_MERKLE_NODE_V1',
  nodeIdentity: 'SVC_NODE_IDENTITY_V1',
  operation: 'SVC_OPERATION_V1',
  position: 'SVC_POSITION_V1',
  reward: 'SVC_REWARD_V1',
  serviceAnswer: 'SVC_SERVICE_ANSWER_V1',
  spend: 'SVC_SPEND_V1',
  stakePayment: 'SVC_STAKE_PAYMENT_V1',
  state: 'SVC_STATE_V1',
  stateLeaf: 'SVC_STATE_LEAF_V1',
  stateNode: 'SVC_STATE_NODE_V1',
  sumEmpty: 'SVC_SUM_EMPTY_V1',
  sumLeaf: 'SVC_SUM_LEAF_V1',
  sumNode: 'SVC_SUM_NODE_V1',
  transaction: 'SVC_TX_V1',
  validator: 'SVC_VALIDATOR_V1',
  validatorSet: 'SVC_VALIDATOR_SET_V1',
  window: 'SVC_WINDOW_V1',
  workPayment: 'SVC_WORK_PAYMENT_V1',
} as const;

export type Label = (typeof LABELS)[keyof typeof LABELS];

/** The hash is passed in where a program has a faster SHA-384 than the portable one (node:crypto). */
export type Sha384 = (bytes: Bytes) => Bytes;

let hash: Sha384 = sha384;

/** Installs a faster SHA-384 for this process. It must give the same digests; only speed may differ. */
export function useSha384(faster: Sha384): void {
  hash = faster;
}

const prefixes = new Map<string, Uint8Array<ArrayBuffer>>();

export function id(label: string, bytes: Bytes): Uint8Array<ArrayBuffer> {
  let prefix = prefixes.get(label);
  if (prefix === undefined) {
    prefix = concat(utf8(label), new Uint8Array(1));
    prefixes.set(label, prefix);
  }
  return new Uint8Array(hash(concat(prefix, bytes)));
}

export const idFromHex = (text: string): Uint8Array<ArrayBuffer> => fromHex(text, ID_BYTES);

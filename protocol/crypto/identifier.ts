/**
 * Identifiers (ledger rule 1): `id(label, bytes) = SHA-384(label || 0x00 || bytes)`, 48 bytes, written as 96 lower-case
 * hex characters. One label per kind, so that a value of one kind cannot be mistaken for another.
 */
import { sha384 } from '@noble/hashes/sha2.js';
import { type Bytes, concat, fromHex, utf8 } from '../bytes.ts';

export const ID_BYTES = 48;

export const LABELS = {
  address: 'SVC_ADDRESS_V1',
  addressProof: 'SVC_ADDRESS_PROOF_V1',
  addressWords: 'SVC_ADDRESS_WORDS_V1',
  block: 'SVC_BLOCK_V1',
  body: 'SVC_BODY_V1',
  booksHead: 'SVC_BOOKS_HEAD_V2',
  booksList: 'SVC_BOOKS_LIST_V2',
  booksRoot: 'SVC_BOOKS_ROOT_V2',
  booksSlice: 'SVC_BOOKS_SLICE_V2',
  chain: 'SVC_CHAIN_V1',
  committee: 'SVC_COMMITTEE_V1',
  consensusKey: 'SVC_CONSENSUS_KEY_V1',
  cut: 'SVC_CUT_V1',
  endpoint: 'SVC_ENDPOINT_V1',
  genesisOutput: 'SVC_GENESIS_OUTPUT_V1',
  genesisRegistration: 'SVC_GENESIS_REGISTRATION_V1',
  merkleEmpty: 'SVC_MERKLE_EMPTY_V1',
  merkleLeaf: 'SVC_MERKLE_LEAF_V1',
  merkleNode: 'SVC_MERKLE_NODE_V1',
  messengerId: 'SVC_MESSENGER_ID_V1',
  multisig: 'SVC_MULTISIG_V1',
  multisigTemplate: 'SVC_MULTISIG_TEMPLATE_V1',
  nodeIdentity: 'SVC_NODE_IDENTITY_V1',
  operation: 'SVC_OPERATION_V1',
  overlay: 'SVC_OVERLAY_V2',
  poolKey: 'SVC_POOL_KEY_V1',
  position: 'SVC_POSITION_V1',
  possession: 'SVC_POSSESSION_V1',
  proposal: 'SVC_PROPOSAL_V1',
  proposer: 'SVC_PROPOSER_V1',
  receipts: 'SVC_RECEIPTS_V1',
  relayRecord: 'SVC_RELAY_RECORD_V1',
  reward: 'SVC_REWARD_V1',
  rollCall: 'SVC_ROLL_CALL_V1',
  serviceAnswer: 'SVC_SERVICE_ANSWER_V1',
  shareHeader: 'SVC_SHARE_HEADER_V1',
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
  validatorRecord: 'SVC_VALIDATOR_RECORD_V1',
  validatorSet: 'SVC_VALIDATOR_SET_V1',
  vote: 'SVC_VOTE_V1',
  walletFingerprint: 'SVC_WALLET_FINGERPRINT_V1',
  window: 'SVC_WINDOW_V1',
  withdrawal: 'SVC_WITHDRAWAL_V1',
  workPayment: 'SVC_WORK_PAYMENT_V1',
} as const;

/** The hash is passed in where a program has a faster SHA-384 than the portable one (node:crypto). Every digest is new memory. */
export type Sha384 = (bytes: Bytes) => Uint8Array<ArrayBuffer>;
/** The same over the concatenation of two pieces: a body of a mebibyte is not copied to prepend its label. */
export type Sha384OfTwo = (head: Bytes, rest: Bytes) => Uint8Array<ArrayBuffer>;

let hash: Sha384 = sha384;
let hashOfTwo: Sha384OfTwo = (head, rest) => hash(concat(head, rest));

/** Installs a faster SHA-384 for this process. It must give the same digests; only speed may differ. */
export function useSha384(faster: Sha384, fasterOfTwo?: Sha384OfTwo): void {
  hash = faster;
  hashOfTwo = fasterOfTwo ?? ((head, rest) => faster(concat(head, rest)));
}

const prefixes = new Map<string, Uint8Array<ArrayBuffer>>();
/** Most inputs are short: they are assembled in one reused buffer instead of a new array each. */
const together = new Uint8Array(8192);

export function id(label: string, bytes: Bytes): Uint8Array<ArrayBuffer> {
  let prefix = prefixes.get(label);
  if (prefix === undefined) {
    prefix = concat(utf8(label), new Uint8Array(1));
    prefixes.set(label, prefix);
  }
  const length = prefix.length + bytes.length;
  if (length > together.length) return hashOfTwo(prefix, bytes);
  together.set(prefix);
  together.set(bytes, prefix.length);
  return hash(together.subarray(0, length));
}

export const idFromHex = (text: string): Uint8Array<ArrayBuffer> => fromHex(text, ID_BYTES);

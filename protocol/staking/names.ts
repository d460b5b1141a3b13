/** Identifiers and signed messages of staking (ledger rules 60 and 62). */
import { type Bytes, concat } from '../bytes.ts';
import { id, LABELS } from '../crypto/identifier.ts';
import type { Outpoint } from '../transactions/transaction.ts';

/** By its first consensus key: the identifier stays when the key is rotated. */
export const validatorId = (firstKey: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.validator, firstKey);

/** The position of a validator's own bond. */
export const selfBondId = (validator: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.position, validator);

/** The position that a bond makes, or that an unbonding splits off. */
export const delegationId = (transactionId: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.position, transactionId);

/** An entry of the set of used keys. */
export const consensusKeyHash = (key: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.consensusKey, key);

/** The bytes that a consensus key signs to prove that the registering owner has it. */
export const possessionMessage = (chainId: Bytes, owner: Bytes, key: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.possession, concat(chainId, owner, key));

/** The bytes that the active consensus key signs to change the validator's endpoint. */
export const endpointMessage = (chainId: Bytes, validator: Bytes, endpoint: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.endpoint, concat(chainId, validator, endpoint));

export const withdrawalOutpoint = (position: Bytes, transactionId: Bytes): Outpoint => ({
  transactionId: id(LABELS.withdrawal, concat(position, transactionId)),
  outputIndex: 0,
});

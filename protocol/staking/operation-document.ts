/**
 * Staking operations as JSON, `{type, data}` (specification: Transaction body): which fields each has, how each is written, and the document itself. Readers of such documents are where they come
 * in (module/operations.ts).
 */
import { formatAddress } from '../address.ts';
import { type Bytes, toHex } from '../bytes.ts';
import type { NetworkName } from '../network.ts';
import { decodeOperation, type Operation, type OperationName, type SignedVote } from './operation.ts';

export type FieldKind = 'bytes' | 'identifier' | 'address' | 'amount' | 'height' | 'basis_points' | 'votes';

/** Field of the operation, its name in JSON, how it is written. */
export type OperationField = readonly [field: string, name: string, kind: FieldKind];
const VALIDATOR: OperationField = ['validator', 'validator_id', 'identifier'];
const POSITION: OperationField = ['position', 'position_id', 'identifier'];
const OWNER: OperationField = ['owner', 'owner_address', 'address'];
const REWARD: OperationField = ['rewardAddress', 'reward_address', 'address'];
const AMOUNT: OperationField = ['amount', 'amount', 'amount'];
const COMMISSION: OperationField = ['commission', 'commission_bps', 'basis_points'];
const ENDPOINT: OperationField = ['endpoint', 'endpoint_hex', 'bytes'];
const KEY: OperationField = ['consensusKey', 'consensus_key', 'bytes'];
const POSSESSION: OperationField = ['possession', 'possession', 'bytes'];

export const OPERATION_FIELDS: { readonly [N in OperationName]: readonly OperationField[] } = {
  register: [KEY, POSSESSION, OWNER, REWARD, AMOUNT, COMMISSION, ENDPOINT],
  bond: [VALIDATOR, OWNER, REWARD, AMOUNT],
  unbond: [POSITION, AMOUNT],
  withdraw: [POSITION],
  reward_address: [POSITION, ['address', 'reward_address', 'address']],
  heartbeat: [VALIDATOR, ['epoch', 'epoch', 'height']],
  rotate: [VALIDATOR, KEY, POSSESSION, ENDPOINT],
  endpoint: [VALIDATOR, ENDPOINT, ['signature', 'signature', 'bytes']],
  commission: [VALIDATOR, COMMISSION],
  exit: [VALIDATOR],
  evidence: [VALIDATOR, ['votes', 'votes', 'votes']],
};

const voteDocument = ({ vote, signature }: SignedVote) => ({
  kind: vote.kind,
  height: String(vote.height),
  round: String(vote.round),
  cut_id: toHex(vote.cutId),
  signature: toHex(signature),
});

const WRITERS: { readonly [K in FieldKind]: (value: never, network: NetworkName) => unknown } = {
  bytes: (value: Bytes) => toHex(value),
  identifier: (value: Bytes) => toHex(value),
  address: (value: Bytes, network) => formatAddress(value, network),
  amount: (value: bigint) => value.toString(),
  height: (value: number) => String(value),
  basis_points: (value: number) => String(value),
  votes: (value: readonly SignedVote[]) => value.map(voteDocument),
};

export type OperationDocument = { readonly type: OperationName; readonly data: Readonly<Record<string, unknown>> };

export function operationDocument(encoded: Operation, network: NetworkName): OperationDocument {
  const operation = decodeOperation(encoded);
  const values = operation as unknown as Record<string, never>;
  const data = OPERATION_FIELDS[operation.name].map(([field, json, kind]) => [
    json,
    WRITERS[kind](values[field] as never, network),
  ]);
  return { type: operation.name, data: Object.fromEntries(data) };
}

/**
 * Staking operations as JSON, `{type, data}` (specification: Transaction body), and back. A table says which fields each has and how each is written; the codec is
 * protocol/staking/operation.ts.
 */
import { formatAddress, parseAddress } from '../protocol/address.ts';
import { parseAtoms } from '../protocol/amount.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { idFromHex } from '../protocol/identifier.ts';
import type { NetworkName } from '../protocol/network.ts';
import {
  decodeOperation,
  encodeOperation,
  OPERATION_TYPES,
  type Operation,
  type OperationName,
  type SignedVote,
  type StakingOperation,
} from '../protocol/staking/operation.ts';
import { Fields } from '../protocol/stratum/fields.ts';
import type { Json } from '../protocol/stratum/json.ts';
import { VOTE_KINDS, type VoteKind } from '../protocol/vote.ts';
import { decimalOf, listOf } from './given.ts';

type Kind = {
  read(fields: Fields, name: string, network: NetworkName): unknown;
  write(value: never, network: NetworkName): unknown;
};

const bytes: Kind = { read: (fields, name) => fields.hex(name), write: (value: Bytes) => toHex(value) };
const identifier: Kind = {
  read: (fields, name) => idFromHex(fields.text(name)),
  write: (value: Bytes) => toHex(value),
};
const address: Kind = {
  read: (fields, name, network) => parseAddress(fields.text(name), network).payload,
  write: (value: Bytes, network) => formatAddress(value, network),
};
const amount: Kind = {
  read: (fields, name) => parseAtoms(fields.text(name)),
  write: (value: bigint) => value.toString(),
};
const number = (max: number): Kind => ({
  read: (fields, name) => decimalOf(fields, name, max),
  write: (value: number) => String(value),
});
const height = number(Number.MAX_SAFE_INTEGER);
const basisPoints = number(0xffff);

function readVote(json: Json): SignedVote {
  const fields = new Fields(json, 'a vote');
  const kind = fields.text('kind');
  if (!Object.hasOwn(VOTE_KINDS, kind)) throw new ProtocolError('unsupported_kind', 'a vote is prevote or precommit');
  const vote = {
    kind: kind as VoteKind,
    height: decimalOf(fields, 'height', Number.MAX_SAFE_INTEGER),
    round: decimalOf(fields, 'round', 0xffffffff),
    cutId: idFromHex(fields.text('cut_id')),
  };
  const signature = fields.hex('signature');
  fields.end();
  return { vote, signature };
}
const votes: Kind = {
  read(fields, name) {
    const [first, second, ...more] = listOf(fields.value(name), name, 2);
    if (first === undefined || second === undefined || more.length > 0)
      throw new ProtocolError('out_of_range', 'evidence is two votes');
    return [readVote(first), readVote(second)];
  },
  write: (value: readonly SignedVote[]) =>
    value.map(({ vote, signature }) => ({
      kind: vote.kind,
      height: String(vote.height),
      round: String(vote.round),
      cut_id: toHex(vote.cutId),
      signature: toHex(signature),
    })),
};

/** Field of the operation, its name in JSON, how it is written. */
type Row = readonly [field: string, name: string, kind: Kind];
const VALIDATOR: Row = ['validator', 'validator_id', identifier];
const POSITION: Row = ['position', 'position_id', identifier];
const OWNER: Row = ['owner', 'owner_address', address];
const REWARD: Row = ['rewardAddress', 'reward_address', address];
const AMOUNT: Row = ['amount', 'amount', amount];
const COMMISSION: Row = ['commission', 'commission_bps', basisPoints];
const ENDPOINT: Row = ['endpoint', 'endpoint_hex', bytes];
const KEY: Row = ['consensusKey', 'consensus_key', bytes];
const POSSESSION: Row = ['possession', 'possession', bytes];

const FIELDS: { readonly [N in OperationName]: readonly Row[] } = {
  register: [KEY, POSSESSION, OWNER, REWARD, AMOUNT, COMMISSION, ENDPOINT],
  bond: [VALIDATOR, OWNER, REWARD, AMOUNT],
  unbond: [POSITION, AMOUNT],
  withdraw: [POSITION],
  reward_address: [POSITION, ['address', 'reward_address', address]],
  heartbeat: [VALIDATOR, ['epoch', 'epoch', height]],
  rotate: [VALIDATOR, KEY, POSSESSION, ENDPOINT],
  endpoint: [VALIDATOR, ENDPOINT, ['signature', 'signature', bytes]],
  commission: [VALIDATOR, COMMISSION],
  exit: [VALIDATOR],
  evidence: [VALIDATOR, ['votes', 'votes', votes]],
};

export function readOperation(given: Fields, network: NetworkName): Operation {
  const name = given.text('type');
  if (!Object.hasOwn(OPERATION_TYPES, name))
    throw new ProtocolError('unsupported_kind', `an operation is one of ${Object.keys(OPERATION_TYPES).join(', ')}`);
  const data = given.fields('data');
  given.end();
  const operation: Record<string, unknown> = { name };
  for (const [field, json, kind] of FIELDS[name as OperationName]) operation[field] = kind.read(data, json, network);
  data.end();
  return encodeOperation(operation as StakingOperation);
}

export function operationDocument(encoded: Operation, network: NetworkName): unknown {
  const operation = decodeOperation(encoded);
  const values = operation as unknown as Record<string, never>;
  const data = FIELDS[operation.name].map(([field, json, kind]) => [json, kind.write(values[field] as never, network)]);
  return { type: operation.name, data: Object.fromEntries(data) };
}

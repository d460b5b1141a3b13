/** Staking operations from JSON, `{type, data}` (specification: Transaction body). Their fields are those of protocol/staking/operation-document.ts; the codec is protocol/staking/operation.ts. */
import { parseAddress } from '../protocol/address.ts';
import { parseAtoms } from '../protocol/amount.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { idFromHex } from '../protocol/identifier.ts';
import type { NetworkName } from '../protocol/network.ts';
import {
  encodeOperation,
  OPERATION_TYPES,
  type Operation,
  type OperationName,
  type SignedVote,
  type StakingOperation,
} from '../protocol/staking/operation.ts';
import { type FieldKind, OPERATION_FIELDS } from '../protocol/staking/operation-document.ts';
import { Fields } from '../protocol/stratum/fields.ts';
import type { Json } from '../protocol/stratum/json.ts';
import { VOTE_KINDS, type VoteKind } from '../protocol/vote.ts';
import { decimalOf, listOf } from './given.ts';

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

function readVotes(fields: Fields, name: string): readonly SignedVote[] {
  const [first, second, ...more] = listOf(fields.value(name), name, 2);
  if (first === undefined || second === undefined || more.length > 0)
    throw new ProtocolError('out_of_range', 'evidence is two votes');
  return [readVote(first), readVote(second)];
}

const READERS: { readonly [K in FieldKind]: (fields: Fields, name: string, network: NetworkName) => unknown } = {
  bytes: (fields, name) => fields.hex(name),
  identifier: (fields, name) => idFromHex(fields.text(name)),
  address: (fields, name, network) => parseAddress(fields.text(name), network).payload,
  amount: (fields, name) => parseAtoms(fields.text(name)),
  height: (fields, name) => decimalOf(fields, name, Number.MAX_SAFE_INTEGER),
  basis_points: (fields, name) => decimalOf(fields, name, 0xffff),
  votes: readVotes,
};

export function readOperation(given: Fields, network: NetworkName): Operation {
  const name = given.text('type');
  if (!Object.hasOwn(OPERATION_TYPES, name))
    throw new ProtocolError('unsupported_kind', `an operation is one of ${Object.keys(OPERATION_TYPES).join(', ')}`);
  const data = given.fields('data');
  given.end();
  const operation: Record<string, unknown> = { name };
  for (const [field, json, kind] of OPERATION_FIELDS[name as OperationName])
    operation[field] = READERS[kind](data, json, network);
  data.end();
  return encodeOperation(operation as StakingOperation);
}

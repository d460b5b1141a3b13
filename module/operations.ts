/** Staking operations from JSON, `{type, data}` (specification: Transaction body). Their fields are those of protocol/staking/operation-document.ts; the codec is protocol/staking/operation.ts. */
import { parseAddress } from '../protocol/address.ts';
import { parseAtoms } from '../protocol/amount.ts';
import { VOTE_KINDS, type VoteKind } from '../protocol/consensus/vote.ts';
import { idFromHex } from '../protocol/crypto/identifier.ts';
import { ProtocolError } from '../protocol/errors.ts';
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
import { type Fields, inField } from '../protocol/stratum/fields.ts';
import type { Json } from '../protocol/stratum/json.ts';
import { decimalOf, listIn, objectIn } from './given.ts';

function readVote(json: Json, what: string): SignedVote {
  const fields = objectIn(json, what);
  const kind = fields.text('kind');
  if (!Object.hasOwn(VOTE_KINDS, kind))
    throw new ProtocolError('unsupported_kind', 'a vote is prevote or precommit', { field: fields.pathOf('kind') });
  const vote = {
    kind: kind as VoteKind,
    height: decimalOf(fields, 'height', Number.MAX_SAFE_INTEGER),
    round: decimalOf(fields, 'round', 0xffffffff),
    cutId: fields.parsed('cut_id', idFromHex),
  };
  const signature = fields.hex('signature');
  fields.end();
  return { vote, signature };
}

function readVotes(fields: Fields, name: string): readonly SignedVote[] {
  const votes = listIn(fields, name, 2, readVote);
  if (votes.length !== 2)
    throw new ProtocolError('out_of_range', 'evidence is two votes', { field: fields.pathOf(name) });
  return votes;
}

const READERS: { readonly [K in FieldKind]: (fields: Fields, name: string, network: NetworkName) => unknown } = {
  bytes: (fields, name) => fields.hex(name),
  identifier: (fields, name) => fields.parsed(name, idFromHex),
  address: (fields, name, network) => fields.parsed(name, (text) => parseAddress(text, network).payload),
  amount: (fields, name) => fields.parsed(name, parseAtoms),
  height: (fields, name) => decimalOf(fields, name, Number.MAX_SAFE_INTEGER),
  basis_points: (fields, name) => decimalOf(fields, name, 0xffff),
  votes: readVotes,
};

export function readOperation(given: Fields, network: NetworkName): Operation {
  const name = given.text('type');
  if (!Object.hasOwn(OPERATION_TYPES, name))
    throw new ProtocolError('unsupported_kind', `an operation is one of ${Object.keys(OPERATION_TYPES).join(', ')}`, {
      field: given.pathOf('type'),
    });
  const data = given.fields('data');
  given.end();
  const operation: Record<string, unknown> = { name };
  for (const [field, json, kind] of OPERATION_FIELDS[name as OperationName])
    operation[field] = READERS[kind](data, json, network);
  data.end();
  return inField('request.operation', () => encodeOperation(operation as StakingOperation));
}

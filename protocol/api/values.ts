/**
 * The values every document of the public API is made of (specification: Conventions of the HTTP API): amounts are atoms in
 * decimal strings, identifiers 96 lower-case hex characters, heights cut heights, times Unix milliseconds.
 */
import { NETWORK_NAMES } from '../network.ts';
import { described, exactly, type Infer, integer, object, oneOf, optional, text } from './schema.ts';

export const API_VERSION = 1 as const;

export const MAX_BATCH_ADDRESSES = 64;
export const MAX_BATCH_TRANSACTIONS = 1024;
export const MAX_BATCH_OUTPOINTS = 8;
/** Positions, and as many validators, of one request for proofs. */
export const MAX_BATCH_STAKES = 8;
/** Largest page of POST /v1/address/changes; the same figure as a cut's changes. */
export const MAX_CHANGES = 4096;

export const version = exactly(API_VERSION);
export const identifier = text({ pattern: '^[0-9a-f]{96}$', description: '48 bytes in hex' });
export const address = text({ minLength: 1, maxLength: 90, description: 'bech32m, one prefix per network' });
export const amount = text({ pattern: '^(0|[1-9][0-9]{0,18})$', description: 'atoms, decimal' });
/** Work and rates exceed any amount. */
export const bigNumber = text({ pattern: '^(0|[1-9][0-9]{0,77})$', description: 'decimal integer' });
export const height = integer({ description: 'cut height' });
export const millis = integer({ description: 'Unix milliseconds' });
export const count = integer();
export const hex = text({ pattern: '^([0-9a-f]{2})*$', description: 'bytes in hex' });
export const network = oneOf(NETWORK_NAMES);
export const cursor = text({
  minLength: 1,
  maxLength: 256,
  pattern: '^[0-9a-f]+$',
  description: 'the `next_cursor` of the page before; opaque',
});
export const nextCursor = optional(described(cursor, 'absent on the last page'));

export const outpoint = object(
  { transaction_id: identifier, output_index: integer({ maximum: 0xffffffff }) },
  'Outpoint',
);
export type OutpointDocument = Infer<typeof outpoint>;

export const cutReference = object(
  { height, cut_id: identifier, state_root: identifier, validator_set_id: identifier },
  'CutReference',
);
export type CutReference = Infer<typeof cutReference>;

export const SOURCES = ['regular', 'work_reward', 'stake_reward', 'genesis', 'stake_withdrawal'] as const;
export const source = oneOf(SOURCES, 'how the output came to be');
export type OutputSource = (typeof SOURCES)[number];
export const CHANGE_KINDS = ['received', 'spent'] as const;
export const changeKind = oneOf(CHANGE_KINDS);

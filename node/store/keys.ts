/**
 * Keys of the store: one prefix byte per kind, heights big-endian so that ranges are in order. The trie nodes of the
 * output set and of the key registry have the prefixes of their layouts (ledger/output-set.ts).
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { outpointKey } from '../ledger/output-set.ts';

const prefixed = (prefix: string, rest: Bytes): Buffer => Buffer.concat([Buffer.from(prefix, 'latin1'), rest]);

function heightKey(prefix: string, height: number): Buffer {
  const key = Buffer.alloc(9, prefix, 'latin1');
  key.writeBigUInt64BE(BigInt(height), 1);
  return key;
}

export const KEYS = {
  genesis: Buffer.from('Mgenesis'),
  format: Buffer.from('Mformat'),
  /** A key that never exists: deleting it forces a sync. */
  nothing: Buffer.from('Mnothing'),
  /** The last cut whose bodies were deleted, u64. */
  pruned: Buffer.from('Mpruned'),
  /** The cut of the snapshot that the store began with, u64. */
  began: Buffer.from('Mbegan'),
  state: Buffer.from('S'),
  /** The state after a cut whose height + 1 is a multiple of 96, for snapshots; the last two. */
  steppedState: (height: number) => heightKey('A', height),
  window: (anchorHeight: number) => heightKey('W', anchorHeight),
  cut: (height: number) => heightKey('C', height),
  certificate: (height: number) => heightKey('F', height),
  block: (id: Bytes) => prefixed('B', id),
  body: (id: Bytes) => prefixed('D', id),
  /** Blocks that wait for a cut; their records and bodies are under B and D. */
  waiting: (id: Bytes) => prefixed('Q', id),
  waitingRange: [Buffer.from('Q'), Buffer.from('R')] as const,
  transaction: (id: Bytes) => prefixed('T', id),
  spender: (outpoint: Outpoint) => prefixed('X', outpointKey(outpoint)),
  /** Committees by epoch, for certificates and for the state. */
  committee: (epoch: number) => heightKey('E', epoch),
  validator: (id: Bytes) => prefixed('V', id),
  validatorRange: [Buffer.from('V'), Buffer.from('W')] as const,
  delegation: (validator: Bytes, id: Bytes) => prefixed('J', Buffer.concat([validator, id])),
  delegationRange: [Buffer.from('J'), Buffer.from('K')] as const,
  owned: (owner: Bytes, id: Bytes) => prefixed('O', Buffer.concat([owner, id])),
  publicKey: (address: Bytes) => prefixed('P', address),
  /** Index spaces: `I | name | 0`. */
  index: (name: string) => Buffer.from(`I${name}\0`, 'latin1'),
} as const;

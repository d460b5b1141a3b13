/**
 * The output set and the key registry as entries of a trie (ledger rule 34). An output's entry is `transaction id 48 | u32 index,
 * big-endian | address 49 | u64 atoms | u8 source`; a registered key's entry is the hash of its address. No more than 8 outputs
 * share a transaction id, because rewards and genesis outputs have one each.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import type { OutputProof, UnspentOutput } from '../full-node.ts';
import { OUTPUT_SOURCES, type OutputSource } from './effects.ts';
import { type EntryLayout, findEntry, type Trie, type TrieRoot } from './trie.ts';

const KEY_BYTES = ID_BYTES + 4;
const AMOUNT_AT = KEY_BYTES + ADDRESS_PAYLOAD_BYTES;
const SOURCE_AT = AMOUNT_AT + 8;
export const OUTPUT_ENTRY_BYTES = SOURCE_AT + 1;

const viewOf = (entry: Bytes): DataView => new DataView(entry.buffer, entry.byteOffset, entry.byteLength);

/** One view for all amounts: a leaf has up to 16 of them, and making a view of each costs more than copying eight bytes. */
const amountBytes = new Uint8Array(8);
const amountView = new DataView(amountBytes.buffer);

function amountOf(entry: Bytes): bigint {
  for (let i = 0; i < 8; i++) amountBytes[i] = entry[AMOUNT_AT + i] as number;
  return amountView.getBigUint64(0, true);
}

export const OUTPUT_LAYOUT: EntryLayout = {
  prefix: 0x6f,
  entryBytes: OUTPUT_ENTRY_BYTES,
  keyBytes: KEY_BYTES,
  amount: amountOf,
};

export const KEY_LAYOUT: EntryLayout = { prefix: 0x6b, entryBytes: ID_BYTES, keyBytes: ID_BYTES, amount: () => 0n };

export function outpointKey(outpoint: Outpoint): Buffer {
  const key = Buffer.alloc(KEY_BYTES);
  key.set(outpoint.transactionId, 0);
  key.writeUInt32BE(outpoint.outputIndex, ID_BYTES);
  return key;
}

export function outputEntry(output: UnspentOutput): Buffer {
  const entry = Buffer.alloc(OUTPUT_ENTRY_BYTES);
  entry.set(outpointKey(output.outpoint), 0);
  entry.set(output.address, KEY_BYTES);
  entry.writeBigUInt64LE(output.amount, AMOUNT_AT);
  entry[SOURCE_AT] = OUTPUT_SOURCES.indexOf(output.source);
  return entry;
}

export function outputOfEntry(entry: Bytes): UnspentOutput {
  const view = viewOf(entry);
  return {
    outpoint: { transactionId: new Uint8Array(entry.subarray(0, ID_BYTES)), outputIndex: view.getUint32(ID_BYTES) },
    address: new Uint8Array(entry.subarray(KEY_BYTES, AMOUNT_AT)),
    amount: amountOf(entry),
    source: OUTPUT_SOURCES[entry[SOURCE_AT] as number] as OutputSource,
  };
}

export function findOutput(trie: Trie, root: TrieRoot, outpoint: Outpoint): UnspentOutput | undefined {
  const entry = trie.get(root, outpointKey(outpoint));
  return entry === undefined ? undefined : outputOfEntry(entry);
}

export function proveOutput(trie: Trie, root: TrieRoot, outpoint: Outpoint): OutputProof {
  const key = outpointKey(outpoint);
  const { leaf, siblings } = trie.path(root, key);
  const entry = findEntry(OUTPUT_LAYOUT, leaf, key);
  const proof = { outpoint, leaf, path: siblings.map(({ right, side }) => ({ right, ...side })), root };
  return entry === undefined ? proof : { ...proof, output: outputOfEntry(entry) };
}

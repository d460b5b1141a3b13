/** Proofs of the output set (ledger rule 34), from POST /v1/proofs/utxos: that an output exists, or does not. */
import { ADDRESS_PAYLOAD_BYTES } from '../address.ts';
import type { Bytes } from '../bytes.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import type { Outpoint, Output } from '../transactions/transaction.ts';
import {
  decodeSetProof,
  encodeSetProof,
  SET_SHAPES,
  type SetPath,
  type SetSide,
  setRoot,
  verifySetProof,
} from './set-proof.ts';

export type OutputSetSide = SetSide;
export type OutputSetPath = SetPath;

const SHAPE = SET_SHAPES.outputs;

export const encodeOutputProof = (path: OutputSetPath): Uint8Array<ArrayBuffer> => encodeSetProof(path);
export const decodeOutputProof = (bytes: Bytes): OutputSetPath => decodeSetProof(SHAPE, bytes);

/** The output-set root inside a state, once the state was found to have the hash that a cut commits. */
export const outputSetRoot = (state: Bytes, stateRoot: Bytes): OutputSetSide => setRoot(SHAPE, state, stateRoot);

export type OutputVerdict = { readonly ok: true; readonly output: Output | undefined } | { readonly ok: false };

/** The set's entry under the outpoint: an output, proven absence, or an invalid proof. */
export function verifyOutputProof(root: OutputSetSide, outpoint: Outpoint, path: OutputSetPath): OutputVerdict {
  const key = new Uint8Array(SHAPE.keyBytes);
  key.set(outpoint.transactionId, 0);
  new DataView(key.buffer).setUint32(ID_BYTES, outpoint.outputIndex);
  const verdict = verifySetProof(SHAPE, root, key, path);
  if (!verdict.ok || verdict.entry === undefined) return verdict.ok ? { ok: true, output: undefined } : verdict;
  const { entry } = verdict;
  const view = new DataView(entry.buffer, entry.byteOffset, entry.byteLength);
  const address = Uint8Array.from(entry.subarray(SHAPE.keyBytes, SHAPE.keyBytes + ADDRESS_PAYLOAD_BYTES));
  return { ok: true, output: { address, amount: view.getBigUint64(SHAPE.sumAt, true) } };
}

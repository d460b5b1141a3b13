/**
 * Proofs of positions and validators (ledger rules 34 and 60), from POST /v1/proofs/staking. A position is its entry;
 * for a validator the set contains the digest of its record, and the record accompanies the path.
 */
import { type Bytes, equalBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { SET_SHAPES, type SetPath, type SetSide, type SetVerdict, verifySetProof } from '../proofs/set-proof.ts';

/** The position's entry, proven absence, or an invalid proof. */
export const verifyPositionProof = (root: SetSide, position: Bytes, path: SetPath): SetVerdict =>
  verifySetProof(SET_SHAPES.positions, root, position, path);

/** Whether the validator has this record; undefined: whether there is no such validator. */
export function verifyValidatorProof(
  root: SetSide,
  validator: Bytes,
  record: Bytes | undefined,
  path: SetPath,
): boolean {
  const verdict = verifySetProof(SET_SHAPES.validators, root, validator, path);
  if (!verdict.ok) return false;
  if (verdict.entry === undefined || record === undefined) return verdict.entry === record;
  return equalBytes(verdict.entry.subarray(ID_BYTES), id(LABELS.validatorRecord, record));
}

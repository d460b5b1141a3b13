/** Who proposes (consensus rule 2): a point in the committee's cumulative stake that follows from the set, the height and the round alone. */
import { ByteReader, type Bytes, ByteWriter } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';

/** The first 16 bytes of `id("SVC_PROPOSER_V1", validator_set_id || u64 height || u32 round)` as a little-endian integer, to be taken modulo the total stake. */
export function proposerPoint(validatorSetId: Bytes, height: number, round: number): bigint {
  const bytes = new ByteWriter(ID_BYTES + 12).raw(validatorSetId).height(height).u32(round).done();
  return new ByteReader(id(LABELS.proposer, bytes)).u128();
}

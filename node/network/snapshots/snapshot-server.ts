/** Answers to peers that fetch a snapshot. Reads are bounded by the shelf, bytes by the serving budget. */
import type { SnapshotShelf } from '../../snapshot/snapshot-shelf.ts';
import { BUSY } from '../thread/host-types.ts';
import {
  CHUNK_BYTES,
  encodeChunk,
  encodeOffers,
  MAX_OFFERED,
  NO_CHUNK,
  type SnapshotQuestion,
} from './snapshot-messages.ts';

export type SnapshotSource = Pick<SnapshotShelf, 'offers' | 'part'>;

export async function answerSnapshot(
  source: SnapshotSource | undefined,
  question: SnapshotQuestion,
): Promise<Uint8Array> {
  if (question.type === 'snapshots') return encodeOffers(source?.offers().slice(-MAX_OFFERED) ?? []);
  const { height, part, from } = question;
  const chunk = await source?.part(height, part, from, CHUNK_BYTES);
  return chunk === 'busy' ? BUSY : encodeChunk(chunk ?? NO_CHUNK);
}

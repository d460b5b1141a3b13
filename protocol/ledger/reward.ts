/**
 * The reward root (ledger rule 11): it alone among a header's roots depends on payout and extranonce, so a server
 * derives each connection's header from one template with one hash, and a miner can check which address a job pays.
 */
import { type Bytes, ByteWriter, equalBytes } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { REWARD_ROOT_OFFSET } from './header.ts';
import { MAX_EXTRANONCE } from './tag.ts';

export const rewardRoot = (payoutPayload: Bytes, extranonce: Bytes): Uint8Array<ArrayBuffer> =>
  id(LABELS.reward, new ByteWriter(96).short(payoutPayload).short(extranonce, MAX_EXTRANONCE).done());

/** A header with its reward root replaced: the only step between a template and a connection's own header. */
export function headerForPayout(
  templateHeader: Bytes,
  payoutPayload: Bytes,
  extranonce: Bytes,
): Uint8Array<ArrayBuffer> {
  const header = Uint8Array.from(templateHeader);
  header.set(rewardRoot(payoutPayload, extranonce), REWARD_ROOT_OFFSET);
  return header;
}

export const headerPays = (header: Bytes, payoutPayload: Bytes, extranonce: Bytes): boolean =>
  equalBytes(header.subarray(REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + ID_BYTES), rewardRoot(payoutPayload, extranonce));

/**
 * A final cut of a version that this release does not know (`update_required`): its header is proven by a certificate
 * like every other, and then this node cannot follow. In every version the header has the same length, and version,
 * height and previous identifier are at the same offsets; nothing else of it is read.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { CUT_VERSION, cutId } from '../../../protocol/ledger/cut.ts';
import type { Member } from '../../chain/certificate.ts';
import { isCertified, type Place } from './cut-proof.ts';
import type { HeadersAnswer } from './sync-messages.ts';

const PLACES = { version: 0, height: 8, previousId: 24 };

const view = (header: Bytes): DataView => new DataView(header.buffer, header.byteOffset, header.byteLength);
const versionOf = (header: Bytes): number => view(header).getUint32(PLACES.version, true);
const heightOf = (header: Bytes): number => Number(view(header).getBigUint64(PLACES.height, true));
const previousOf = (header: Bytes): Bytes => header.subarray(PLACES.previousId, PLACES.previousId + ID_BYTES);

/**
 * The version of the final cut after `head`, if this release does not know it. Undefined if the headers do not prove
 * that.
 */
export async function unknownVersion(
  { headers, certificate }: HeadersAnswer,
  head: Place,
  chainId: Bytes,
  committee: readonly Member[],
): Promise<number | undefined> {
  const [first, last] = [headers[0], headers.at(-1)];
  if (first === undefined || last === undefined || certificate === undefined) return undefined;
  let before = head;
  for (const header of headers) {
    if (heightOf(header) !== before.height + 1 || !equalBytes(previousOf(header), before.cutId)) return undefined;
    before = { height: before.height + 1, cutId: cutId(header) };
  }
  const version = headers.map(versionOf).find((of) => of !== CUT_VERSION);
  if (version === undefined || !(await isCertified(chainId, before, certificate, committee))) return undefined;
  return version;
}

/**
 * Text and bytes in one write, for logins: the answers and the first job. They are joined in a reused buffer; a new
 * array for each login would cost more than the write itself.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Peer } from './conversation.ts';

const ROOM_BYTES = 2_048;
const MAX_ROOM_BYTES = 16_384;

const NONE = Buffer.allocUnsafeSlow(0);
let room = NONE;

/** `text` may hold more than ASCII when `wide` is set. */
export function sendTogether(peer: Peer, text: string, wide: boolean, bytes: Bytes): void {
  const most = (wide ? 3 : 1) * text.length + bytes.length;
  const into = most <= room.length ? room : Buffer.allocUnsafeSlow(Math.max(most, ROOM_BYTES));
  const length = into.write(text, 0, wide ? 'utf8' : 'latin1');
  into.set(bytes, length);
  peer.write(into.subarray(0, length + bytes.length), false);
  // The buffer can be reused once the system has accepted all of it.
  if (peer.queued > 0) room = NONE;
  else if (into.length <= MAX_ROOM_BYTES) room = into;
}

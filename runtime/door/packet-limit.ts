/**
 * node:http begins all requests of a packet at once, and 64 KiB hold thousands: the thread did nothing else for tenths of
 * a second, also when the connection was destroyed at the first one too many. So the parser is told to stop there.
 * Requests that node:http refuses by itself (no Host, another Expect) are counted too.
 */
import type { Socket } from 'node:net';

/** Not documented; where Node has it no more, only the door's limit of unanswered requests remains. */
type Parsed = Socket & { parser?: { onIncoming?: (request: unknown, keepsAlive: boolean) => number } | null };

/** What an upgrade returns: the parser leaves the rest of the packet to others. */
const STOP = 2;

/** At most `most` requests of one connection in one turn of the event loop; with one more the connection is destroyed. */
export function limitPackets(socket: Parsed, most: number): void {
  const { parser } = socket;
  const begin = parser?.onIncoming;
  if (parser == null || begin === undefined) return;
  let begun = 0;
  parser.onIncoming = (request, keepsAlive) => {
    if (begun === 0)
      setImmediate(() => {
        begun = 0;
      });
    if (++begun <= most) return begin(request, keepsAlive);
    socket.destroy();
    return STOP;
  };
}

/**
 * What is decided in the parser, before a packet is read further. node:http begins all requests of a packet at once, and
 * 64 KiB hold thousands: the thread did nothing else for tenths of a second, also when the connection was destroyed at
 * the first one too many. And it hands on each chunk of a body by itself: eleven thousand of one byte in 64 KiB. So the
 * parser is told to stop there. Requests that node:http refuses by itself (no Host, another Expect) are counted too.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

type OnIncoming = (request: IncomingMessage, keepsAlive: boolean) => number;
/** Not documented; where Node has it no more, only the door's limit of unanswered requests remains. */
type Parsed = Socket & { parser?: { onIncoming?: OnIncoming } | null };

/** What an upgrade returns: the parser leaves the rest of the packet to others. */
const STOP = 2;

/** Programs send some dozens. Those beyond are not collected, so who sends as many could hide one. */
export const MAX_HEADERS = 200;

/** Why a request is not read beyond its head. */
export type HeadFault = 'too_many_headers' | 'chunked';

/**
 * A body in chunks: each chunk costs a hundred times what it carries, in time and in memory, and a body of 128 KiB may
 * have 131,072. Forty of them took a node's main thread 25 s and two gigabytes.
 */
function faultOf({ headers, rawHeaders }: IncomingMessage): HeadFault | undefined {
  if (rawHeaders.length >= 2 * MAX_HEADERS) return 'too_many_headers';
  return headers['transfer-encoding'] === undefined ? undefined : 'chunked';
}

/**
 * At most `most` requests of one connection in one turn of the event loop; with one more the connection is destroyed.
 * One whose head has a fault goes to `refuse`, and nothing behind it is read.
 */
export function limitPackets(socket: Parsed, most: number, refuse: (fault: HeadFault) => void): void {
  const { parser } = socket;
  const begin = parser?.onIncoming;
  if (parser == null || begin === undefined) return;
  let begun = 0;
  parser.onIncoming = (request, keepsAlive) => {
    if (begun === 0)
      setImmediate(() => {
        begun = 0;
      });
    const isOneTooMany = ++begun > most;
    const fault = faultOf(request);
    if (!isOneTooMany && fault === undefined) return begin(request, keepsAlive);
    if (isOneTooMany || fault === undefined) socket.destroy();
    else refuse(fault);
    // Otherwise it would still become a WebSocket.
    Object.assign(request, { upgrade: false });
    return STOP;
  };
}

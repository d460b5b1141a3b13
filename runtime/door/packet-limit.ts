/**
 * What is decided in the parser, before a packet is read further. node:http begins all requests of a packet at once, and
 * 64 KiB hold thousands: the thread did nothing else for tenths of a second, also when the connection was destroyed at
 * the first one too many, those too that it refuses by itself (no Host, another Expect). And it hands on each chunk of a
 * body by itself: eleven thousand of one byte in 64 KiB.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

type Parsing = IncomingMessage & { upgrade?: boolean | null };
type OnIncoming = (request: Parsing, keepsAlive: boolean) => number;
/** Not documented; where Node has it no more, only the door's limit of unanswered requests remains. */
type Parsed = Socket & { parser?: { onIncoming?: OnIncoming } | null };

/** What an upgrade returns: the parser leaves the rest of the packet to others. */
const STOP = 2;

/** Programs send some dozens. Those beyond are not collected, so who sends as many could hide one. */
export const MAX_HEADERS = 200;

/** Why a request is not read beyond its head. */
export type HeadFault = 'too_many_headers' | 'chunked_upgrade';

/** Parts in which a body in chunks may come, besides one for each so many bytes. */
const FREE_PARTS = 32;
const PART_BYTES = 256;

function faultOf({ headers, rawHeaders, upgrade }: Parsing): HeadFault | undefined {
  if (rawHeaders.length >= 2 * MAX_HEADERS) return 'too_many_headers';
  return upgrade && headers['transfer-encoding'] !== undefined ? 'chunked_upgrade' : undefined;
}

/**
 * Each chunk costs a hundred times what the smallest carries, in time and in memory: forty bodies of 131,072 chunks took a
 * node's main thread 25 s and two gigabytes. So chunks that are too small end the connection, and what the packet still
 * holds of them goes nowhere (`_dumped`, not documented either).
 */
function limitParts(request: Parsing, socket: Socket): void {
  const push = request.push.bind(request);
  let parts = 0;
  let bytes = 0;
  request.push = (part: Buffer | null): boolean => {
    bytes += part?.length ?? 0;
    if (part === null || ++parts <= FREE_PARTS + bytes / PART_BYTES) return push(part);
    Object.assign(request, { _dumped: true });
    socket.destroy();
    return true;
  };
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
    if (!isOneTooMany && fault === undefined) {
      if (request.headers['transfer-encoding'] !== undefined) limitParts(request, socket);
      return begin(request, keepsAlive);
    }
    if (isOneTooMany || fault === undefined) socket.destroy();
    else refuse(fault);
    // Otherwise it would still become a WebSocket.
    Object.assign(request, { upgrade: false });
    return STOP;
  };
}

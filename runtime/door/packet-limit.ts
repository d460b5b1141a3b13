/**
 * What is decided in the parser, before a packet is read further. node:http begins all requests of a packet at once, and
 * 64 KiB hold thousands: the thread did nothing else for tenths of a second, also when the connection was destroyed at
 * the first one too many, those too that it refuses by itself (no Host, another Expect). And it hands on each chunk of a
 * body by itself.
 */
import type { IncomingMessage } from 'node:http';
import { BodyParts, endBody, type ParsedSocket } from '../clients/body-parts.ts';

type Parsing = IncomingMessage & { upgrade?: boolean | null };
type OnIncoming = (request: Parsing, keepsAlive: boolean) => number;
/** Not documented; where Node has it no more, only the door's limit of unanswered requests remains. */
type Parsed = ParsedSocket & { parser?: { onIncoming?: OnIncoming } | null };

/** What an upgrade returns: the parser leaves the rest of the packet to others. */
const STOP = 2;

/** Programs send some dozens. Those beyond are not collected, so who sends as many could hide one. */
export const MAX_HEADERS = 200;

/** Why a request is not read beyond its head. */
export type HeadFault = 'too_many_headers' | 'chunked_upgrade';

function faultOf({ headers, rawHeaders, upgrade }: Parsing): HeadFault | undefined {
  if (rawHeaders.length >= 2 * MAX_HEADERS) return 'too_many_headers';
  return upgrade && headers['transfer-encoding'] !== undefined ? 'chunked_upgrade' : undefined;
}

/** Chunks that are too small end the connection (body-parts.ts), also those that come when the request was answered. */
function limitParts(request: Parsing, socket: Parsed): void {
  const push = request.push.bind(request);
  const parts = new BodyParts();
  request.push = (part: Buffer | null): boolean => {
    if (part === null || parts.admit(part.length)) return push(part);
    endBody(socket);
    return true;
  };
  // node:http would hand on nothing more of what nobody reads, and still be called for each chunk.
  Object.assign(request, { _dump: () => void request.removeAllListeners('data').resume() });
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

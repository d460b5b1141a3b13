/**
 * In how many parts a body may come over HTTP, for all that read one. node:http hands on each chunk by itself, and a chunk
 * of a byte costs a hundred times its bytes, in time and in memory: forty bodies of 131,072 of them took a node's main
 * thread 25 s and two gigabytes.
 */
import type { Socket } from 'node:net';

/** Besides one for each so many bytes. */
const FREE_PARTS = 32;
const PART_BYTES = 256;

/** The parts of one body. */
export class BodyParts {
  #parts = 0;
  #bytes = 0;

  /** Whether the next part may have this size. */
  admit(length: number): boolean {
    this.#bytes += length;
    return ++this.#parts <= FREE_PARTS + this.#bytes / PART_BYTES;
  }
}

type Parser = { readonly constructor: { readonly kOnBody?: number }; [callback: number]: unknown };
/** `parser` is not documented; where Node has it no more, what was read is parsed to its end. */
export type ParsedSocket = Socket & { readonly parser?: Parser | null };

/**
 * Ends a connection in the middle of a body. The parser goes on to the end of the packet, and with a call for each chunk
 * 64 KiB took 20 ms, on each of hundreds of connections before anything else was done. So it calls nobody.
 */
export function endBody(socket: ParsedSocket): void {
  const { parser } = socket;
  const place = parser?.constructor.kOnBody;
  if (parser != null && place !== undefined && parser[place] !== undefined) {
    const callback = parser[place];
    parser[place] = undefined;
    // Parsers are used again, but by no connection that could be read before this.
    setImmediate(() => {
      parser[place] = callback;
    });
  }
  socket.destroy();
}

/** The body of a request, bounded before it is kept. */
import type { IncomingMessage } from 'node:http';

/** `incomplete`: the client went away, or was too slow. */
export type Body = Buffer | 'too_large' | 'incomplete';

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/** Parts of a body that are kept by themselves: the smallest take a hundred times their bytes. */
const MOST_PARTS = 64;

/** Never rejects. What is beyond the limit is not read: the answer to such a request ends the connection. */
export function readBody(request: IncomingMessage, limit: number): Promise<Body> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return Promise.resolve('too_large');
  // Not an async iterator: leaving one early would destroy the connection before the refusal is written.
  return new Promise((resolve) => {
    let parts: Buffer[] = [];
    let length = 0;
    const take = (part: Buffer): void => {
      length += part.length;
      if (length <= limit) {
        parts.push(part);
        if (parts.length > MOST_PARTS) parts = [Buffer.concat(parts)];
        return;
      }
      request.off('data', take).pause();
      resolve('too_large');
    };
    request.on('data', take);
    request.once('end', () => resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, length)));
    request.once('error', () => resolve('incomplete'));
    request.once('close', () => resolve('incomplete'));
  });
}

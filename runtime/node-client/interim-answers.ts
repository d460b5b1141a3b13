/** A server may send answers of status 1xx before the one that counts, each without end and with no byte of a body to be counted. */
import type { ClientRequest } from 'node:http';

const MOST = 8;

export function limitInterim(request: ClientRequest): void {
  let count = 0;
  request.on('information', () => {
    if (++count > MOST) request.destroy(new Error('the server sends interim answers without end'));
  });
}
